//! Opens whatever a configuration names: one server, the primary behind sentinels, or a cluster.

use std::sync::Arc;

#[cfg(feature = "async")]
use lock_core::AsyncBackend;
use lock_core::{BackendError, BlockingBackend};

use crate::RedisConfig;
use crate::blocking;

/// Connects for tokio.
///
/// # Errors
/// Those of [`Redis::connect`](crate::nonblocking::Redis::connect).
///
/// # Cancel safety
/// Can be dropped at any point.
#[cfg(feature = "async")]
pub async fn open(config: &RedisConfig) -> Result<Arc<dyn AsyncBackend>, BackendError> {
    Ok(Arc::new(crate::nonblocking::Redis::connect(config).await?))
}

/// Connects for plain threads.
///
/// # Errors
/// Those of [`Redis::connect`](crate::blocking::Redis::connect).
pub fn open_blocking(config: &RedisConfig) -> Result<Arc<dyn BlockingBackend>, BackendError> {
    Ok(Arc::new(blocking::Redis::connect(config)?))
}
