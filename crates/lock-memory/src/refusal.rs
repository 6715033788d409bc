//! The errors of the store.

use lock_core::{BackendError, Effect, ErrorKind, Invalid, Operation};

use crate::BACKEND;

/// The lease that a claim is to replace is not held.
pub(crate) fn nothing_to_replace() -> BackendError {
    let message = "the lease to replace is not held";
    BackendError::new(BACKEND, Operation::Acquire, ErrorKind::NotHeld, Effect::None, message)
        .with_remedy("acquire the lock again")
}

fn refused(operation: Operation, message: &str) -> BackendError {
    BackendError::new(BACKEND, operation, ErrorKind::Protocol, Effect::None, message)
}

pub(crate) fn given_up() -> BackendError {
    refused(Operation::Acquire, "this claim was given up").with_remedy("ask again as another owner")
}

pub(crate) fn held_in_another_mode() -> BackendError {
    refused(Operation::Acquire, "this owner holds the lock in another mode").with_remedy("ask as another owner")
}

pub(crate) fn cannot_replace() -> BackendError {
    refused(Operation::Acquire, "a lease cannot be replaced by one of this mode")
        .with_remedy("release it, and acquire the lock again")
}

pub(crate) fn cannot_keep() -> BackendError {
    refused(Operation::Release, "only an exclusive lease can be kept").with_remedy("release it at once")
}

pub(crate) fn used_up(operation: Operation, invalid: Invalid) -> BackendError {
    refused(operation, "the tokens are used up")
        .with_source(invalid)
        .with_remedy("start a new store, and let the resource forget the old one's tokens")
}
