//! A way to the servers of a cluster through proxies.

use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;

use crate::{Proxy, RedisServer};

/// A way to a cluster that leads through proxies.
#[derive(Debug)]
pub struct Detour {
    /// One for each server, in the same order.
    pub proxies: Vec<Proxy>,
    /// The URL for clients that go this way.
    pub url: String,
}

impl Detour {
    pub(crate) fn around(servers: &[RedisServer], url_at: impl FnOnce(Ipv4Addr) -> String) -> Self {
        let by_port = ["CONFIG", "SET", "cluster-preferred-endpoint-type", "unknown-endpoint"];
        servers.iter().for_each(|server| server.command(&by_port));
        let chance = RandomState::new().hash_one(()).to_be_bytes();
        // The first and the last one have a meaning of their own.
        let host = Ipv4Addr::new(127, 1 + chance[0] / 2, chance[1], 1 + chance[2] / 2);
        let proxy = |server: &RedisServer| Proxy::with_port_of(server.port(), host);
        Self { proxies: servers.iter().map(proxy).collect(), url: url_at(host) }
    }
}
