//! The suite in a cluster of six servers, Valkey this time. The cases share it, each under a prefix of its own and over proxies
//! of its own, except those that restart the servers: each of them has a cluster of one.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lock_conformance::{Exemption, Facade, Fault, Faults, Harness, Need, NoFaults};
use lock_core::{AsyncBackend, BlockingBackend};
use lock_host::{HostClock, SharedClock};
use test_support::suite::prefix_of_a_case;
use test_support::{AfterDrop, Cluster, Detour, RedisVersion};
use tokio::runtime::Handle;

use crate::{AsyncRedis, BlockingRedis, config};

lock_conformance::suite!(ClusterHarness, nonblocking: store, blocking: store);

const OFFERED: [Fault; 4] = [Fault::Cut, Fault::Hang, Fault::LoseReplies, Fault::RestartWithData];

/// A cluster, reached through proxies by all but the bystanders.
struct ClusterHarness {
    through_proxies: String,
    direct: String,
    /// `None` if the servers belong to another process.
    service: Option<Service>,
}

struct Service {
    detour: Detour,
    /// The faults before the proxies began to count: connections that were cut, servers that were restarted.
    struck: AtomicU64,
    servers: Servers,
}

enum Servers {
    Shared { _until_the_end: Arc<Cluster> },
    Own(Mutex<Cluster>),
}

impl ClusterHarness {
    fn of(detour: Detour, direct: &str, servers: Servers) -> Self {
        let prefix = format!("&{}", prefix_of_a_case());
        let (through_proxies, direct) = (detour.url.clone() + &prefix, direct.to_owned() + &prefix);
        Self { through_proxies, direct, service: Some(Service { detour, struck: 0.into(), servers }) }
    }
}

impl Harness for ClusterHarness {
    fn new() -> Self {
        let cluster = Cluster::shared(RedisVersion::Valkey);
        Self::of(cluster.detour(), &cluster.url(), Servers::Shared { _until_the_end: cluster })
    }

    fn alone() -> Self {
        let cluster = Cluster::of_one();
        Self::of(cluster.detour(), &cluster.url(), Servers::Own(Mutex::new(cluster)))
    }

    fn async_backend(&self, runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Arc::new(runtime.block_on(AsyncRedis::connect(&config(&self.through_proxies))).unwrap())
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(BlockingRedis::connect(&config(&self.through_proxies)).unwrap())
    }

    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(BlockingRedis::connect(&config(&self.direct)).unwrap())
    }

    fn clock(&self) -> SharedClock {
        Arc::new(HostClock)
    }

    fn elapse(&self, by: Duration) {
        thread::sleep(by);
    }

    fn faults(&self) -> &dyn Faults {
        match &self.service {
            Some(service) => service,
            None => &NoFaults,
        }
    }

    fn exempt(&self, _facade: Facade) -> Vec<Exemption> {
        let reason = "servers of a cluster that lose their data are no longer those that the others know";
        let missing = Fault::ALL.into_iter().filter(|fault| !OFFERED.contains(fault));
        missing.map(|fault| Exemption::new(Need::Fault(fault), reason)).collect()
    }

    fn address(&self) -> Option<String> {
        Some(self.direct.clone())
    }

    fn attach(address: &str) -> Self {
        Self { through_proxies: address.into(), direct: address.into(), service: None }
    }
}

impl Service {
    fn set(&self, fault: test_support::Fault) {
        self.detour.proxies.iter().for_each(|proxy| proxy.set(fault));
    }
}

impl Faults for Service {
    fn offers(&self) -> &[Fault] {
        &OFFERED
    }

    fn begin(&self, fault: Fault) {
        let mut struck = 0;
        match fault {
            Fault::Cut => {
                self.set(test_support::Fault::Refuse);
                struck = self.detour.proxies.iter().map(|proxy| proxy.cut() as u64).sum();
            }
            Fault::Hang => self.set(test_support::Fault::Hold),
            Fault::LoseReplies => self.set(test_support::Fault::DropReplies(AfterDrop::Cut)),
            Fault::RestartWithData => {
                let Servers::Own(cluster) = &self.servers else { panic!("others use the cluster") };
                cluster.lock().unwrap().restart_with_data();
                struck = 1;
            }
            Fault::RestartEmpty => unreachable!("it is not offered"),
        }
        self.struck.store(struck, Ordering::SeqCst);
    }

    fn fired(&self) -> u64 {
        self.struck.load(Ordering::SeqCst) + self.detour.proxies.iter().map(test_support::Proxy::fired).sum::<u64>()
    }

    fn end(&self) {
        self.detour.proxies.iter().for_each(test_support::Proxy::heal);
    }
}

impl fmt::Debug for ClusterHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterHarness").field("direct", &self.direct).finish_non_exhaustive()
    }
}
