//! One server of a SQL database.

use std::thread;

use fastrand::Rng;
use stress::crew::Post;
use stress::part::Facade;
use stress::sql::SqlServer;

use super::{Deployment, Start, behind_a_proxy};
use crate::fault::LASTS;

pub(crate) struct Sql<S>(S);

impl<S: SqlServer + 'static> Start for Sql<S> {
    fn start() -> Self {
        Self(S::start())
    }
}

impl<S: SqlServer + 'static> Deployment for Sql<S> {
    fn post(&self, facade: Facade) -> Post {
        behind_a_proxy(facade, self.0.port(), |port| self.0.url_at(port))
    }

    fn kill(&mut self, _: &mut Rng) {
        self.0.restart_with_data();
    }

    fn stop(&mut self, _: &mut Rng) {
        self.0.suspend();
        thread::sleep(LASTS);
        self.0.resume();
    }
}
