//! The events of a plot: who does what, what happens to nodes, and when.

use std::time::Duration;

use crate::network::Fate;
use crate::quorum::list::List;
use crate::quorum::node::Return;
use crate::wish::Wish;

/// A process of the cast, in the order of entrance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Actor(pub(super) usize);

/// The process that has, or gets, what it should not.
pub(super) const HERO: Actor = Actor(0);

/// One thing that happens as planned.
#[derive(Clone, Debug)]
pub(in super::super) enum Deed {
    /// A process wants a lock.
    Ask(Actor, Wish),
    /// A process enters with this list; what it sends to a node may arrive later by this much.
    Enter(Actor, List, Option<(usize, Duration)>),
    /// An operator moves the nodes of the first list to the second one.
    Move(Actor),
    /// The operator continues once enough nodes were moved: the nodes of the second list take over, and these processes
    /// get that list. The operator repeats this until the second list can grant locks.
    TakeOver(Actor, [Actor; 2]),
    /// For this long, what a process sends to a node has a special fate.
    Gap { actor: Actor, node: usize, fate: Fate, lasts: Duration },
    /// A process is suspended.
    Stop(Actor, Duration),
    /// A node loses everything.
    Forget(usize),
    /// A copy is made of what a node keeps.
    Copy(usize),
    /// A node restarts; it is away for this long.
    Restart(usize, Return, Duration),
    /// A node is suspended.
    Freeze(usize, Duration),
    /// The clock of a node steps forward, if the node keeps no lease.
    StepClock(usize, Duration),
}

/// What is to happen, and when.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Script(pub(super) Vec<(Duration, Deed)>);

impl Script {
    pub(super) fn at(&mut self, time: Duration, deed: Deed) {
        self.0.push((time, deed));
    }

    /// When all of it has happened.
    pub(in super::super) fn end(&self) -> Duration {
        self.0.iter().map(|(time, _)| *time).max().unwrap_or_default()
    }
}
