//! Redis alone, with sentinels, as a cluster, and as a quorum.

use std::thread;
use std::time::Duration;

use fastrand::Rng;
use leasehold::redis::{RedisConfig, declare_new};
use leasehold::redlock::Purpose;
use stress::cast::HOT;
use stress::connect::observer;
use stress::crew::Post;
use stress::part::Facade;
use test_support::{Cluster, Proxy, RedisOptions, RedisServer, Trio};

use super::{Deployment, Start, behind_a_proxy, post};
use crate::fault::LASTS;

/// How long a server is suspended behind sentinels: they take one for dead that is silent for 700 ms.
const BRIEFLY: Duration = Duration::from_millis(200);
/// How long the preparation of a quorum may take.
const INIT_WITHIN: Duration = Duration::from_secs(2);

fn persistent() -> RedisServer {
    RedisServer::start_with(RedisOptions::default().append_only())
}

fn suspend(server: &RedisServer, length: Duration) {
    server.stop();
    thread::sleep(length);
    server.resume();
}

/// One server with an append-only file.
pub(crate) struct Alone(RedisServer);

impl Start for Alone {
    fn start() -> Self {
        Self(persistent())
    }
}

impl Alone {
    fn errors_of_full_memory(&self) -> u64 {
        let info: String = self.0.command(&["INFO", "errorstats"]);
        let count = info.lines().find_map(|line| line.strip_prefix("errorstat_OOM:count="));
        count.map_or(0, |count| count.trim().parse().unwrap())
    }
}

impl Deployment for Alone {
    fn post(&self, facade: Facade) -> Post {
        behind_a_proxy(facade, self.0.port(), |port| self.0.url_at(port))
    }

    fn kill(&mut self, _: &mut Rng) {
        self.0.restart_with_data();
    }

    fn stop(&mut self, _: &mut Rng) {
        suspend(&self.0, LASTS);
    }

    fn fill(&mut self) -> bool {
        let before = self.errors_of_full_memory();
        self.0.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        thread::sleep(LASTS);
        self.0.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        self.errors_of_full_memory() > before
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
    }

    fn stop(&mut self, _: &mut Rng) {
        suspend(self.0.primary(), BRIEFLY);
    }

    fn fail_over(&mut self) {
        self.0.fail_over();
        self.0.rejoin();
    }

    fn cut(&mut self) -> bool {
        let cut: u64 = self.0.primary().command(&["CLIENT", "KILL", "TYPE", "normal"]);
        cut > 0
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

    fn fail_over(&mut self) {
        self.0.fail_over(self.0.hash_slot_of(HOT));
    }
}

/// Three servers that know nothing of each other.
pub(crate) struct RedisQuorum(Vec<RedisServer>);

impl Start for RedisQuorum {
    fn start() -> Self {
        let quorum = Self((0..3).map(|_| persistent()).collect());
        let observer = observer(&quorum.url(quorum.0.iter().map(RedisServer::port))).unwrap();
        observer.pass(Purpose::Init, INIT_WITHIN).unwrap();
        quorum
    }
}

impl RedisQuorum {
    fn url(&self, ports: impl Iterator<Item = u16>) -> String {
        let nodes: String =
            self.0.iter().zip(ports).map(|(server, port)| format!("node={}&", server.url_at(port))).collect();
        format!("redlock://?{nodes}max_ttl=3s")
    }
}

impl Deployment for RedisQuorum {
    fn post(&self, facade: Facade) -> Post {
        let proxies: Vec<_> = self.0.iter().map(|server| Proxy::start(server.port())).collect();
        post(facade, self.url(proxies.iter().map(Proxy::port)), proxies)
    }

    fn kill(&mut self, rng: &mut Rng) {
        rng.choice(&mut self.0).unwrap().restart_with_data();
    }

    fn stop(&mut self, rng: &mut Rng) {
        suspend(rng.choice(&self.0).unwrap(), LASTS);
    }
}
