//! A primary and two replicas that sentinels watch.

use std::time::Duration;

use fastrand::Rng;
use leasehold::redis::{RedisConfig, declare_new};
use stress::check::Loss;
use stress::crew::Post;
use stress::part::Facade;
use test_support::{RedisOptions, RedisServer, Trio};

use super::Servers;
use crate::deployments::post;

pub(crate) struct Sentinels(Trio);

impl Sentinels {
    /// Makes the servers whole again after a fail-over.
    fn rejoin(&mut self) {
        self.0.rejoin();
        self.0.wait_until_whole();
    }
}

impl Servers for Sentinels {
    /// Sentinels take a server for dead that is silent for 700 ms.
    const SUSPENDED_FOR: Duration = Duration::from_millis(200);

    fn start(options: RedisOptions) -> Self {
        let trio = Trio::start_with(options);
        declare_new(&RedisConfig::from_url(&setting(&trio.url())).unwrap()).unwrap();
        Self(trio)
    }

    fn post(&self, facade: Facade) -> Post {
        let detour = self.0.detour();
        post(facade, setting(&detour.url), detour.proxies)
    }

    fn target(&self, _: &mut Rng) -> &RedisServer {
        self.0.primary()
    }

    fn excused(_: Loss) -> Option<Loss> {
        None
    }

    fn kill(&mut self, _: &mut Rng) {
        let killed = self.0.kill_primary();
        self.0.wait_for_another_than(killed);
        self.rejoin();
    }

    fn fail_over(&mut self) -> bool {
        self.0.fail_over();
        self.rejoin();
        true
    }
}

fn setting(url: &str) -> String {
    url.replace("failover=grant", "failover=dwell&max_ttl=2s&replicas=2")
}
