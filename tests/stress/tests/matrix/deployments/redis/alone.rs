//! One server.

use fastrand::Rng;
use stress::check::Loss;
use stress::crew::Post;
use stress::part::Facade;
use test_support::{RedisOptions, RedisServer};

use super::Servers;
use crate::deployments::behind_a_proxy;

pub(crate) struct Alone(RedisServer);

impl Servers for Alone {
    fn start(options: RedisOptions) -> Self {
        Self(RedisServer::start_with(options))
    }

    fn post(&self, facade: Facade) -> Post {
        behind_a_proxy(facade, self.0.port(), |port| self.0.url_at(port))
    }

    fn target(&self, _: &mut Rng) -> &RedisServer {
        &self.0
    }

    fn excused(loss: Loss) -> Option<Loss> {
        Some(loss)
    }

    fn kill(&mut self, _: &mut Rng) {
        self.0.restart_with_data();
    }
}
