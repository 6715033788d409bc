//! Three etcd servers.

use std::thread;

use fastrand::Rng;
use stress::crew::Post;
use stress::part::Facade;
use test_support::{EtcdCluster, EtcdVersion, Proxy};

use super::{Deployment, Start, hosts, post, unknown};
use crate::fault::{Fault, LASTS};

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

    #[expect(clippy::wildcard_enum_match_arm, reason = "the others do not apply")]
    fn strike(&mut self, fault: Fault, rng: &mut Rng) -> bool {
        let leader = self.0.leader();
        match fault {
            Fault::KillServer => self.restart(*rng.choice(&self.0.others(leader)).unwrap()),
            Fault::FailOver => self.restart(leader),
            Fault::StopServer => {
                let server = rng.usize(..SERVERS);
                self.0.server(server).stop();
                thread::sleep(LASTS);
                self.0.server(server).resume();
            }
            other => return unknown(other),
        }
        true
    }
}
