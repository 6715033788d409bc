//! Orders of events that random play does not meet: each rule of recovery that matters only in such an order has a
//! plot.
//!
//! A plot is the shortest order in which the exhaustive model of recovery finds two holders without the rule, with
//! jitter around the moments that matter: the hero asks for a lock with a long ttl, nodes forget, packets are late, and
//! the chorus, clients of a second lock with short ttls, restores the nodes. With all rules a plot does no harm.

mod deed;
mod guard;
mod lists;
mod stage;

pub(super) use deed::Deed;
pub(super) use guard::draw;
