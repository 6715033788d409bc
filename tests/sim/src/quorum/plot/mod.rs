//! Orders of events that random play does not meet: each rule of the restart guard that only such an order needs has a plot.
//!
//! A plot is the shortest order in which the exhaustive model of the guard finds two holders without the rule, with jitter
//! around the moments that matter: the hero asks for a lock with a long ttl, nodes forget, letters are late, and the chorus,
//! clients of a second lock with short ttls, brings the nodes back. With all rules nothing comes of it.

mod guard;
mod stage;

use std::time::Duration;

pub(super) use guard::draw;

use super::node::Return;
use crate::client::Wish;
use crate::network::Fate;

/// Somebody of the cast, in the order of entrance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Actor(usize);

/// The one that has, or gets, what it should not.
const HERO: Actor = Actor(0);

/// One thing that happens as planned.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    /// Somebody wants a lock.
    Ask(Actor, Wish),
    /// Somebody enters, and what it sends to this node arrives so much later.
    Enter { node: usize, late: Duration },
    /// What somebody sends to a node has another fate for so long.
    Gap { actor: Actor, node: usize, fate: Fate, lasts: Duration },
    /// Somebody stands still.
    Stop(Actor, Duration),
    /// A node loses everything.
    Forget(usize),
    /// A copy is made of what a node keeps.
    Copy(usize),
    /// A node starts again; it is away for so long.
    Restart(usize, Return, Duration),
    /// A node stands still.
    Freeze(usize, Duration),
    /// The clock of a node steps forward, if the node keeps no lease.
    StepClock(usize, Duration),
}

/// What is to happen, and when.
#[derive(Clone, Debug, Default)]
pub(super) struct Script(Vec<(Duration, Deed)>);

impl Script {
    fn at(&mut self, time: Duration, deed: Deed) {
        self.0.push((time, deed));
    }

    /// When all of it has happened.
    pub(super) fn end(&self) -> Duration {
        self.0.iter().map(|(time, _)| *time).max().unwrap_or_default()
    }
}
