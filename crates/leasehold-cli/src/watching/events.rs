//! Events of locks, as the command prints them.

use std::time::SystemTime;

use lock_core::inspect::Held;
use lock_core::inspect::watch::{self, Happened};
use lock_core::{LockName, Mode, Note};

/// Something that has happened.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// When it was seen.
    pub(crate) time: SystemTime,
    pub(super) name: LockName,
    pub(super) event: Event,
    /// How many wait now.
    pub(super) waiters: u32,
    /// Whether it was so when the watch began.
    pub(super) already: bool,
}

impl Change {
    /// The event for a change between two listings. `way` decides how a lease ended.
    pub(super) fn of(seen: watch::Change, way: impl FnOnce(&LockName, &Held, Way) -> Way) -> Self {
        let watch::Change { name, happened, waiters } = seen;
        let over = |held, seen| {
            let way = way(&name, &held, seen);
            Event::Over(held, way)
        };
        let event = match happened {
            Happened::Acquired(held) => Event::Acquired(held),
            Happened::Queued { more, wanted } => Event::Queued(more, wanted),
            Happened::Released(held) => over(held, Way::Released),
            Happened::Expired(held) => over(held, Way::Lost),
        };
        Self { time: SystemTime::now(), name, event, waiters, already: false }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    Acquired(Held),
    /// So many more wait than before; and what the last of them asks for, if the store shows it.
    Queued(u32, Option<Mode>),
    Over(Held, Way),
}

/// How a lease ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Before its time.
    Released,
    /// When its time was over.
    Lost,
    /// By an operator.
    Broken(Note),
    /// While the store was away.
    Ended,
}
