//! The error inside one of the client library.

use std::error::Error;
use std::io;
use std::sync::Arc;

use redis::RedisError;

/// What the client library wraps.
pub(super) fn inside(error: &RedisError) -> Option<&(dyn Error + 'static)> {
    error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>().map(|inner| &**inner as _)
}

/// What a socket says.
pub(super) fn of_socket(error: &RedisError) -> Option<&io::Error> {
    inside(error)?.downcast_ref()
}
