//! Clients of a worker's store: one server, or a quorum.

use std::sync::Arc;
use std::time::Duration;

use leasehold::redis::RedisConfig;
use leasehold::redlock::RedlockConfig;
use leasehold::{BackendError, ConnectError, redlock};

/// How long each step of the first check of the nodes may take.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// A client with the async facade.
///
/// # Errors
/// As [`leasehold::connect`].
///
/// # Cancel safety
/// As [`leasehold::connect`].
pub(crate) async fn nonblocking(url: &str) -> Result<leasehold::Client, ConnectError> {
    let Some(config) = quorum(url)? else { return leasehold::connect(url).await };
    let nodes = nodes(&config, redlock::nonblocking::RedisNode::new)?;
    let (quorum, _) = redlock::nonblocking::Quorum::connect(nodes, config.max_ttl(), LOOK_WITHIN).await?;
    Ok(leasehold::Client::builder(Arc::new(quorum)).build()?)
}

/// A client with the blocking facade.
///
/// # Errors
/// As [`leasehold::blocking::connect`].
pub(crate) fn threads(url: &str) -> Result<leasehold::blocking::Client, ConnectError> {
    let Some(config) = quorum(url)? else { return leasehold::blocking::connect(url) };
    let nodes = nodes(&config, redlock::blocking::RedisNode::new)?;
    let (quorum, _) = redlock::blocking::Quorum::connect(nodes, config.max_ttl(), LOOK_WITHIN)?;
    Ok(leasehold::blocking::Client::builder(Arc::new(quorum)).build()?)
}

/// The quorum of a `redlock://` URL, without a client: no request is sent yet.
///
/// # Errors
/// `Invalid` for any other URL, `Backend` if threads cannot be started.
pub fn observer(url: &str) -> Result<redlock::blocking::Quorum, ConnectError> {
    let config = RedlockConfig::from_url(url)?;
    let nodes = nodes(&config, redlock::blocking::RedisNode::new)?;
    Ok(redlock::blocking::Quorum::of(nodes, config.max_ttl())?)
}

fn quorum(url: &str) -> Result<Option<RedlockConfig>, ConnectError> {
    let is_one = url.starts_with("redlock:");
    Ok(is_one.then(|| RedlockConfig::from_url(url)).transpose()?)
}

/// All workers must use the same name for a node, but each reaches it through its own proxy. So nodes are named by
/// position.
fn nodes<N>(
    config: &RedlockConfig,
    make: fn(&RedisConfig, String) -> Result<N, BackendError>,
) -> Result<Vec<N>, ConnectError> {
    let node = |(place, url): (usize, &redlock::NodeUrl)| {
        Ok(make(&RedisConfig::from_url(url.url())?, format!("node-{place}"))?)
    };
    config.nodes().iter().enumerate().map(node).collect()
}
