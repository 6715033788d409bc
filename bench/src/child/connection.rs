//! The connection of the raw subjects.

use anyhow::Result;
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;

/// Connects with redis-rs' best for this, with the settings that this library uses itself.
pub(super) async fn multiplexed(url: &str) -> Result<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(1024);
    Ok(redis::Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await?)
}
