//! The suite of all backends on real servers. The cases share a server, each under a prefix of its own and over a proxy of its own,
//! except those that restart the server: each of them has one of its own.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;

use lock_conformance::Fault;
use lock_core::{AsyncBackend, BlockingBackend};
use lock_mysql::MysqlConfig;
use lock_mysql::nonblocking::{connect, pooled};
use test_support::bounds::wait_for;
use test_support::suite::{OverProxy, Way};
use test_support::{MysqlOptions, MysqlServer, Shared};
use tokio::runtime::Handle;

lock_conformance::suite!(OverProxy<Own>);

/// The same over pools of the user's.
mod pools {
    use test_support::suite::OverProxy;

    use crate::InPools;

    lock_conformance::suite!(OverProxy<InPools>, nonblocking: store, blocking: store);
}

struct Own;
struct InPools;

static SERVER: Shared<MysqlServer> = Shared::new();

fn config(url: &str) -> MysqlConfig {
    MysqlConfig::from_url(url).unwrap()
}

/// The URL without what only this library understands. A socket would lead past the proxy.
fn driver_url(url: &str) -> String {
    format!("{}?prefer_socket=false&pool_min=1&pool_max=4", url.split_once('?').unwrap().0)
}

impl Way for Own {
    type Server = MysqlServer;

    fn shared() -> Arc<MysqlServer> {
        SERVER.get(|| MysqlServer::start_with(MysqlOptions::default().volatile()))
    }

    fn alone() -> MysqlServer {
        MysqlServer::start()
    }

    fn url_at(server: &MysqlServer, port: u16) -> String {
        format!("{}?sslmode=disable", server.url_at(port))
    }

    fn nonblocking(url: &str, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Arc::new(wait_for("a connection", || runtime.block_on(connect(&config(url)))))
    }

    fn blocking(url: &str) -> Arc<dyn BlockingBackend> {
        Arc::new(wait_for("a connection", || lock_mysql::blocking::connect(&config(url))))
    }
}

impl Way for InPools {
    type Server = MysqlServer;
    const FAULTS: &'static [Fault] = &[Fault::Cut, Fault::Hang, Fault::RestartWithData, Fault::RestartEmpty];
    const WHY_NOT_ALL: &'static str = "a pool resets connections, and it is the answer to that which is lost";

    fn shared() -> Arc<MysqlServer> {
        Own::shared()
    }

    fn alone() -> MysqlServer {
        Own::alone()
    }

    fn url_at(server: &MysqlServer, port: u16) -> String {
        Own::url_at(server, port)
    }

    fn nonblocking(url: &str, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        let pool = mysql_async::Pool::new(driver_url(url).as_str());
        Arc::new(wait_for("a connection", || runtime.block_on(pooled(pool.clone(), &config(url)))))
    }

    fn blocking(url: &str) -> Arc<dyn BlockingBackend> {
        let options = mysql::Opts::from_url(&driver_url(url)).unwrap();
        let pool = wait_for("a pool", || mysql::Pool::new(options.clone()));
        Arc::new(wait_for("a connection", || lock_mysql::blocking::pooled(pool.clone(), &config(url))))
    }

    fn bystander(url: &str) -> Arc<dyn BlockingBackend> {
        Own::blocking(url)
    }
}
