//! The suite of all backends on real servers: each test has a redis-server and a proxy of its own.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use lock_conformance::{Exemption, Facade, Fault, Faults, Harness, NoFaults};
use lock_core::{AsyncBackend, BlockingBackend};
use lock_host::{HostClock, SharedClock};
use lock_redis::RedisConfig;
use test_support::{AfterDrop, Proxy, RedisOptions, RedisServer, RedisVersion};
use tokio::runtime::Handle;

lock_conformance::suite!(RedisHarness<Installed>);

/// The same on the oldest server that is supported.
mod oldest {
    use crate::{Oldest, RedisHarness};

    lock_conformance::suite!(RedisHarness<Oldest>);
}

/// Which server a harness starts.
trait Version: Send + Sync + 'static {
    const VERSION: RedisVersion;
}

struct Installed;
struct Oldest;

impl Version for Installed {
    const VERSION: RedisVersion = RedisVersion::Installed;
}

impl Version for Oldest {
    const VERSION: RedisVersion = RedisVersion::Oldest;
}

/// A server, reached through a proxy by all but the bystanders.
struct RedisHarness<V> {
    through_proxy: String,
    direct: String,
    version: PhantomData<V>,
    /// None where the server is another process's.
    service: Option<Service>,
}

struct Service {
    server: Mutex<RedisServer>,
    proxy: Proxy,
    /// What struck before the proxy began to count: connections that were cut, servers that were restarted.
    struck: AtomicU64,
}

impl<V: Version> Harness for RedisHarness<V> {
    fn new() -> Self {
        let server = RedisServer::start_with(RedisOptions::default().version(V::VERSION).append_only());
        let proxy = Proxy::start(server.port());
        let (through_proxy, direct) = (server.url_at(proxy.port()), server.url());
        let service = Service { server: Mutex::new(server), proxy, struck: 0.into() };
        Self { through_proxy, direct, version: PhantomData, service: Some(service) }
    }

    fn async_backend(&self, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        let config = RedisConfig::from_url(&self.through_proxy).unwrap();
        Arc::new(runtime.block_on(lock_redis::nonblocking::Redis::connect(&config)).unwrap())
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        connect(&self.through_proxy)
    }

    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        connect(&self.direct)
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
        Vec::new()
    }

    fn address(&self) -> Option<String> {
        Some(self.direct.clone())
    }

    fn attach(address: &str) -> Self {
        Self { through_proxy: address.into(), direct: address.into(), version: PhantomData, service: None }
    }
}

fn connect(url: &str) -> Arc<dyn BlockingBackend> {
    Arc::new(lock_redis::blocking::Redis::connect(&RedisConfig::from_url(url).unwrap()).unwrap())
}

impl Service {
    fn server(&self) -> MutexGuard<'_, RedisServer> {
        self.server.lock().unwrap()
    }
}

impl Faults for Service {
    fn offers(&self) -> &[Fault] {
        &Fault::ALL
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
                self.server().restart_with_data();
                1
            }
            Fault::RestartEmpty => {
                self.server().restart_empty();
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
