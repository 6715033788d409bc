//! The suite of all backends on real servers. The cases share a server of each version, each under a prefix of its own and over a
//! proxy of its own, except those that restart the server: each of them has one of its own.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod cluster;

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use lock_conformance::{Exemption, Facade, Fault, Faults, Harness, Need, NoFaults};
use lock_core::{AsyncBackend, BlockingBackend};
use lock_host::{HostClock, SharedClock};
use lock_redis::RedisConfig;
use lock_redis::blocking::Redis as BlockingRedis;
use lock_redis::nonblocking::Redis as AsyncRedis;
use test_support::bounds::wait_for;
use test_support::{AfterDrop, Proxy, RedisOptions, RedisServer, RedisVersion, Shared};
use tokio::runtime::Handle;

lock_conformance::suite!(RedisHarness<Installed>);

/// The same over pools, with a URL for notifications: another way to the server in each facade.
#[cfg(all(feature = "deadpool", feature = "r2d2"))]
mod pools {
    use crate::{InPools, RedisHarness};

    lock_conformance::suite!(RedisHarness<InPools>, nonblocking: store, blocking: store);
}

/// The same on the oldest server that is supported, where it is the server alone that differs.
mod oldest {
    use crate::{Oldest, RedisHarness};

    lock_conformance::suite!(RedisHarness<Oldest>, nonblocking: store, blocking: none);
}

/// Which server a harness starts, and how clients reach it.
trait Variant: Send + Sync + 'static {
    const VERSION: RedisVersion;
    const FAULTS: &[Fault] = &Fault::ALL;

    /// The server that cases share.
    fn shared() -> &'static Shared<RedisServer> {
        static INSTALLED: Shared<RedisServer> = Shared::new();
        &INSTALLED
    }

    fn nonblocking(url: &str, runtime: &Handle) -> AsyncRedis {
        wait_for("a connection", || runtime.block_on(AsyncRedis::connect(&config(url))))
    }

    fn blocking(url: &str) -> BlockingRedis {
        wait_for("a connection", || BlockingRedis::connect(&config(url)))
    }
}

struct Installed;
struct Oldest;
#[cfg(all(feature = "deadpool", feature = "r2d2"))]
struct InPools;

impl Variant for Installed {
    const VERSION: RedisVersion = RedisVersion::Installed;
}

impl Variant for Oldest {
    const VERSION: RedisVersion = RedisVersion::Oldest;

    fn shared() -> &'static Shared<RedisServer> {
        static OLDEST: Shared<RedisServer> = Shared::new();
        &OLDEST
    }
}

#[cfg(all(feature = "deadpool", feature = "r2d2"))]
impl Variant for InPools {
    const VERSION: RedisVersion = RedisVersion::Installed;
    const FAULTS: &[Fault] = &[Fault::Cut, Fault::Hang, Fault::RestartWithData, Fault::RestartEmpty];

    fn nonblocking(url: &str, runtime: &Handle) -> AsyncRedis {
        let pool = deadpool_redis::Config::from_url(url);
        let pool = pool.create_pool(Some(deadpool_redis::Runtime::Tokio1)).unwrap();
        runtime.block_on(AsyncRedis::pooled(pool, &config(url))).unwrap()
    }

    fn blocking(url: &str) -> BlockingRedis {
        let timeouts = lock_redis::blocking::SocketTimeouts::new(Duration::from_secs(1));
        let pool = r2d2::Pool::builder()
            .max_size(4)
            .min_idle(Some(0))
            .connection_customizer(Box::new(timeouts))
            .build(redis::Client::open(url).unwrap())
            .unwrap();
        BlockingRedis::pooled(pool, &config(url)).unwrap()
    }
}

/// A server, reached through a proxy by all but the bystanders.
struct RedisHarness<V> {
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
    Shared { _until_the_end: Arc<RedisServer> },
    Own(Mutex<RedisServer>),
}

/// An option of a URL that keeps the locks of a case apart from those of the others.
fn prefix_of_a_case() -> String {
    static CASES: AtomicU64 = AtomicU64::new(0);
    format!("prefix=case-{}", CASES.fetch_add(1, Ordering::SeqCst))
}

impl<V: Variant> RedisHarness<V> {
    fn of(port: u16, server: Server) -> Self {
        let (proxy, prefix) = (Proxy::start(port), prefix_of_a_case());
        let [through_proxy, direct] = [proxy.port(), port].map(|port| format!("redis://127.0.0.1:{port}?{prefix}"));
        let service = Service { offers: V::FAULTS, server, proxy, struck: 0.into() };
        Self { through_proxy, direct, variant: PhantomData, service: Some(service) }
    }
}

impl<V: Variant> Harness for RedisHarness<V> {
    fn new() -> Self {
        let server = V::shared().get(|| RedisServer::start_with(RedisOptions::default().version(V::VERSION)));
        Self::of(server.port(), Server::Shared { _until_the_end: server })
    }

    fn alone() -> Self {
        let server = RedisServer::start_with(RedisOptions::default().version(V::VERSION).append_only());
        Self::of(server.port(), Server::Own(Mutex::new(server)))
    }

    fn async_backend(&self, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Arc::new(V::nonblocking(&self.through_proxy, runtime))
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(V::blocking(&self.through_proxy))
    }

    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(BlockingRedis::connect(&config(&self.direct)).unwrap())
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
        let reason = "a pool checks a connection before each use, and it is the answer to the check that is lost";
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

fn config(url: &str) -> RedisConfig {
    RedisConfig::from_url(url).unwrap()
}

impl Service {
    fn own_server(&self) -> MutexGuard<'_, RedisServer> {
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

impl<V> fmt::Debug for RedisHarness<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisHarness").field("direct", &self.direct).finish_non_exhaustive()
    }
}
