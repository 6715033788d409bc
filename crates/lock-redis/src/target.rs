//! Where connections lead: to one server, or to the primary that sentinels name.

use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use lock_core::{Effect, ErrorKind};
use redis::Client;

use crate::RedisConfig;
use crate::classify::classify;
use crate::config::Deployment;
use crate::connect::{CONNECT_WITHIN, connecting, server_of};
use crate::failure::Failure;
use crate::sentinels::primary::{Follower, Place, Primary};
use crate::sentinels::watch;
use crate::span::Span;

const ONE_SERVER: &str = "give the URL of one server";

/// How long to wait before the sentinels are asked again for a primary that can be used.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Where the connections of a client lead.
#[derive(Clone)]
pub(crate) enum Target {
    /// To the server of a client of redis-rs.
    Fixed(Box<Client>),
    /// To a primary.
    Named(Arc<ByName>),
}

/// A primary that sentinels name.
pub(crate) struct ByName {
    primary: Arc<Primary>,
    watched: OnceLock<()>,
    shown: String,
    store: String,
}

/// A server to connect to now.
pub(crate) struct Route {
    pub(crate) client: Client,
    pub(crate) place: Option<Place>,
}

impl Route {
    /// Whether this is still where to connect to.
    pub(crate) fn is_current(&self) -> bool {
        is_current(self.place.as_ref())
    }
}

/// Whether a connection still leads to the primary.
pub(crate) fn is_current(place: Option<&Place>) -> bool {
    place.is_none_or(Place::is_current)
}

/// Why no attempt to connect succeeded, as the last one said that had enough time: one without fails for that alone.
pub(crate) struct Why {
    enough: Duration,
    failure: Option<Failure>,
}

impl Why {
    /// For attempts that have this time together.
    pub(crate) fn within(span: Span) -> Self {
        Self { enough: span.left() / 2, failure: None }
    }

    /// An attempt failed that began when this much time was left.
    pub(crate) fn told(&mut self, left: Duration, failure: Failure) {
        if self.failure.is_none() || left >= self.enough {
            self.failure = Some(failure);
        }
    }

    /// What to say when the time is over.
    pub(crate) fn failure(self, server: &str, span: Span) -> Failure {
        self.failure.unwrap_or_else(|| Failure::no_connection(server, span.within))
    }
}

impl Target {
    /// To one server.
    pub(crate) fn fixed(client: Client) -> Self {
        Self::Fixed(Box::new(client))
    }

    /// What a configuration names. Nothing is connected yet.
    pub(crate) fn of(config: &RedisConfig) -> Result<Self, Failure> {
        let sentinels = match config.deployment() {
            Deployment::OneServer => {
                let client = Client::open(config.server().clone());
                let failed = |error| classify(connecting(config.shown_url(), CONNECT_WITHIN), &error);
                return client.map(Self::fixed).map_err(failed);
            }
            Deployment::Sentinels(sentinels) => sentinels,
            Deployment::Cluster(_) => return Err(several(config)),
        };
        let nodes = sentinels.nodes.iter().map(|node| node.addr().to_string());
        let database = config.server().redis_settings().db();
        let store = format!("{}/{}/{database}", Deployment::store_of("redis+sentinel", nodes), sentinels.master);
        let primary = Arc::new(Primary::new(sentinels.clone(), config.server().clone()));
        let by_name = ByName { primary, watched: OnceLock::new(), shown: config.shown_url().to_owned(), store };
        Ok(Self::Named(Arc::new(by_name)))
    }

    /// Refuses a configuration of sentinels or of a cluster, for what has to stay with one server: a node of a quorum, or a pool.
    pub(crate) fn of_one_server(config: &RedisConfig) -> Result<Self, Failure> {
        if let Deployment::Sentinels(_) = config.deployment() {
            let message = format!("{} leads to another server after a fail-over", config.shown_url());
            return Err(Failure::new(ErrorKind::Config, Effect::None, message).remedy(ONE_SERVER));
        }
        Self::of(config)
    }

