//! What functions with `#[leasehold::locked]` call, once they are expanded. Not for other code.

use lock_core::AcquireError;
use lock_host::Error;

/// What a locked function returns.
#[diagnostic::on_unimplemented(
    message = "a locked function cannot return `{Self}`",
    label = "cannot say that the lock was not acquired, or was lost",
    note = "it returns a `Result` whose error is made from a `leasehold::Error`"
)]
pub trait Outcome {
    /// The lock was not acquired, or it was lost.
    fn failed(error: Error) -> Self;
}

impl<T, E: From<Error>> Outcome for Result<T, E> {
    fn failed(error: Error) -> Self {
        Err(error.into())
    }
}

/// What a locked function returns that is skipped while the lock is busy.
#[diagnostic::on_unimplemented(
    message = "a locked function with `on_busy = \"skip\"` cannot return `{Self}`",
    label = "cannot say that the function was skipped",
    note = "it returns a `Result<Option<T>, E>`, where `Ok(None)` means that it was skipped"
)]
pub trait Skippable: Outcome {
    /// Somebody else holds the lock.
    fn skipped() -> Self;
}

impl<T, E> Skippable for Result<Option<T>, E>
where
    Self: Outcome,
{
    fn skipped() -> Self {
        Ok(None)
    }
}

/// The result of a function for which a busy lock is an error.
pub fn or_error<R: Outcome>(ended: Result<R, Error>) -> R {
    ended.unwrap_or_else(R::failed)
}

/// The result of a function that is skipped while the lock is busy.
pub fn or_skip<R: Skippable>(ended: Result<R, Error>) -> R {
    match ended {
        Err(Error::Acquire(AcquireError::TimedOut { .. })) => R::skipped(),
        ended => or_error(ended),
    }
}
