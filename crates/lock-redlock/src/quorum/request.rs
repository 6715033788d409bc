//! The requests to a quorum, and their verdicts.

use lock_core::node::Inspection;
use lock_core::{
    Answer, BackendError, Claim, Effect, ErrorKind, Fenced, Lease, Operation, ReleaseRequest, Released, Renewed,
};

use super::inspect::Answers;
use super::recovery::{Purpose, Report};
use crate::BACKEND;

/// A verb, or a recovery pass, over all nodes.
#[derive(Clone, Debug)]
pub enum Request {
    /// A lock for an owner.
    Acquire(Claim),
    /// More time for leases.
    Renew(Vec<Lease>),
    /// Whether a lease is still held.
    Fence(Lease),
    /// The end of a hold, or of a claim.
    Release(ReleaseRequest),
    /// A question of an operator to each node, in their order; `None` for a node that is not asked.
    Inspect(Vec<Option<Inspection>>),
    /// A recovery pass.
    Pass(Purpose),
}

/// What a quorum decided. Each request has one verdict, of the variant of the same name.
#[derive(Debug)]
pub enum Verdict {
    /// See [`Request::Acquire`].
    Acquire(Result<Answer, BackendError>),
    /// See [`Request::Renew`]: one answer for each lease.
    Renew(Result<Vec<Renewed>, BackendError>),
    /// See [`Request::Fence`].
    Fence(Result<Fenced, BackendError>),
    /// See [`Request::Release`].
    Release(Result<Released, BackendError>),
    /// See [`Request::Inspect`]. It is not an error if nodes do not answer.
    Inspect(Result<Answers, BackendError>),
    /// See [`Request::Pass`].
    Pass(Result<Report, BackendError>),
}

impl Verdict {
    pub(crate) fn of_acquire(self) -> Result<Answer, BackendError> {
        let Self::Acquire(verdict) = self else { return Err(no_verdict()) };
        verdict
    }

    pub(crate) fn of_renew(self) -> Result<Vec<Renewed>, BackendError> {
        let Self::Renew(verdict) = self else { return Err(no_verdict()) };
        verdict
    }

    pub(crate) fn of_fence(self) -> Result<Fenced, BackendError> {
        let Self::Fence(verdict) = self else { return Err(no_verdict()) };
        verdict
    }

    pub(crate) fn of_release(self) -> Result<Released, BackendError> {
        let Self::Release(verdict) = self else { return Err(no_verdict()) };
        verdict
    }

    pub(crate) fn of_inspect(self) -> Result<Answers, BackendError> {
        let Self::Inspect(verdict) = self else { return Err(no_verdict()) };
        verdict
    }

    pub(crate) fn of_pass(self) -> Result<Report, BackendError> {
        let Self::Pass(verdict) = self else { return Err(no_verdict()) };
        verdict
    }
}

/// A request ended without its verdict: the runtime or the threads that ran it are gone.
pub(crate) fn no_verdict() -> BackendError {
    let told = "the runtime or the threads that ask the nodes have ended";
    BackendError::new(BACKEND, Operation::Acquire, ErrorKind::Unreachable, Effect::Unknown, told)
}
