//! A user who wants a lock.

use std::sync::Arc;

use lock_core::{Fairness, Hold, Mode, Owner};

use crate::clock::Time;
use crate::wish::Wish;

/// A user in line, or a holder.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) wish: Wish,
    /// Whether it may be served before those who came first.
    pub(super) fairness: Fairness,
    /// When it came.
    pub(super) since: Time,
    pub(crate) hold: Option<Arc<Hold>>,
    /// When its turn began.
    pub(super) begun: Option<Time>,
    /// The mode that it wants instead of its own, until the answer.
    pub(super) goal: Option<Mode>,
    /// The owner that was last asked for in place of its own.
    pub(super) replacing: Option<Owner>,
    /// Whether it has a ticket.
    pub(super) adopts: bool,
}

impl User {
    pub(super) fn new(wish: Wish, fairness: Fairness, since: Time) -> Self {
        Self { wish, fairness, since, begun: None, hold: None, goal: None, replacing: None, adopts: false }
    }

    /// The slots that it uses under its hold. A holder that wants to give some back has stopped using those.
    pub(super) fn slots<'a>(&self, hold: &'a Hold) -> &'a [u32] {
        let slots = hold.lease().slots.get();
        let kept = self.goal.and_then(|goal| slots.get(..usize::try_from(goal.count()).ok()?));
        kept.unwrap_or(slots)
    }

    /// Whether nobody else holds beside it.
    pub(super) fn writes_alone(&self, hold: &Hold) -> bool {
        hold.lease().terms.mode == Mode::Exclusive && !self.reads(hold)
    }

    /// Whether it writes nothing under its hold. A holder that wants to go on as a reader has stopped writing.
    pub(super) fn reads(&self, hold: &Hold) -> bool {
        [Some(hold.lease().terms.mode), self.goal].contains(&Some(Mode::Shared))
    }
}
