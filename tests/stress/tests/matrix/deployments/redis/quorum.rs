//! Three servers that know nothing of each other.

use std::time::Duration;

use fastrand::Rng;
use leasehold::redlock::Purpose;
use stress::check::Loss;
use stress::connect::observer;
use stress::crew::Post;
use stress::part::Facade;
use test_support::{Proxy, RedisOptions, RedisServer};

use super::Servers;
use crate::deployments::post;

/// How long the preparation may take.
const INIT_WITHIN: Duration = Duration::from_secs(2);

pub(crate) struct Quorum(Vec<RedisServer>);

impl Quorum {
    fn url(&self, ports: impl Iterator<Item = u16>) -> String {
        let nodes: String =
            self.0.iter().zip(ports).map(|(server, port)| format!("node={}&", server.url_at(port))).collect();
        format!("redlock://?{nodes}max_ttl=3s")
    }
}

impl Servers for Quorum {
    fn start(options: RedisOptions) -> Self {
        let quorum = Self((0..3).map(|_| RedisServer::start_with(options.clone())).collect());
        let observer = observer(&quorum.url(quorum.0.iter().map(RedisServer::port))).unwrap();
        observer.pass(Purpose::Init, INIT_WITHIN).unwrap();
        quorum
    }

    fn post(&self, facade: Facade) -> Post {
        let proxies: Vec<_> = self.0.iter().map(|server| Proxy::start(server.port())).collect();
        post(facade, self.url(proxies.iter().map(Proxy::port)), proxies)
    }

    /// Always the same one: a quorum whose majority has lost its keys waits for an operator.
    fn target(&self, _: &mut Rng) -> &RedisServer {
        &self.0[0]
    }

    fn excused(_: Loss) -> Option<Loss> {
        None
    }

    fn kill(&mut self, rng: &mut Rng) {
        rng.choice(&mut self.0).unwrap().restart_with_data();
    }
}
