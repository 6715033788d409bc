//! The suite of all backends on one server, reached through a proxy.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_conformance::{Exemption, Facade, Fault, Faults, Harness, Need, NoFaults};
use lock_core::{AsyncBackend, BlockingBackend};
use lock_host::{HostClock, SharedClock};
use tokio::runtime::Handle;

use crate::{AfterDrop, EtcdServer, MysqlServer, PostgresServer, Proxy, RedisServer, ZookeeperServer};

/// A server that cases restart.
pub trait Restarts: Send + Sync + 'static {
    /// Where it listens.
    fn port(&self) -> u16;

    /// Kills it, and starts it with what it has stored.
    fn restart_with_data(&mut self);

    /// Kills it, and starts it without data.
    fn restart_empty(&mut self);
}

/// Which server the cases use, and how clients reach it.
pub trait Way: Send + Sync + 'static {
    /// The server.
    type Server: Restarts;
    /// The faults that clients can be hit by.
    const FAULTS: &'static [Fault] = &Fault::ALL;
    /// Why the others cannot hit them.
    const WHY_NOT_ALL: &'static str = "";

    /// What the store lacks, and why.
    const LACKS: &'static [(Need, &'static str)] = &[];
    /// Whether waiters act by themselves when a lease ends.
    const WAITERS_ACT: bool = false;
    /// How much later than its ttl a lease may end that nobody renews.
    const ENDS_LATE: Duration = Duration::ZERO;

    /// The server that most cases share, each under a prefix of its own and over a proxy of its own.
    fn shared() -> Arc<Self::Server>;

    /// A server for one case that restarts it.
    fn alone() -> Self::Server;

    /// A URL with a question mark, through this port.
    fn url_at(server: &Self::Server, port: u16) -> String;

    /// A backend for tokio.
    fn nonblocking(url: &str, runtime: &Handle) -> Arc<dyn AsyncBackend>;

    /// A backend for threads.
    fn blocking(url: &str) -> Arc<dyn BlockingBackend>;

    /// A backend that no fault hits.
    fn bystander(url: &str) -> Arc<dyn BlockingBackend> {
        Self::blocking(url)
    }
}

/// A server, reached through a proxy by all but the bystanders.
pub struct OverProxy<W: Way> {
    through_proxy: String,
    direct: String,
    way: PhantomData<W>,
    /// `None` if the server belongs to another process.
    service: Option<Service<W>>,
}

struct Service<W: Way> {
    server: Server<W::Server>,
    proxy: Proxy,
    /// The faults before the proxy began to count: connections that were cut, servers that were restarted.
    struck: AtomicU64,
}

enum Server<S> {
    Shared { _until_the_end: Arc<S> },
    Own(Mutex<S>),
}

/// An option of a URL that keeps the locks of a case apart from those of the others.
pub fn prefix_of_a_case() -> String {
    static CASES: AtomicU64 = AtomicU64::new(0);
    format!("prefix=case-{}", CASES.fetch_add(1, Ordering::SeqCst))
}

impl<W: Way> OverProxy<W> {
    fn of(port: u16, url_at: impl Fn(u16) -> String, server: Server<W::Server>) -> Self {
        let (proxy, prefix) = (Proxy::start(port), prefix_of_a_case());
        let [through_proxy, direct] = [proxy.port(), port].map(|port| format!("{}&{prefix}", url_at(port)));
        let service = Service { server, proxy, struck: 0.into() };
        Self { through_proxy, direct, way: PhantomData, service: Some(service) }
    }
}

impl<W: Way> Harness for OverProxy<W> {
    fn new() -> Self {
        let server = W::shared();
        let keeps = Arc::clone(&server);
        Self::of(server.port(), |port| W::url_at(&keeps, port), Server::Shared { _until_the_end: server })
    }

    fn alone() -> Self {
        let server = W::alone();
        let own = W::url_at(&server, server.port());
        let (port, before) = (server.port(), format!(":{}", server.port()));
        Self::of(port, |port| own.replacen(&before, &format!(":{port}"), 1), Server::Own(Mutex::new(server)))
    }

    fn async_backend(&self, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        W::nonblocking(&self.through_proxy, runtime)
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        W::blocking(&self.through_proxy)
    }

    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        W::bystander(&self.direct)
    }

    fn clock(&self) -> SharedClock {
        Arc::new(HostClock)
    }

    fn elapse(&self, by: Duration) {
        std::thread::sleep(by);
    }

    fn waiters_act(&self) -> bool {
        W::WAITERS_ACT
    }

    fn ends_late(&self) -> Duration {
        W::ENDS_LATE
    }

    fn faults(&self) -> &dyn Faults {
        match &self.service {
            Some(service) => service,
            None => &NoFaults,
        }
    }

    fn exempt(&self, _facade: Facade) -> Vec<Exemption> {
        let missing = Fault::ALL.into_iter().filter(|fault| !W::FAULTS.contains(fault));
        let faults = missing.map(|fault| Exemption::new(Need::Fault(fault), W::WHY_NOT_ALL));
        faults.chain(W::LACKS.iter().map(|(need, why)| Exemption::new(*need, why))).collect()
    }

    fn address(&self) -> Option<String> {
        Some(self.direct.clone())
    }

    fn attach(address: &str) -> Self {
        Self { through_proxy: address.into(), direct: address.into(), way: PhantomData, service: None }
    }
}

impl<W: Way> Service<W> {
    fn own_server(&self) -> MutexGuard<'_, W::Server> {
        let Server::Own(server) = &self.server else { panic!("others use the server") };
        server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Way> Faults for Service<W> {
    fn offers(&self) -> &[Fault] {
        W::FAULTS
    }

    fn begin(&self, fault: Fault) {
        let struck = match fault {
            Fault::Cut => {
                self.proxy.set(crate::Fault::Refuse);
                self.proxy.cut().try_into().unwrap_or(u64::MAX)
            }
            Fault::Hang => {
                self.proxy.set(crate::Fault::Hold);
                0
            }
            Fault::LoseReplies => {
                self.proxy.set(crate::Fault::DropReplies(AfterDrop::Cut));
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

impl<W: Way> fmt::Debug for OverProxy<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverProxy").field("direct", &self.direct).finish_non_exhaustive()
    }
}

macro_rules! restarts {
    ($($server:ident)*) => {$(
        impl Restarts for $server {
            fn port(&self) -> u16 {
                self.port()
            }

            fn restart_with_data(&mut self) {
                self.restart_with_data();
            }

            fn restart_empty(&mut self) {
                self.restart_empty();
            }
        }
    )*};
}

restarts!(EtcdServer MysqlServer RedisServer ZookeeperServer);

impl Restarts for PostgresServer {
    fn port(&self) -> u16 {
        self.port()
    }

    fn restart_with_data(&mut self) {
        // A release that frees a lock may be lost in a crash; the cases expect it to be kept.
        self.psql("CHECKPOINT");
        self.restart_with_data();
    }

    fn restart_empty(&mut self) {
        self.restart_empty();
    }
}
