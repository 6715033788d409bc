//! From a URL to a client.

use std::io;

use lock_core::{BackendError, Effect, ErrorKind, Invalid, Operation};
use lock_host::Error;

/// Why connecting failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is not valid; nothing was tried.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store could not be opened.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// This host could not start a thread, or its random source failed.
    #[error("this host cannot run a client: {0}")]
    Host(#[from] io::Error),
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Invalid(error) => error.into(),
            ConnectError::Backend(error) => error.into(),
            ConnectError::Host(error) => {
                let (kind, message) = (ErrorKind::Config, "this host cannot run a client");
                BackendError::new("host", Operation::Connect, kind, Effect::None, message).with_source(error).into()
            }
        }
    }
}
