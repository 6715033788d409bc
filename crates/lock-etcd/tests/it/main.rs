//! The suite of all backends on real servers. The cases share a server, each under a prefix of its own and over a proxy of its own,
//! except those that restart the server: each of them has one of its own.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use lock_core::{AsyncBackend, BlockingBackend};
use lock_etcd::EtcdConfig;
use test_support::bounds::wait_for;
use test_support::suite::{OverProxy, Way};
use test_support::{EtcdServer, EtcdVersion, Shared};
use tokio::runtime::Handle;

lock_conformance::suite!(OverProxy<Alone>);

/// A server that is alone.
struct Alone;

static SERVER: Shared<EtcdServer> = Shared::new();

fn config(url: &str) -> EtcdConfig {
    EtcdConfig::from_url(url).unwrap()
}

impl Way for Alone {
    type Server = EtcdServer;
    const WAITERS_ACT: bool = true;
    /// A ttl is rounded up to a second, and one more is added. The server looks every half second for leases that have ended.
    const ENDS_LATE: Duration = Duration::from_secs(3);

    fn shared() -> Arc<EtcdServer> {
        SERVER.get(|| EtcdServer::start_version(EtcdVersion::V3_4))
    }

    fn alone() -> EtcdServer {
        EtcdServer::start_version(EtcdVersion::V3_4)
    }

    fn url_at(_: &EtcdServer, port: u16) -> String {
        format!("etcd://127.0.0.1:{port}/?")
    }

    fn nonblocking(url: &str, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Arc::new(wait_for("a connection", || runtime.block_on(lock_etcd::nonblocking::connect(&config(url)))))
    }

    fn blocking(url: &str) -> Arc<dyn BlockingBackend> {
        Arc::new(wait_for("a connection", || lock_etcd::blocking::connect(&config(url))))
    }
}
