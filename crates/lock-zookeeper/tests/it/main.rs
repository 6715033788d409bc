//! The suite of all backends on real servers. The cases share a server, each under a prefix of its own and over a proxy of its own,
//! except those that restart the server: each of them has one of its own.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use lock_core::{AsyncBackend, BlockingBackend};
use lock_zookeeper::ZookeeperConfig;
use test_support::bounds::wait_for;
use test_support::suite::{OverProxy, Way};
use test_support::{Shared, ZookeeperOptions, ZookeeperServer};
use tokio::runtime::Handle;

lock_conformance::suite!(OverProxy<Alone>);

/// A server that is alone.
struct Alone;

static SERVER: Shared<ZookeeperServer> = Shared::new();

fn config(url: &str) -> ZookeeperConfig {
    ZookeeperConfig::from_url(url).unwrap()
}

impl Way for Alone {
    type Server = ZookeeperServer;
    const WAITERS_ACT: bool = true;
    fn shared() -> Arc<ZookeeperServer> {
        SERVER.get(|| ZookeeperServer::start_with(ZookeeperOptions::default().volatile()))
    }

    fn alone() -> ZookeeperServer {
        ZookeeperServer::start()
    }

    fn url_at(_: &ZookeeperServer, port: u16) -> String {
        format!("zookeeper://127.0.0.1:{port}/?session=4s&tick=500ms")
    }

    fn nonblocking(url: &str, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Arc::new(wait_for("a connection", || runtime.block_on(lock_zookeeper::nonblocking::connect(&config(url)))))
    }

    fn blocking(url: &str) -> Arc<dyn BlockingBackend> {
        Arc::new(wait_for("a connection", || lock_zookeeper::blocking::connect(&config(url))))
    }
}
