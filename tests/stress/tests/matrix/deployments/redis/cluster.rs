//! Three primaries with a replica each.

use fastrand::Rng;
use stress::cast::HOT;
use stress::check::Loss;
use stress::crew::Post;
use stress::part::Facade;
use test_support::{Cluster, RedisOptions, RedisServer};

use super::Servers;
use crate::deployments::post;

pub(crate) struct Clustered(Cluster);

impl Clustered {
    fn hot(&self) -> usize {
        self.0.primary_of(self.0.hash_slot_of(HOT))
    }
}

impl Servers for Clustered {
    fn start(options: RedisOptions) -> Self {
        Self(Cluster::start_with(options))
    }

    fn post(&self, facade: Facade) -> Post {
        let detour = self.0.detour();
        post(facade, detour.url, detour.proxies)
    }

    fn target(&self, _: &mut Rng) -> &RedisServer {
        &self.0.servers[self.hot()]
    }

    /// The others have lost nothing.
    fn excused(loss: Loss) -> Option<Loss> {
        Some(Loss { lock: Some(HOT), ..loss })
    }

    fn kill(&mut self, _: &mut Rng) {
        let server = self.hot();
        self.0.servers[server].restart_with_data();
    }

    fn fail_over(&mut self) -> bool {
        self.0.fail_over(self.0.hash_slot_of(HOT));
        true
    }
}
