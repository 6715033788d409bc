//! Redis alone, with sentinels, as a cluster, and as a quorum.

use std::thread;
use std::time::Duration;

use fastrand::Rng;
use leasehold::redis::{RedisConfig, declare_new};
use leasehold::redlock::Purpose;
use stress::cast::HOT;
use stress::check::Loss;
use stress::connect::observer;
use stress::crew::Post;
use stress::history::now;
use stress::part::Facade;
use test_support::{Cluster, Machine, Proxy, RedisOptions, RedisServer, Trio};

use super::host::Host;
use super::{Deployment, Start, behind_a_proxy, fill_disk, post};
use crate::fault::LASTS;

/// How long a server is suspended behind sentinels: they take one for dead that is silent for 700 ms.
const BRIEFLY: Duration = Duration::from_millis(200);
/// How long a server evicts keys. Chosen: long enough to evict all of them.
const EVICTS_FOR: Duration = Duration::from_millis(50);
/// How long the preparation of a quorum may take.
const INIT_WITHIN: Duration = Duration::from_secs(2);

/// A server that writes its changes to a file before it answers. It refuses changes while it cannot.
fn persistent(host: &Host) -> RedisServer {
    RedisServer::start_with(RedisOptions::default().arguments(&["--appendonly", "yes"]).on(&host.machine))
}

/// In microseconds.
fn clock(server: &RedisServer) -> u64 {
    let (seconds, micros): (u64, u64) = server.command(&["TIME"]);
    seconds * 1_000_000 + micros
}

fn suspend(server: &RedisServer, length: Duration) {
    server.stop();
    thread::sleep(length);
    server.resume();
}

/// One server with an append-only file.
pub(crate) struct Alone {
    server: RedisServer,
    host: Host,
}

impl Start for Alone {
    fn start() -> Self {
        let host = Host::new();
        Self { server: persistent(&host), host }
    }
}

impl Alone {
    /// A number of `INFO`, or 0.
    fn statistic(&self, section: &str, name: &str) -> u64 {
        let info: String = self.server.command(&["INFO", section]);
        let count = info.lines().find_map(|line| line.strip_prefix(name));
        count.map_or(0, |count| count.trim().parse().unwrap())
    }

    fn set_memory(&self, most: &str, policy: &str) {
        self.server.command::<()>(&["CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", most]);
    }
}

impl Deployment for Alone {
    fn post(&self, facade: Facade) -> Post {
        behind_a_proxy(facade, self.server.port(), |port| self.server.url_at(port))
    }

    fn kill(&mut self, _: &mut Rng) {
        self.server.restart_with_data();
    }

    fn stop(&mut self, _: &mut Rng) {
        suspend(&self.server, LASTS);
    }

    fn fill_memory(&mut self) -> bool {
        let refused = |server: &Self| server.statistic("errorstats", "errorstat_OOM:count=");
        let before = refused(self);
        self.set_memory("1", "noeviction");
        thread::sleep(LASTS);
        self.set_memory("0", "noeviction");
        refused(self) > before
    }

    fn fill_disk(&mut self, _: &Machine) -> bool {
        fill_disk(&self.host.machine, self.server.directory())
    }

    fn step_clock(&mut self) -> bool {
        let server = &self.server;
        self.host.step_back(|| clock(server))
    }

    fn evict(&mut self) -> Option<Loss> {
        let evicted = |server: &Self| server.statistic("stats", "evicted_keys:");
        let before = evicted(self);
        self.set_memory("1", "allkeys-random");
        // Nothing is granted while the memory is full.
        let watermark = clock(&self.server);
        thread::sleep(EVICTS_FOR);
        self.set_memory("0", "noeviction");
        (evicted(self) > before).then(|| Loss { at: now(), watermark })
    }
}

/// A primary and two replicas that sentinels watch.
pub(crate) struct Sentinels(Trio);

impl Start for Sentinels {
    fn start() -> Self {
        let trio = Trio::start();
        let sentinels = Self(trio);
        declare_new(&RedisConfig::from_url(&sentinels.url()).unwrap()).unwrap();
        sentinels
    }
}

