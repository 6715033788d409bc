//! From a URL to a client.

use std::io;

use lock_core::{BackendError, Invalid};

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
