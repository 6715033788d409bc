//! Where connections lead: to one server, or to the primary that sentinels name.

use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use lock_core::{Effect, ErrorKind};
use redis::Client;

use crate::RedisConfig;
use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, connecting, server_of};
use crate::failure::Failure;
use crate::primary::{Follower, Place, Primary};
use crate::span::Span;
use crate::watch;

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

impl Target {
    /// To one server.
    pub(crate) fn fixed(client: Client) -> Self {
        Self::Fixed(Box::new(client))
    }

    /// What a configuration names. Nothing is connected yet.
    pub(crate) fn of(config: &RedisConfig) -> Result<Self, Failure> {
        let Some(sentinels) = config.sentinels() else {
            let client = Client::open(config.server().clone());
            let failed = |error| classify(connecting(config.shown_url(), CONNECT_WITHIN), &error);
            return client.map(Self::fixed).map_err(failed);
        };
        let mut nodes: Vec<_> = sentinels.nodes.iter().map(|node| node.addr().to_string()).collect();
        nodes.sort();
        nodes.dedup();
        let database = config.server().redis_settings().db();
        let store = format!("redis+sentinel://{}/{}/{database}", nodes.join(","), sentinels.master);
        let primary = Arc::new(Primary::new(sentinels.clone(), config.server().clone()));
        let by_name = ByName { primary, watched: OnceLock::new(), shown: config.shown_url().to_owned(), store };
        Ok(Self::Named(Arc::new(by_name)))
    }

    /// Refuses a configuration of sentinels, for what has to stay with one server: a node of a quorum, or a pool.
    pub(crate) fn of_one_server(config: &RedisConfig) -> Result<Self, Failure> {
        if config.sentinels().is_some() {
            let message = format!("{} leads to another server after a fail-over", config.shown_url());
            return Err(Failure::new(ErrorKind::Config, Effect::None, message).remedy("give the URL of one server"));
        }
        Self::of(config)
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
        loop {
            let outcome = self.route(span).and_then(|route| {
                let connection = connect(&route, span)?;
                if route.is_current() { Ok(connection) } else { Err(Failure::moved()) }
            });
            match outcome {
                Err(failure) if self.may_try_again(&failure) && span.left() > PAUSE => thread::sleep(PAUSE),
                outcome => return outcome,
            }
        }
    }

    /// Whether another server, or the same one a moment later, may not fail like that.
    pub(crate) fn may_try_again(&self, failure: &Failure) -> bool {
        matches!(self, Self::Named(_)) && failure.may_pass()
    }
}
