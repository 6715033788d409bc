//! The errors that a client makes itself.

use std::io;

use lock_core::{AcquireError, BackendError, Effect, ErrorKind, Operation};

/// The answer of a backend that panicked: its effect is unknown.
pub fn panicked(operation: Operation) -> BackendError {
    BackendError::new("client", operation, ErrorKind::Protocol, Effect::Unknown, "the backend panicked")
}

/// The system's random source failed, so no request was sent.
pub(crate) fn no_randomness(error: io::Error) -> AcquireError {
    BackendError::new("host", Operation::Acquire, ErrorKind::Unavailable, Effect::None, "the random source failed")
        .with_source(error)
        .into()
}
