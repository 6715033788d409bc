//! What is asked of the store, and what it answers.

use lock_core::{Answer, BackendError, Claim, Lease, ReleaseRequest, Released, Renewed};

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Acquire(Claim),
    Renew(Vec<Lease>),
    Release(ReleaseRequest),
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) enum Say {
    Acquire(Result<Answer, BackendError>),
    Renew(Vec<Renewed>),
    Release(Result<Released, BackendError>),
}
