//! What is known of one claim.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::Epoch;
use lock_core::{
    Answer, BackendError, Claim, Effect, ErrorKind, FencingToken, Holder, Lease, Moment, Operation, TokenRange, Width,
};

use super::super::node::NodeId;
use super::super::nodes::{Nodes, Voter};
use super::super::trouble::Failures;
use crate::BACKEND;

/// One claim, over all nodes.
#[derive(Debug)]
pub(in super::super) struct Acquire {
    pub(super) claim: Arc<Claim>,
    pub(super) wish: FencingToken,
    /// How long each round may take.
    pub(super) within: Duration,
    pub(super) majority: usize,
    pub(super) ballots: Vec<Ballot>,
    pub(super) round: Round,
    pub(super) announcement: Option<Announcement>,
    pub(super) failures: Failures,
    pub(super) verdict: Option<Result<Answer, BackendError>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// The ttl is announced.
    Zero,
    One,
    /// This token is to be acknowledged by so many nodes, of which these have not answered.
    Two {
        token: FencingToken,
        open: usize,
    },
    Over,
}

#[derive(Debug)]
pub(super) struct Announcement {
    pub(super) leases: Arc<[Lease]>,
    pub(super) begun: Moment,
    /// The nodes that know of it, and in which epoch.
    pub(super) told: Vec<(NodeId, Epoch)>,
    /// How many others may be told yet.
    pub(super) open: usize,
}

/// What came of the claim at one node.
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

impl Acquire {
    /// The token that the most nodes drew, and how many did.
    pub(super) fn agreed(&self) -> (usize, FencingToken) {
        let same = |token: FencingToken| (self.grants().filter(|f| *f == token).count(), token);
        self.grants().map(same).max().unwrap_or((0, self.wish))
    }

    pub(super) fn held(&self) -> usize {
        self.ballots.iter().filter(|ballot| ballot.held().is_some()).count()
    }

    pub(super) fn grants(&self) -> impl Iterator<Item = FencingToken> + '_ {
        self.ballots.iter().filter_map(|ballot| match ballot.vote {
            Vote::Granted(token) => Some(token),
            Vote::Asked | Vote::Held(..) | Vote::Failed(_) | Vote::Abstained => None,
        })
    }

    /// The lock is had, with this token. Nodes that drew a higher one are renewed under that.
    pub(super) fn hand_out(&mut self, nodes: &mut Nodes, token: FencingToken) {
        let highest = self.grants().max().unwrap_or(token).max(token);
        nodes.held.insert(self.claim.owner, highest);
        let valid_for = self.claim.terms.ttl.get();
        self.end(self.lease(token).map(|lease| Answer::Granted { lease, valid_for }));
    }

    pub(super) fn lease(&self, high: FencingToken) -> Result<Lease, BackendError> {
        let width = self.claim.width;
        self.lease_of(high.get().saturating_sub(width.get()), width)
    }

    pub(super) fn lease_of(&self, last: u64, width: Width) -> Result<Lease, BackendError> {
        let Claim { name, owner, terms, .. } = &*self.claim;
        let tokens = TokenRange::above(last, width).map_err(|_| not_asked())?;
        Ok(Lease { name: name.clone(), owner: *owner, tokens, terms: *terms })
    }

    pub(super) fn end(&mut self, verdict: Result<Answer, BackendError>) {
        self.round = Round::Over;
        self.verdict = Some(verdict);
    }

    /// The verdict, as soon as it is certain.
    pub(in super::super) fn take_verdict(&mut self) -> Option<Result<Answer, BackendError>> {
        self.verdict.take()
    }
}

impl Ballot {
    /// A grant of the very token that is to be acknowledged is that: the node counts from there.
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

pub(super) fn not_asked() -> BackendError {
    let told = "a node answered something that was not asked";
    BackendError::new(BACKEND, Operation::Acquire, ErrorKind::Protocol, Effect::Unknown, told)
}
