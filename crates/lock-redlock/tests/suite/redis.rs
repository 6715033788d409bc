//! Three real servers, which the cases share. Each case has a deployment of its own in one of their databases, over proxies of its own;
//! those that restart a server have servers of their own. Faults strike all of them, but for restarts: of a majority that restarted,
//! nobody votes for a while, as the tests of recovery show.
//!
//! A prefix would not do: a node counts tokens for all locks of a database. While others draw, its nodes draw different tokens, and an
//! owner that asks again and is answered by another majority may get another token.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use lock_conformance::{Exemption, Facade, Fault, Faults, Harness, Need, NoFaults};
use lock_core::{AsyncBackend, BlockingBackend, Ttl};
use lock_host::{HostClock, SharedClock};
use lock_redis::RedisConfig;
use lock_redis::node;
use lock_redlock as redlock;
use lock_redlock::quorum::Purpose;
use test_support::{AfterDrop, Proxy, RedisOptions, RedisServer, Shared};
use tokio::runtime::Handle;

lock_conformance::suite!(RedisHarness);

const WITHIN: Duration = Duration::from_secs(5);

/// A quorum of servers, reached through proxies by all but the bystanders.
pub(crate) struct RedisHarness {
    through_proxies: Vec<String>,
    direct: Vec<String>,
    /// `None` if the servers belong to another process.
    services: Option<Services>,
}

struct Services {
    servers: Servers,
    proxies: Vec<Proxy>,
    /// How many connections were cut before the proxies began to count.
    struck: AtomicU64,
}

enum Servers {
    Shared { _until_the_end: Arc<Vec<RedisServer>> },
    Own(Mutex<Vec<RedisServer>>),
}

const EXEMPT: [Exemption; 2] = [
    Exemption::new(Need::Queue, "nodes are asked in parallel, never to queue"),
    Exemption::new(Need::Latch, "each node would count the arrivals on its own"),
];

/// Servers with more databases than there are cases.
fn start(options: RedisOptions) -> Vec<RedisServer> {
    let options = options.arguments(&["--databases", "2000"]);
    (0..3).map(|_| RedisServer::start_with(options.clone())).collect()
}

fn ports(servers: &[RedisServer]) -> Vec<u16> {
    servers.iter().map(RedisServer::port).collect()
}

impl RedisHarness {
    /// A new deployment.
    fn of(ports: &[u16], servers: Servers) -> Self {
        static CASES: AtomicU64 = AtomicU64::new(0);
        let database = CASES.fetch_add(1, Ordering::SeqCst);
        let url = |port: u16| format!("redis://127.0.0.1:{port}/{database}");
        let proxies: Vec<_> = ports.iter().map(|port| Proxy::start(*port)).collect();
        let through_proxies = proxies.iter().map(|proxy| url(proxy.port())).collect();
        let direct: Vec<_> = ports.iter().map(|port| url(*port)).collect();
        Self::quorum(&direct, Purpose::Init);
        Self { through_proxies, direct, services: Some(Services { servers, proxies, struck: 0.into() }) }
    }

    fn quorum(urls: &[String], purpose: Purpose) -> redlock::blocking::Redlock<node::blocking::RedisNode> {
        let node = |(index, url): (usize, &String)| {
            node::blocking::RedisNode::new(&RedisConfig::from_url(url).unwrap(), format!("node-{index}")).unwrap()
        };
        let quorum = redlock::blocking::Redlock::of(urls.iter().enumerate().map(node).collect(), Ttl::MAX).unwrap();
        quorum.pass(purpose, WITHIN).unwrap();
        quorum
    }
}

impl Harness for RedisHarness {
    fn new() -> Self {
        static SHARED: Shared<Vec<RedisServer>> = Shared::new();
        let servers = SHARED.get(|| start(RedisOptions::default()));
        Self::of(&ports(&servers), Servers::Shared { _until_the_end: servers })
    }

    fn alone() -> Self {
        let servers = start(RedisOptions::default().append_only());
        Self::of(&ports(&servers), Servers::Own(Mutex::new(servers)))
    }

    fn async_backend(&self, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        let node = |(index, url): (usize, &String)| {
            node::nonblocking::RedisNode::new(&RedisConfig::from_url(url).unwrap(), format!("node-{index}")).unwrap()
        };
        let nodes = self.through_proxies.iter().enumerate().map(node).collect();
        Arc::new(runtime.block_on(redlock::nonblocking::Redlock::connect(nodes, Ttl::MAX, WITHIN)).unwrap().0)
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(Self::quorum(&self.through_proxies, Purpose::Watch))
    }

    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(Self::quorum(&self.direct, Purpose::Watch))
    }

    fn clock(&self) -> SharedClock {
        Arc::new(HostClock)
    }

    fn elapse(&self, by: Duration) {
        std::thread::sleep(by);
    }

    fn faults(&self) -> &dyn Faults {
        match &self.services {
            Some(services) => services,
            None => &NoFaults,
        }
    }

    fn exempt(&self, _facade: Facade) -> Vec<Exemption> {
        EXEMPT.to_vec()
    }

    fn address(&self) -> Option<String> {
        Some(self.direct.join(" "))
    }

    fn attach(address: &str) -> Self {
        let urls: Vec<_> = address.split(' ').map(str::to_owned).collect();
        Self { through_proxies: urls.clone(), direct: urls, services: None }
    }
}

impl Services {
    fn own_servers(&self) -> MutexGuard<'_, Vec<RedisServer>> {
        let Servers::Own(servers) = &self.servers else { panic!("others use the servers") };
        servers.lock().unwrap()
    }

    fn all(&self, fault: test_support::Fault) {
        self.proxies.iter().for_each(|proxy| proxy.set(fault));
    }
}

impl Faults for Services {
    fn offers(&self) -> &[Fault] {
        &Fault::ALL
    }

    fn begin(&self, fault: Fault) {
        let mut struck = 1;
        match fault {
            Fault::Cut => {
                self.all(test_support::Fault::Refuse);
                struck = self.proxies.iter().map(Proxy::cut).sum();
            }
            Fault::Hang => self.all(test_support::Fault::Hold),
            Fault::LoseReplies => self.all(test_support::Fault::DropReplies(AfterDrop::Cut)),
            Fault::RestartWithData => self.own_servers()[0].restart_with_data(),
            Fault::RestartEmpty => self.own_servers()[0].restart_empty(),
        }
        let proxied = matches!(fault, Fault::Hang | Fault::LoseReplies);
        self.struck.store(if proxied { 0 } else { struck.try_into().unwrap() }, Ordering::SeqCst);
    }

    fn fired(&self) -> u64 {
        self.struck.load(Ordering::SeqCst) + self.proxies.iter().map(Proxy::fired).sum::<u64>()
    }

    fn end(&self) {
        self.proxies.iter().for_each(Proxy::heal);
    }
}

impl fmt::Debug for RedisHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisHarness").field("direct", &self.direct).finish_non_exhaustive()
    }
}
