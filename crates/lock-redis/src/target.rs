//! A server to connect to, and what it is to its client.

use std::sync::Arc;

use lock_core::{Effect, ErrorKind};
use redis::Client;

use crate::RedisConfig;
use crate::address::Address;
use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, connecting, shown};
use crate::deployment::Deployment;
use crate::directory::Directory;
use crate::failover::Failover;
use crate::failure::Failure;
use crate::span::Span;

const ONE_SERVER: &str = "give the URL of one server";

/// Where the connections of a client of one server lead.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) client: Client,
    /// What it is a part of.
    pub(crate) deployment: Deployment,
    /// What its client does if it may have forgotten leases.
    pub(crate) failover: Failover,
    /// Who is asked before each connection whether this is still the server.
    named_by: Option<(Arc<dyn Directory>, Arc<Address>)>,
}

impl Target {
    /// A server that is trusted whatever it may have forgotten.
    pub(crate) fn fixed(client: Client) -> Self {
        Self::new(client, Deployment::OneServer, Failover::UNHEEDED)
    }

    pub(crate) fn new(client: Client, deployment: Deployment, failover: Failover) -> Self {
        Self { client, deployment, failover, named_by: None }
    }

    /// The same as this directory names it.
    pub(crate) fn named_by(self, directory: Arc<dyn Directory>, address: Arc<Address>) -> Self {
        Self { named_by: Some((directory, address)), ..self }
    }

    /// The one server of a configuration. One of several servers is refused, for what has to stay with one server: a node of a quorum,
    /// or a pool.
    pub(crate) fn of(config: &RedisConfig) -> Result<Self, Failure> {
        let what = match config.servers.deployment {
            Deployment::OneServer | Deployment::Quorum => {
                let client = Client::open(config.servers.server.clone());
                let failed = |error| classify(connecting(config.shown_url(), CONNECT_WITHIN), &error);
                return Ok(Self::new(client.map_err(failed)?, Deployment::OneServer, config.failover));
            }
            Deployment::Sentinels => "another server after a fail-over",
            Deployment::Cluster => "a cluster, which has several servers",
        };
        let message = format!("{} leads to {what}", config.shown_url());
        Err(Failure::new(ErrorKind::Config, Effect::None, message).remedy(ONE_SERVER))
    }

    /// The same as a node of a quorum, where a run that has forgotten something is not the one that was asked.
    pub(crate) fn in_quorum(self) -> Self {
        Self { deployment: Deployment::Quorum, failover: Failover::UNHEEDED, ..self }
    }

    /// The server of a pool, whose connections nobody verifies.
    #[cfg(any(feature = "deadpool", feature = "r2d2"))]
    pub(crate) fn of_a_pool(config: &RedisConfig) -> Result<Self, Failure> {
        let target = Self::of(config)?;
        config.failover.check_pooled().map(|()| target)
    }

    /// The server as it is shown to users.
    pub(crate) fn shown(&self) -> String {
        shown(self.client.get_connection_info())
    }

    /// The server with its database.
    pub(crate) fn store(&self) -> String {
        format!("{}/{}", self.shown().to_ascii_lowercase(), self.client.get_connection_info().redis_settings().db())
    }

    /// Asks whether this is still the server to connect to.
    pub(crate) fn confirm(&self, span: Span) -> Result<(), Failure> {
        self.named_by.as_ref().map_or(Ok(()), |(directory, address)| directory.confirm(address, span))
    }
}

#[cfg(test)]
mod tests {
    use lock_core::Operation;

    use super::*;

    #[test]
    fn what_needs_one_server_refuses_a_deployment_of_several() {
        for (url, told) in [
            ("redis+cluster://h1,h2", "redis+cluster://h1,h2 leads to a cluster"),
            ("redis+sentinel://h1/m", "redis+sentinel://h1/m leads to another server after a fail-over"),
        ] {
            let config = RedisConfig::from_url(url).unwrap();
            let Err(failure) = Target::of(&config) else { panic!("{url} is not refused") };
            let error = failure.into_error(Operation::Connect);
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None), "{error}");
            assert!(error.to_string().contains(told), "{error}");
        }
    }
}
