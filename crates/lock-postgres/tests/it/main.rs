//! The suite of all backends on real servers. The cases share a server, each under a prefix of its own and over a proxy of its own,
//! except those that restart the server: each of them has one of its own.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use lock_conformance::{Exemption, Facade, Fault, Faults, Harness, Need, NoFaults};
use lock_core::{AsyncBackend, BlockingBackend};
use lock_host::{Bridged, HostClock, SharedClock};
use lock_postgres::PostgresConfig;
use lock_postgres::nonblocking::{Store, connect, pooled};
use test_support::bounds::wait_for;
use test_support::{AfterDrop, PostgresOptions, PostgresServer, Proxy, Shared};
use tokio::runtime::Handle;
use tokio_postgres::NoTls;

lock_conformance::suite!(PostgresHarness<Own>);

/// The same over pools of the user's.
mod deadpool {
    use crate::{InDeadpool, PostgresHarness};

    lock_conformance::suite!(PostgresHarness<InDeadpool>, nonblocking: store, blocking: none);
}

mod r2d2 {
    use crate::{InR2d2, PostgresHarness};

    lock_conformance::suite!(PostgresHarness<InR2d2>, nonblocking: none, blocking: store);
}

/// How clients reach a server: by connections of their own, unless a method says otherwise.
trait Variant: Send + Sync + 'static {
    const FAULTS: &[Fault] = &Fault::ALL;

    fn nonblocking(url: &str, runtime: &Handle) -> Store {
        wait_for("a connection", || runtime.block_on(connect(&config(url))))
    }

    fn blocking(url: &str) -> Bridged<Store> {
        wait_for("a connection", || lock_postgres::blocking::connect(&config(url)))
    }
}

struct Own;
struct InDeadpool;
struct InR2d2;

impl Variant for Own {}

/// Ahead of each request comes what ends open transactions, and it is the answer to that which is lost.
const FAULTS_OF_POOLS: &[Fault] = &[Fault::Cut, Fault::Hang, Fault::RestartWithData, Fault::RestartEmpty];

impl Variant for InDeadpool {
    const FAULTS: &[Fault] = FAULTS_OF_POOLS;

    fn nonblocking(url: &str, runtime: &Handle) -> Store {
        let manager = deadpool_postgres::Manager::new(driver_url(url).parse().unwrap(), NoTls);
        let pool = deadpool_postgres::Pool::builder(manager).max_size(4).build().unwrap();
        wait_for("a connection", || runtime.block_on(pooled(pool.clone(), &config(url))))
    }
}

impl Variant for InR2d2 {
    const FAULTS: &[Fault] = FAULTS_OF_POOLS;

    fn blocking(url: &str) -> Bridged<Store> {
        let manager = r2d2_postgres::PostgresConnectionManager::new(driver_url(url).parse().unwrap(), NoTls);
        let pool =
            ::r2d2::Pool::builder().max_size(4).min_idle(Some(0)).test_on_check_out(false).build_unchecked(manager);
        wait_for("a connection", || lock_postgres::blocking::pooled(pool.clone(), &config(url)))
    }
}

/// The URL without what only this library understands.
fn driver_url(url: &str) -> &str {
    url.split_once('?').unwrap().0
}

/// A server, reached through a proxy by all but the bystanders.
struct PostgresHarness<V> {
    through_proxy: String,
    direct: String,
    variant: PhantomData<V>,
    /// `None` if the server belongs to another process.
    service: Option<Service>,
}

struct Service {
    offers: &'static [Fault],
    server: Server,
    proxy: Proxy,
    /// The faults before the proxy began to count: connections that were cut, servers that were restarted.
    struck: AtomicU64,
}

enum Server {
    Shared { _until_the_end: Arc<PostgresServer> },
    Own(Mutex<PostgresServer>),
}

/// An option of a URL that keeps the locks of a case apart from those of the others.
fn prefix_of_a_case() -> String {
    static CASES: AtomicU64 = AtomicU64::new(0);
    format!("prefix=case-{}", CASES.fetch_add(1, Ordering::SeqCst))
}

