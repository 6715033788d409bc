//! The errors that a client makes itself.

use std::io;

use lock_core::{AcquireError, BackendError, Effect, ErrorKind, Lost, Operation, ReleaseError, WhileHeldError};

/// The answer of a backend that panicked: its effect is unknown.
pub fn panicked(operation: Operation) -> BackendError {
    BackendError::new("client", operation, ErrorKind::Protocol, Effect::Unknown, "the backend panicked")
}

/// What came of work under a lock: it counts if the lock was held until the release, even where the store did not
/// confirm that.
///
/// # Errors
/// `Lost`, whichever of the two says it.
pub fn counted<T>(done: Result<T, Lost>, released: Result<(), ReleaseError>) -> Result<T, WhileHeldError> {
    match released {
        Err(ReleaseError::Lost(lost)) => Err(lost.into()),
        Ok(()) | Err(_) => Ok(done?),
    }
}

/// The system's random source failed, so nothing was asked.
pub(crate) fn no_randomness(error: io::Error) -> AcquireError {
    BackendError::new("host", Operation::Acquire, ErrorKind::Unavailable, Effect::None, "the random source failed")
        .with_source(error)
        .into()
}
