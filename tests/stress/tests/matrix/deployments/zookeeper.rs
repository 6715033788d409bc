//! Three ZooKeeper servers.

use std::thread;
use std::time::Duration;

use fastrand::Rng;
use stress::crew::Post;
use stress::part::Facade;
use test_support::bounds::wait_for;
use test_support::{Proxy, ZookeeperEnsemble, ZookeeperOptions};

use super::{Deployment, Start, hosts, post};
use crate::fault::LASTS;

const SERVERS: usize = 3;
/// The unit of the servers' times.
const TICK: Duration = Duration::from_millis(200);

pub(crate) struct Zookeeper(ZookeeperEnsemble);

impl Start for Zookeeper {
    fn start() -> Self {
        Self(ZookeeperEnsemble::start_with(ZookeeperOptions::default().volatile().tick(TICK)))
    }
}

impl Zookeeper {
    fn restart(&mut self, server: usize) {
        self.0.server_mut(server).restart_with_data();
        self.0.wait_until_serving(server);
    }
}

impl Deployment for Zookeeper {
    fn post(&self, facade: Facade) -> Post {
        let proxies: Vec<_> = (0..SERVERS).map(|server| Proxy::start(self.0.server(server).port())).collect();
        post(facade, format!("zookeeper://{}/?session=3s&tick={}ms", hosts(&proxies), TICK.as_millis()), proxies)
    }

    fn kill(&mut self, _: &mut Rng) {
        self.restart(wait_for("a server follows", || self.0.followers().first().copied()));
    }

    fn stop(&mut self, rng: &mut Rng) {
        let server = self.0.server(rng.usize(..SERVERS));
        server.stop();
        thread::sleep(LASTS);
        server.resume();
    }

    fn fail_over(&mut self) -> bool {
        let before = self.0.leader();
        self.restart(before);
        self.0.leader() != before
    }
}