impl<V: Variant> PostgresHarness<V> {
    fn of(port: u16, url_at: impl Fn(u16) -> String, server: Server) -> Self {
        let (proxy, prefix) = (Proxy::start(port), prefix_of_a_case());
        let [through_proxy, direct] = [proxy.port(), port].map(|port| format!("{}&{prefix}", url_at(port)));
        Self {
            through_proxy,
            direct,
            variant: PhantomData,
            service: Some(Service { offers: V::FAULTS, server, proxy, struck: 0.into() }),
        }
    }
}

fn config(url: &str) -> PostgresConfig {
    PostgresConfig::from_url(url).unwrap()
}

static SERVER: Shared<PostgresServer> = Shared::new();

impl<V: Variant> Harness for PostgresHarness<V> {
    fn new() -> Self {
        let server = SERVER.get(|| PostgresServer::start_with(PostgresOptions::default().volatile()));
        let keeps = Arc::clone(&server);
        Self::of(server.port(), |port| keeps.url_at(port), Server::Shared { _until_the_end: server })
    }

    fn alone() -> Self {
        let server = PostgresServer::start();
        let (port, [host, path]) = (server.port(), ["postgres://postgres@127.0.0.1", "postgres?sslmode=disable"]);
        Self::of(port, |port| format!("{host}:{port}/{path}"), Server::Own(Mutex::new(server)))
    }

    fn async_backend(&self, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Arc::new(V::nonblocking(&self.through_proxy, runtime))
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(V::blocking(&self.through_proxy))
    }

    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(lock_postgres::blocking::connect(&config(&self.direct)).unwrap())
    }

    fn clock(&self) -> SharedClock {
        Arc::new(HostClock)
    }

    fn elapse(&self, by: Duration) {
        std::thread::sleep(by);
    }

    fn faults(&self) -> &dyn Faults {
        match &self.service {
            Some(service) => service,
            None => &NoFaults,
        }
    }

    fn exempt(&self, _facade: Facade) -> Vec<Exemption> {
        let reason = "the answer that is lost is that of the statement that ends open transactions";
        let missing = Fault::ALL.into_iter().filter(|fault| !V::FAULTS.contains(fault));
        missing.map(|fault| Exemption::new(Need::Fault(fault), reason)).collect()
    }

    fn address(&self) -> Option<String> {
        Some(self.direct.clone())
    }

    fn attach(address: &str) -> Self {
        Self { through_proxy: address.into(), direct: address.into(), variant: PhantomData, service: None }
    }
}

impl Service {
    fn own_server(&self) -> MutexGuard<'_, PostgresServer> {
        let Server::Own(server) = &self.server else { panic!("others use the server") };
        server.lock().unwrap()
    }
}

impl Faults for Service {
    fn offers(&self) -> &[Fault] {
        self.offers
    }

    fn begin(&self, fault: Fault) {
        let struck = match fault {
            Fault::Cut => {
                self.proxy.set(test_support::Fault::Refuse);
                self.proxy.cut().try_into().unwrap()
            }
            Fault::Hang => {
                self.proxy.set(test_support::Fault::Hold);
                0
            }
            Fault::LoseReplies => {
                self.proxy.set(test_support::Fault::DropReplies(AfterDrop::Cut));
                0
            }
            Fault::RestartWithData => {
                // A release that frees a lock may be lost in a crash; the cases expect it to be kept.
                self.own_server().psql("CHECKPOINT");
                self.own_server().restart_with_data();
                1
            }
            Fault::RestartEmpty => {
                self.own_server().restart_empty();
                1
            }
        };
        self.struck.store(struck, Ordering::SeqCst);
    }

    fn fired(&self) -> u64 {
        self.struck.load(Ordering::SeqCst) + self.proxy.fired()
    }

    fn end(&self) {
        self.proxy.heal();
    }
}

impl<V> fmt::Debug for PostgresHarness<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresHarness").field("direct", &self.direct).finish_non_exhaustive()
    }
}
