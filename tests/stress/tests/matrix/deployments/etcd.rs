//! Three etcd servers.

use std::thread;

use fastrand::Rng;
use stress::crew::Post;
use stress::part::Facade;
use test_support::{EtcdCluster, EtcdVersion, Finish, Machine, Proxy};

use super::{Deployment, Start, hosts, post};
use crate::fault::LASTS;

const SERVERS: usize = 3;

pub(crate) struct Etcd(EtcdCluster);

impl Start for Etcd {
    fn start() -> Self {
        Self(EtcdCluster::start(EtcdVersion::V3_4))
    }
}

impl Etcd {
    fn restart(&mut self, server: usize) {
        self.0.server_mut(server).restart_with_data();
        self.0.wait_until_serving();
    }
}

impl Deployment for Etcd {
    fn post(&self, facade: Facade) -> Post {
        let proxies: Vec<_> = (0..SERVERS).map(|server| Proxy::start(self.0.server(server).port())).collect();
        post(facade, format!("etcd://{}", hosts(&proxies)), proxies)
    }

    fn kill(&mut self, rng: &mut Rng) {
        self.restart(*rng.choice(&self.0.others(self.0.leader())).unwrap());
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

    fn fill_disk(&mut self, rng: &mut Rng, _: &Machine) -> bool {
        let server = self.0.server(rng.usize(..SERVERS));
        server.raise_no_space();
        thread::sleep(LASTS);
        let put = server.etcdctl(&["put", "matrix", "refused"]).finish();
        server.run(&["alarm", "disarm"]);
        String::from_utf8_lossy(&put.stderr).contains("database space exceeded")
    }
}
