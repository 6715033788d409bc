//! Orders of events that random play does not meet: each rule of the restart guard that only such an order needs has a plot.
//!
//! A plot is the shortest order in which the exhaustive model of the guard finds two holders without the rule, with jitter
//! around the moments that matter: the hero asks for a lock with a long ttl, nodes forget, letters are late, and the chorus,
//! clients of a second lock with short ttls, brings the nodes back. With all rules nothing comes of it.

mod deed;
mod guard;
mod lists;
mod stage;

pub(super) use deed::Deed;
pub(super) use guard::draw;