impl Sentinels {
    fn url(&self) -> String {
        self.0.url().replace("failover=grant", "failover=dwell&max_ttl=2s&replicas=2")
    }
}

impl Deployment for Sentinels {
    fn post(&self, facade: Facade) -> Post {
        post(facade, self.url(), Vec::new())
    }

    fn kill(&mut self, _: &mut Rng) {
        let killed = self.0.kill_primary();
        self.0.wait_for_another_than(killed);
        self.0.rejoin();
        self.0.wait_until_whole();
    }

    fn stop(&mut self, _: &mut Rng) {
        suspend(self.0.primary(), BRIEFLY);
    }

    fn fail_over(&mut self) -> bool {
        self.0.fail_over();
        self.0.rejoin();
        self.0.wait_until_whole();
        true
    }

    fn cut(&mut self) -> bool {
        let clients: String = self.0.primary().command(&["CLIENT", "LIST", "TYPE", "normal"]);
        let of_locks = clients.lines().filter(|client| !client.contains(" name=sentinel-"));
        let ids: Vec<_> = of_locks.filter_map(|client| client.strip_prefix("id=")?.split(' ').next()).collect();
        let kill = |id: &&str| self.0.primary().command::<u64>(&["CLIENT", "KILL", "ID", id, "SKIPME", "yes"]) > 0;
        ids.iter().filter(|id| kill(id)).count() > 0
    }
}

/// Three primaries with a replica each.
pub(crate) struct RedisCluster(Cluster);

impl Start for RedisCluster {
    fn start() -> Self {
        Self(Cluster::start())
    }
}

impl RedisCluster {
    fn hot(&self) -> usize {
        self.0.primary_of(self.0.hash_slot_of(HOT))
    }
}

impl Deployment for RedisCluster {
    fn post(&self, facade: Facade) -> Post {
        let detour = self.0.detour();
        post(facade, detour.url, detour.proxies)
    }

    fn kill(&mut self, _: &mut Rng) {
        let server = self.hot();
        self.0.servers[server].restart_with_data();
    }

    fn stop(&mut self, _: &mut Rng) {
        suspend(&self.0.servers[self.hot()], LASTS);
    }

    fn fail_over(&mut self) -> bool {
        self.0.fail_over(self.0.hash_slot_of(HOT));
        true
    }
}

/// Three servers that know nothing of each other.
pub(crate) struct RedisQuorum {
    nodes: Vec<RedisServer>,
    host: Host,
}

impl Start for RedisQuorum {
    fn start() -> Self {
        let host = Host::new();
        let quorum = Self { nodes: (0..3).map(|_| persistent(&host)).collect(), host };
        let observer = observer(&quorum.url(quorum.nodes.iter().map(RedisServer::port))).unwrap();
        observer.pass(Purpose::Init, INIT_WITHIN).unwrap();
        quorum
    }
}

impl RedisQuorum {
    fn url(&self, ports: impl Iterator<Item = u16>) -> String {
        let nodes: String =
            self.nodes.iter().zip(ports).map(|(server, port)| format!("node={}&", server.url_at(port))).collect();
        format!("redlock://?{nodes}max_ttl=3s")
    }
}

impl Deployment for RedisQuorum {
    fn post(&self, facade: Facade) -> Post {
        let proxies: Vec<_> = self.nodes.iter().map(|server| Proxy::start(server.port())).collect();
        post(facade, self.url(proxies.iter().map(Proxy::port)), proxies)
    }

    fn kill(&mut self, rng: &mut Rng) {
        rng.choice(&mut self.nodes).unwrap().restart_with_data();
    }

    fn stop(&mut self, rng: &mut Rng) {
        suspend(rng.choice(&self.nodes).unwrap(), LASTS);
    }

    fn fill_disk(&mut self, _: &Machine) -> bool {
        fill_disk(&self.host.machine, self.nodes[0].directory())
    }

    fn step_clock(&mut self) -> bool {
        let node = &self.nodes[0];
        self.host.step_back(|| clock(node))
    }
}
