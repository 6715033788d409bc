//! The turns under one lease, and which of them ends first.

#[cfg(test)]
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::by_turn::ByTurn;
use super::io::TurnId;
use crate::{Hold, Moment, Note};

/// One guard's hold under a lease. Nobody renews or ends the hold of a turn that is dropped, so that is lost unless it has ended.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) hold: Arc<Hold>,
    pub(super) note: Note,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.hold.let_go();
    }
}

/// The holders under a lease: one turn, if the mode is exclusive. However many there are, a turn begins and ends without a
/// look at the others.
#[derive(Debug, Default)]
pub(super) struct Turns {
    by_turn: ByTurn<Turn>,
    /// The turns that `max_hold` ends.
    #[expect(clippy::box_collection, reason = "most leases have none, and there may be many leases")]
    ends: Option<Box<BTreeSet<(Moment, TurnId)>>>,
}

impl Turns {
    pub(super) fn add(&mut self, id: TurnId, turn: Turn) {
        if let Some(end) = turn.hold.hold_until {
            self.ends.get_or_insert_default().insert((end, id));
        }
        self.by_turn.insert(id, turn);
    }

    pub(super) fn take(&mut self, id: TurnId) -> Option<Turn> {
        let turn = self.by_turn.remove(id);
        if let (Some(ends), Some(turn)) = (&mut self.ends, &turn)
            && let Some(end) = turn.hold.hold_until
        {
            ends.remove(&(end, id));
        }
        turn
    }

    pub(super) fn has(&self, id: TurnId) -> bool {
        self.by_turn.get(id).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.by_turn.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_turn.is_empty()
    }

    /// The first of them.
    pub(super) fn first(&self) -> Option<(TurnId, &Turn)> {
        Some((self.by_turn.first_turn()?, self.by_turn.first()?))
    }

    /// All of them, the first one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TurnId, &Turn)> {
        self.by_turn.iter().inspect(|_| look())
    }

    /// When `max_hold` ends the first turn that it ends.
    pub(super) fn first_end(&self) -> Option<Moment> {
        self.ends.as_ref()?.first().map(|(end, _)| *end)
    }

    /// The turns that `max_hold` has ended by now.
    pub(super) fn held_long_enough(&self, now: Moment) -> impl Iterator<Item = TurnId> {
        self.ends.iter().flat_map(|ends| ends.iter()).take_while(move |(end, _)| *end <= now).map(|(_, id)| *id)
    }
}

/// A turn was looked at that the input need not be about.
fn look() {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
}

#[cfg(test)]
thread_local! {
    /// How often that happened in this thread.
    pub(super) static LOOKS: Cell<usize> = const { Cell::new(0) };
}
