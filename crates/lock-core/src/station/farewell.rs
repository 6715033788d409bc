//! Releases under way: each is tried until it is answered, or until the lease is over anyway.

use super::io::{ActionId, TurnId};
use crate::{Moment, Parting};

/// A release that was not answered yet.
#[derive(Debug)]
pub(super) struct Farewell {
    pub(super) parting: Parting,
    /// The holder that waits for the outcome; nobody after the first try.
    pub(super) turn: Option<TurnId>,
    pub(super) progress: Progress,
    pub(super) tries: u32,
    /// When the store has surely forgotten the owner by itself.
    pub(super) over_at: Moment,
}

/// Whether a farewell is being said or waits to be said again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    UnderWay(ActionId),
    AgainAt(Moment),
}

/// All farewells of a station.
#[derive(Debug, Default)]
pub(super) struct Farewells(pub(super) Vec<Farewell>);

impl Farewells {
    pub(super) fn push(&mut self, farewell: Farewell) {
        self.0.push(farewell);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn any_under_way(&self) -> bool {
        self.0.iter().any(|farewell| matches!(farewell.progress, Progress::UnderWay(_)))
    }

    pub(super) fn answered(&mut self, id: ActionId) -> Option<Farewell> {
        let index = self.0.iter().position(|farewell| farewell.progress == Progress::UnderWay(id))?;
        Some(self.0.swap_remove(index))
    }

    /// Takes out one that is to be said again by now.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<Farewell> {
        let index =
            self.0.iter().position(|farewell| matches!(farewell.progress, Progress::AgainAt(at) if at <= now))?;
        Some(self.0.swap_remove(index))
    }

    pub(super) fn next_due(&self) -> Option<Moment> {
        let due = |farewell: &Farewell| match farewell.progress {
            Progress::AgainAt(at) => Some(at),
            Progress::UnderWay(_) => None,
        };
        self.0.iter().filter_map(due).min()
    }
}
