//! One server of a SQL database.

use std::thread;

use fastrand::Rng;
use stress::crew::Post;
use stress::part::Facade;
use stress::sql::SqlServer;
use test_support::Proxy;

use super::{Deployment, Start, post, unknown};
use crate::fault::{Fault, LASTS};

pub(crate) struct Sql<S>(S);

impl<S: SqlServer + 'static> Start for Sql<S> {
    fn start() -> Self {
        Self(S::start())
    }
}

impl<S: SqlServer + 'static> Deployment for Sql<S> {
    fn post(&self, facade: Facade) -> Post {
        let proxy = Proxy::start(self.0.port());
        post(facade, self.0.url_at(proxy.port()), vec![proxy])
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the others do not apply")]
    fn strike(&mut self, fault: Fault, _: &mut Rng) -> bool {
        match fault {
            Fault::KillServer => self.0.restart_with_data(),
            Fault::StopServer => {
                self.0.suspend();
                thread::sleep(LASTS);
                self.0.resume();
            }
            other => return unknown(other),
        }
        true
    }
}
