//! The suite of all backends on real servers. The cases share a server, each under a prefix of its own and over a proxy of its own,
//! except those that restart the server: each of them has one of its own.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use lock_conformance::Fault;
use lock_core::{AsyncBackend, BlockingBackend};
use lock_postgres::PostgresConfig;
use lock_postgres::nonblocking::{connect, pooled};
use test_support::bounds::wait_for;
use test_support::suite::{OverProxy, Way};
use test_support::{PostgresOptions, PostgresServer, Shared};
use tokio::runtime::Handle;
use tokio_postgres::NoTls;

lock_conformance::suite!(OverProxy<Own>);

/// The same over pools of the user's.
mod pools {
    use test_support::suite::OverProxy;

    use crate::InPools;

    lock_conformance::suite!(OverProxy<InPools>, nonblocking: store, blocking: store);
}

struct Own;
struct InPools;

static SERVER: Shared<PostgresServer> = Shared::new();

fn config(url: &str) -> PostgresConfig {
    PostgresConfig::from_url(url).unwrap()
}

/// The URL without what only this library understands.
fn driver_url(url: &str) -> &str {
    url.split_once('?').unwrap().0
}

impl Way for Own {
    type Server = PostgresServer;

    fn shared() -> Arc<PostgresServer> {
        SERVER.get(|| PostgresServer::start_with(PostgresOptions::default().volatile()))
    }

    fn alone() -> PostgresServer {
        PostgresServer::start()
    }

    fn url_at(server: &PostgresServer, port: u16) -> String {
        server.url_at(port)
    }

    fn nonblocking(url: &str, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Arc::new(wait_for("a connection", || runtime.block_on(connect(&config(url)))))
    }

    fn blocking(url: &str) -> Arc<dyn BlockingBackend> {
        Arc::new(wait_for("a connection", || lock_postgres::blocking::connect(&config(url))))
    }
}

impl Way for InPools {
    type Server = PostgresServer;
    const FAULTS: &'static [Fault] = &[Fault::Cut, Fault::Hang, Fault::RestartWithData, Fault::RestartEmpty];
    const WHY_NOT_ALL: &'static str = "the answer that is lost is that of the statement that ends open transactions";

    fn shared() -> Arc<PostgresServer> {
        Own::shared()
    }

    fn alone() -> PostgresServer {
        Own::alone()
    }

    fn url_at(server: &PostgresServer, port: u16) -> String {
        Own::url_at(server, port)
    }

    fn nonblocking(url: &str, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        let manager = deadpool_postgres::Manager::new(driver_url(url).parse().unwrap(), NoTls);
        let pool = deadpool_postgres::Pool::builder(manager).max_size(4).build().unwrap();
        Arc::new(wait_for("a connection", || runtime.block_on(pooled(pool.clone(), &config(url)))))
    }

    fn blocking(url: &str) -> Arc<dyn BlockingBackend> {
        let manager = r2d2_postgres::PostgresConnectionManager::new(driver_url(url).parse().unwrap(), NoTls);
        let pool =
            r2d2::Pool::builder().max_size(4).min_idle(Some(0)).test_on_check_out(false).build_unchecked(manager);
        Arc::new(wait_for("a connection", || lock_postgres::blocking::pooled(pool.clone(), &config(url))))
    }

    fn bystander(url: &str) -> Arc<dyn BlockingBackend> {
        Own::blocking(url)
    }
}
