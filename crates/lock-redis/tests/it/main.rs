//! The suite of all backends on real servers. The cases share a server of each version, each under a prefix of its own and over a
//! proxy of its own, except those that restart the server: each of them has one of its own.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod cluster;

use std::sync::Arc;

use lock_core::{AsyncBackend, BlockingBackend};
use lock_redis::RedisConfig;
use lock_redis::blocking::Redis as BlockingRedis;
use lock_redis::nonblocking::Redis as AsyncRedis;
use test_support::bounds::wait_for;
use test_support::suite::{OverProxy, Way};
use test_support::{RedisOptions, RedisServer, RedisVersion, Shared};
use tokio::runtime::Handle;

lock_conformance::suite!(OverProxy<Installed>);

/// The same over pools, with a URL for notifications: another way to the server in each facade.
#[cfg(all(feature = "deadpool", feature = "r2d2"))]
mod pools {
    use test_support::suite::OverProxy;

    use crate::InPools;

    lock_conformance::suite!(OverProxy<InPools>, nonblocking: store, blocking: store);
}

/// The same on the oldest server that is supported, where it is the server alone that differs.
mod oldest {
    use test_support::suite::OverProxy;

    use crate::Oldest;

    lock_conformance::suite!(OverProxy<Oldest>, nonblocking: store, blocking: none);
}

struct Installed;
struct Oldest;
#[cfg(all(feature = "deadpool", feature = "r2d2"))]
struct InPools;

static INSTALLED: Shared<RedisServer> = Shared::new();
static OLDEST: Shared<RedisServer> = Shared::new();

fn config(url: &str) -> RedisConfig {
    RedisConfig::from_url(url).unwrap()
}

fn options(version: RedisVersion) -> RedisOptions {
    RedisOptions::default().version(version)
}

impl Way for Installed {
    type Server = RedisServer;

    fn shared() -> Arc<RedisServer> {
        INSTALLED.get(|| RedisServer::start_with(options(RedisVersion::Installed)))
    }

    fn alone() -> RedisServer {
        RedisServer::start_with(options(RedisVersion::Installed).append_only())
    }

    fn url_at(_server: &RedisServer, port: u16) -> String {
        format!("redis://127.0.0.1:{port}?")
    }

    fn nonblocking(url: &str, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Arc::new(wait_for("a connection", || runtime.block_on(AsyncRedis::connect(&config(url)))))
    }

    fn blocking(url: &str) -> Arc<dyn BlockingBackend> {
        Arc::new(wait_for("a connection", || BlockingRedis::connect(&config(url))))
    }
}

impl Way for Oldest {
    type Server = RedisServer;

    fn shared() -> Arc<RedisServer> {
        OLDEST.get(|| RedisServer::start_with(options(RedisVersion::Oldest)))
    }

    fn alone() -> RedisServer {
        RedisServer::start_with(options(RedisVersion::Oldest).append_only())
    }

    fn url_at(server: &RedisServer, port: u16) -> String {
        Installed::url_at(server, port)
    }

    fn nonblocking(url: &str, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Installed::nonblocking(url, runtime)
    }

    fn blocking(url: &str) -> Arc<dyn BlockingBackend> {
        Installed::blocking(url)
    }
}

#[cfg(all(feature = "deadpool", feature = "r2d2"))]
impl Way for InPools {
    type Server = RedisServer;
    const FAULTS: &'static [lock_conformance::Fault] = {
        use lock_conformance::Fault;
        &[Fault::Cut, Fault::Hang, Fault::RestartWithData, Fault::RestartEmpty]
    };
    const WHY_NOT_ALL: &'static str =
        "a pool checks a connection before each use, and it is the answer to the check that is lost";

    fn shared() -> Arc<RedisServer> {
        Installed::shared()
    }

    fn alone() -> RedisServer {
        Installed::alone()
    }

    fn url_at(server: &RedisServer, port: u16) -> String {
        Installed::url_at(server, port)
    }

    fn nonblocking(url: &str, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        let pool = deadpool_redis::Config::from_url(url);
        let pool = pool.create_pool(Some(deadpool_redis::Runtime::Tokio1)).unwrap();
        Arc::new(runtime.block_on(AsyncRedis::pooled(pool, &config(url))).unwrap())
    }

    fn blocking(url: &str) -> Arc<dyn BlockingBackend> {
        let timeouts = lock_redis::blocking::SocketTimeouts::new(std::time::Duration::from_secs(1));
        let pool = r2d2::Pool::builder()
            .max_size(4)
            .min_idle(Some(0))
            .connection_customizer(Box::new(timeouts))
            .build(redis::Client::open(url).unwrap())
            .unwrap();
        Arc::new(BlockingRedis::pooled(pool, &config(url)).unwrap())
    }

    fn bystander(url: &str) -> Arc<dyn BlockingBackend> {
        Installed::blocking(url)
    }
}