    /// The server of a pool, whose connections nobody verifies.
    #[cfg(any(feature = "deadpool", feature = "r2d2"))]
    pub(crate) fn of_a_pool(config: &RedisConfig) -> Result<Self, Failure> {
        let target = Self::of_one_server(config)?;
        config.failover().check_pooled().map(|()| target)
    }

    /// The server as it is shown to users.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Fixed(client) => server_of(client),
            Self::Named(by_name) => by_name.shown.clone(),
        }
    }

    /// The server with its database.
    pub(crate) fn store(&self) -> String {
        match self {
            Self::Fixed(client) => {
                let database = client.get_connection_info().redis_settings().db();
                format!("{}/{database}", server_of(client).to_ascii_lowercase())
            }
            Self::Named(by_name) => by_name.store.clone(),
        }
    }

    /// The client that was passed in.
    pub(crate) fn client(&self) -> Option<&Client> {
        match self {
            Self::Fixed(client) => Some(client),
            Self::Named(_) => None,
        }
    }

    /// Tells these connections when the primary moves.
    pub(crate) fn follow(&self, follower: Weak<dyn Follower>) {
        if let Self::Named(by_name) = self {
            by_name.primary.follow(follower);
        }
    }

    /// Where to connect now. Asks the sentinels, if there are any, and waits for them.
    pub(crate) fn route(&self, span: Span) -> Result<Route, Failure> {
        match self {
            Self::Fixed(client) => Ok(Route { client: Client::clone(client), place: None }),
            Self::Named(by_name) => {
                let (client, place) = by_name.primary.find(span)?;
                by_name.watched.get_or_init(|| watch::start(&by_name.primary));
                Ok(Route { client, place: Some(place) })
            }
        }
    }

    /// Connects to the server that is the primary. If that fails, the sentinels are asked again until the time is over: they
    /// need a moment for a fail-over.
    pub(crate) fn connect<C>(
        &self,
        span: Span,
        mut connect: impl FnMut(&Route, Span) -> Result<C, Failure>,
    ) -> Result<C, Failure> {
        let span = span.at_most(CONNECT_WITHIN);
        let mut why = Why::within(span);
        loop {
            let left = span.left();
            let outcome = self.route(span).and_then(|route| {
                let connection = connect(&route, span)?;
                if route.is_current() { Ok(connection) } else { Err(Failure::moved()) }
            });
            self.check(outcome.as_ref().err());
            match outcome {
                Err(failure) if self.may_try_again(&failure) => why.told(left, failure),
                outcome => return outcome,
            }
            if span.left() <= PAUSE {
                return Err(why.failure(&self.shown(), span));
            }
            thread::sleep(PAUSE);
        }
    }

    /// After a failure for which the primary may have moved, has all sentinels asked whether it has. Does not wait for that.
    pub(crate) fn check(&self, failure: Option<&Failure>) {
        if let (Self::Named(by_name), Some(failure)) = (self, failure)
            && failure.may_be_of_an_old_primary()
        {
            watch::ask_all(&by_name.primary);
        }
    }

    /// Whether another server, or the same one a moment later, may not fail like that.
    pub(crate) fn may_try_again(&self, failure: &Failure) -> bool {
        matches!(self, Self::Named(_)) && failure.may_pass()
    }
}

fn several(config: &RedisConfig) -> Failure {
    let message = format!("{} leads to a cluster, which has several servers", config.shown_url());
    Failure::new(ErrorKind::Config, Effect::None, message).remedy(ONE_SERVER)
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
            let Err(failure) = Target::of_one_server(&config) else { panic!("{url} is not refused") };
            let error = failure.into_error(Operation::Connect);
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None), "{error}");
            assert!(error.to_string().contains(told), "{error}");
        }
    }
}
