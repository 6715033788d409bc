//! A server as a part of a store: a node of a quorum, or a primary of a cluster.

use std::sync::Arc;

use lock_core::Prefix;

use super::Redis;
use super::link::Link;
use super::source::Source;
use crate::RedisConfig;
use crate::channel::Channel;
use crate::failure::Failure;
use crate::server::greeting::{Role, warnings};
use crate::target::Target;
use crate::wire::Wire;

impl Redis {
    /// A server as a node of a quorum. Nothing is connected yet.
    pub(crate) fn node(target: Target, prefix: &Prefix) -> Self {
        let channel = Channel::new();
        let wire = Wire::own(&target, channel.clone()).with_prefix(prefix);
        Self { wire, source: Source::Own(Link::new(target, Role::Node, channel)), warnings: Vec::new() }
    }

    /// A primary of a cluster. Nothing is connected yet.
    pub(crate) fn shard(target: Target, config: &RedisConfig, channel: Option<Arc<Channel>>) -> Self {
        let wire = Wire::own(&target, channel.clone()).clustered().with_prefix(config.own_prefix());
        let source = Source::Own(Link::new(target, Role::of(config), channel));
        Self { wire: wire.with_copies(config.copies()), source, warnings: Vec::new() }
    }

    /// A hash slot has left this primary.
    pub(crate) fn forget_verified(&self) {
        let live = self.source.link().and_then(Link::at_hand);
        live.iter().for_each(|live| live.server_info().forget_verified());
    }

    /// Connects, if there is no connection yet, and returns warnings about the server.
    pub(crate) async fn greet(&self, config: &RedisConfig) -> Result<Vec<String>, Failure> {
        let Some(link) = self.source.link() else { return Ok(Vec::new()) };
        let warnings = warnings(config, link.live().await?.server_info());
        self.check_disk(config).await?;
        Ok(warnings)
    }

    /// Whether its waiters are notified.
    pub(crate) fn hears(&self) -> bool {
        self.wire.channel.as_ref().is_some_and(|channel| channel.is_open())
    }
}
