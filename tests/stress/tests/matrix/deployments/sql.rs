//! One server of a SQL database.

use std::thread;

use fastrand::Rng;
use stress::crew::Post;
use stress::part::Facade;
use stress::sql::SqlServer;
use test_support::Machine;

use super::host::Host;
use super::{Deployment, Start, behind_a_proxy, fill_disk};
use crate::fault::LASTS;

pub(crate) struct Sql<S> {
    server: S,
    host: Host,
}

impl<S: SqlServer + 'static> Start for Sql<S> {
    fn start() -> Self {
        let host = Host::new();
        Self { server: S::start_on(&host.machine), host }
    }
}

impl<S: SqlServer + 'static> Deployment for Sql<S> {
    fn post(&self, facade: Facade) -> Post {
        behind_a_proxy(facade, self.server.port(), |port| self.server.url_at(port))
    }

    fn kill(&mut self, _: &mut Rng) {
        self.server.restart_with_data();
    }

    fn stop(&mut self, _: &mut Rng) {
        self.server.suspend();
        thread::sleep(LASTS);
        self.server.resume();
    }

    fn step_clock(&mut self, _: &mut Rng) -> bool {
        let server = &self.server;
        self.host.turns_back(|| server.ask(&format!("SELECT {}", S::CLOCK)).parse().unwrap())
    }

    /// A server that cannot write may end.
    fn fill_disk(&mut self, _: &mut Rng, _: &Machine) -> bool {
        let took_effect = fill_disk(&self.host.machine, self.server.directory());
        self.server.restart_with_data();
        took_effect
    }
}
