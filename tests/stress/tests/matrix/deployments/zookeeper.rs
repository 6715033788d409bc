//! Three ZooKeeper servers.

use std::thread;
use std::time::Duration;

use fastrand::Rng;
use stress::crew::Post;
use stress::part::Facade;
use test_support::bounds::wait_for;
use test_support::{Machine, Proxy, ZookeeperEnsemble, ZookeeperOptions};

use super::host::Host;
use super::{Deployment, Start, fill_disk, hosts, post};
use crate::fault::LASTS;

const SERVERS: usize = 3;
/// The unit of the servers' times.
const TICK: Duration = Duration::from_millis(200);

pub(crate) struct Zookeeper {
    ensemble: ZookeeperEnsemble,
    host: Host,
}

impl Start for Zookeeper {
    fn start() -> Self {
        let host = Host::new();
        let options = ZookeeperOptions::default().volatile().tick(TICK).on(&host.machine);
        Self { ensemble: ZookeeperEnsemble::start_with(options), host }
    }
}

impl Zookeeper {
    fn restart(&mut self, server: usize) {
        self.ensemble.server_mut(server).restart_with_data();
        self.ensemble.wait_until_serving(server);
    }
}

impl Deployment for Zookeeper {
    fn post(&self, facade: Facade) -> Post {
        let proxies: Vec<_> = (0..SERVERS).map(|server| Proxy::start(self.ensemble.server(server).port())).collect();
        post(facade, format!("zookeeper://{}/?session=3s&tick={}ms", hosts(&proxies), TICK.as_millis()), proxies)
    }

    fn kill(&mut self, _: &mut Rng) {
        self.restart(wait_for("a server follows", || self.ensemble.followers().first().copied()));
    }

    fn stop(&mut self, rng: &mut Rng) {
        let server = self.ensemble.server(rng.usize(..SERVERS));
        server.stop();
        thread::sleep(LASTS);
        server.resume();
    }

    fn fail_over(&mut self) -> bool {
        let before = self.ensemble.leader();
        self.restart(before);
        self.ensemble.leader() != before
    }

    /// A server that cannot write leaves the ensemble. It is restarted, so that it does not come back with more in its memory than on its disk.
    fn fill_disk(&mut self, rng: &mut Rng, _: &Machine) -> bool {
        let server = rng.usize(..SERVERS);
        let took_effect = fill_disk(&self.host.machine, &self.ensemble.server(server).directory().join("version-2"));
        self.restart(server);
        took_effect
    }

    /// Servers do not say what time it is: it is that of the machine whose library they have.
    fn step_clock(&mut self, _: &mut Rng) -> bool {
        self.host.step_back();
        self.host.machine.has(self.ensemble.server(0).pid())
    }
}
