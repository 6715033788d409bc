//! The refusals of the rules. None of them changes anything.

use lock_core::{BackendError, Effect, ErrorKind, Invalid, LockName, Operation};

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone<E> {
    /// The rules refuse it. Nothing was changed.
    Refused(BackendError),
    /// The rows could not be read, so nothing was changed, or they could not be written: the error says whether they may have been.
    Failed(E),
}

impl<E> From<E> for Undone<E> {
    fn from(failure: E) -> Self {
        Self::Failed(failure)
    }
}

fn refusal(backend: &'static str, operation: Operation, kind: ErrorKind, message: &str, remedy: &str) -> BackendError {
    BackendError::new(backend, operation, kind, Effect::None, message).with_remedy(remedy.to_owned())
}

fn protocol(backend: &'static str, operation: Operation, message: &str, remedy: &str) -> BackendError {
    refusal(backend, operation, ErrorKind::Protocol, message, remedy)
}

/// A claim arrived after its release.
pub fn given_up(backend: &'static str) -> BackendError {
    protocol(backend, Operation::Acquire, "this claim was given up", "ask again as another owner")
}

/// All tokens were drawn.
pub fn used_up(backend: &'static str, invalid: Invalid) -> BackendError {
    let remedy = "set the clock right, start a new store, and let the resource forget the old one's tokens";
    protocol(backend, Operation::Acquire, "the tokens are used up", remedy).with_source(invalid)
}

/// A claim has another mode than the lease of its owner.
pub fn held_in_another_mode(backend: &'static str) -> BackendError {
    let message = "this owner holds the lock in another mode";
    protocol(backend, Operation::Acquire, message, "ask as another owner")
}

/// A claim replaces what it cannot.
pub fn cannot_replace(backend: &'static str) -> BackendError {
    let message = "a lease cannot be replaced by one of this mode";
    protocol(backend, Operation::Acquire, message, "release it, and acquire the lock again")
}

/// A claim replaces a lease that is not held.
pub fn nothing_to_replace(backend: &'static str) -> BackendError {
    let message = "the lease to replace is not held";
    refusal(backend, Operation::Acquire, ErrorKind::NotHeld, message, "acquire the lock again")
}

/// A lock is to be kept whose lease is not exclusive.
pub fn cannot_keep(backend: &'static str) -> BackendError {
    protocol(backend, Operation::Release, "only an exclusive lease can be kept", "release it at once")
}

/// The rows say that the lock is held, and by nobody. The rules never leave them like that.
pub(crate) fn contradiction(backend: &'static str, name: &LockName) -> BackendError {
    let message = format!("the rows of {:?} contradict each other", name.as_str());
    let remedy = "check that only this library writes to the store";
    protocol(backend, Operation::Acquire, &message, remedy)
}
