//! A quorum of independent Redis servers: `redlock://HOST,HOST,HOST`.
//!
//! Most programs only need [`connect`](crate::connect). This module is for operators: a quorum that can run a [recovery
//! pass](lock_redlock::nonblocking::Redlock::pass), which restores restarted nodes, and the report of such a pass.

pub use lock_redlock::quorum::{NodeReport, Purpose, Recovery, Report};
pub use lock_redlock::{NodeUrl, RedlockConfig};

use std::time::Duration;

use lock_core::BackendError;
use lock_redis::RedisConfig;

use crate::ConnectError;

/// How long each step of the first pass may take. Chosen: a node that is further away is of no use for locks.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// Makes the nodes of a configuration. All URLs are read before the first is made.
fn nodes_of<N>(
    config: &RedlockConfig,
    node: fn(&RedisConfig, &NodeUrl) -> Result<N, BackendError>,
) -> Result<Vec<N>, ConnectError> {
    let read = |url: &NodeUrl| RedisConfig::from_url(url.url());
    let configs = config.nodes().iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(configs.iter().zip(config.nodes()).map(|(redis, url)| node(redis, url)).collect::<Result<_, _>>()?)
}

/// Quorums for plain threads.
pub mod blocking {
    pub use lock_redis::node::blocking::RedisNode;

    use super::{CONNECT_WITHIN, ConnectError, RedlockConfig, Report, nodes_of};

    /// A quorum of Redis servers.
    pub type Quorum = lock_redlock::blocking::Redlock<RedisNode>;

    /// The nodes of a configuration, in its order. Nothing is connected yet.
    ///
    /// # Errors
    /// `Invalid` for a node's URL that is not valid.
    pub fn nodes(config: &RedlockConfig) -> Result<Vec<RedisNode>, ConnectError> {
        nodes_of(config, |redis, url| RedisNode::new(redis, url.address()))
    }

    /// The quorum of a configuration. Nothing is connected, and no node votes, before its first recovery pass.
    ///
    /// # Errors
    /// As [`nodes`]; `Backend` if this host cannot start threads.
    pub fn open(config: &RedlockConfig) -> Result<Quorum, ConnectError> {
        Ok(Quorum::of(nodes(config)?, config.max_ttl())?)
    }

    /// The quorum of a configuration after a first recovery pass, and its report. A quorum that does not vote yet is
    /// not an error here: its answers to requests say so.
    ///
    /// # Errors
    /// `Invalid` before anything was changed; `Backend` if nodes are misconfigured, or if most cannot be reached.
    ///
    /// # Blocking
    /// Until all nodes have answered, for some seconds at most.
    pub fn connect(config: &RedlockConfig) -> Result<(Quorum, Report), ConnectError> {
        Ok(Quorum::connect(nodes(config)?, config.max_ttl(), CONNECT_WITHIN)?)
    }
}

/// Quorums for tokio.
#[cfg(feature = "async")]
pub mod nonblocking {
    pub use lock_redis::node::nonblocking::RedisNode;

    use super::{CONNECT_WITHIN, ConnectError, RedlockConfig, Report, nodes_of};

    /// A quorum of Redis servers.
    pub type Quorum = lock_redlock::nonblocking::Redlock<RedisNode>;

    /// The nodes of a configuration, in its order. Nothing is connected yet.
    ///
    /// # Errors
    /// `Invalid` for a node's URL that is not valid.
    pub fn nodes(config: &RedlockConfig) -> Result<Vec<RedisNode>, ConnectError> {
        nodes_of(config, |redis, url| RedisNode::new(redis, url.address()))
    }

    /// The quorum of a configuration. Nothing is connected, and no node votes, before its first recovery pass.
    ///
    /// # Errors
    /// As [`nodes`].
    pub fn open(config: &RedlockConfig) -> Result<Quorum, ConnectError> {
        Ok(Quorum::of(nodes(config)?, config.max_ttl())?)
    }

    /// The quorum of a configuration after a first recovery pass, and its report. A quorum that does not vote yet is
    /// not an error here: its answers to requests say so.
    ///
    /// # Errors
    /// `Invalid` before anything was changed; `Backend` if nodes are misconfigured, or if most cannot be reached.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: a pass may stop after any step.
    pub async fn connect(config: &RedlockConfig) -> Result<(Quorum, Report), ConnectError> {
        Ok(Quorum::connect(nodes(config)?, config.max_ttl(), CONNECT_WITHIN).await?)
    }
}
