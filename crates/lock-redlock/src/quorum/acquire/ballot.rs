//! The outcome of a claim at one node.

use std::time::Duration;

use lock_core::{BackendError, FencingToken, Holder};

use super::super::nodes::Voter;

/// The outcome of the claim at one node.
#[derive(Debug)]
pub(super) struct Ballot {
    pub(super) voter: Voter,
    pub(super) vote: Vote,
    pub(super) acknowledged: bool,
}

#[derive(Debug)]
pub(super) enum Vote {
    Asked,
    Granted(FencingToken),
    Held(Holder, Option<Duration>),
    Failed(BackendError),
    /// It may not vote; nothing was changed there.
    Abstained,
}

impl Ballot {
    /// Whether its grant has exactly this token. That counts as an acknowledgement: the counter is there already.
    pub(super) fn drew(&self, token: FencingToken) -> bool {
        matches!(self.vote, Vote::Granted(own) if own == token)
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.voter.is_awaited && matches!(self.vote, Vote::Asked)
    }

    pub(super) fn failure(&self) -> Option<&BackendError> {
        match &self.vote {
            Vote::Failed(error) => Some(error),
            Vote::Asked | Vote::Granted(_) | Vote::Held(..) | Vote::Abstained => None,
        }
    }

    pub(super) fn held(&self) -> Option<(&Holder, Option<Duration>)> {
        match &self.vote {
            Vote::Held(holder, remaining) => Some((holder, *remaining)),
            Vote::Asked | Vote::Granted(_) | Vote::Failed(_) | Vote::Abstained => None,
        }
    }
}
