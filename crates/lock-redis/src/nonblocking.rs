//! Redis for tokio.

mod backend;
pub(crate) mod batcher;
mod handed_in;
mod link;
mod listing;
mod live;
#[cfg(feature = "deadpool")]
mod pool;
mod server;
mod silence;
mod source;
pub(crate) mod writes;

use std::fmt;
use std::sync::Arc;

use futures_util::future::Either;
use lock_core::{BackendError, Invalid, LockName, Operation};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout_at};

use crate::RedisConfig;
use crate::connect::{CONNECT_WITHIN, explain};
use crate::failure::Failure;
use crate::routing::{Asked, Form, PAUSE, Patience, Step};
use crate::servers::{Many, Server, Servers};
use crate::span::Span;
use crate::wire::Question;

pub(crate) use self::source::Source;

/// The user's pool.
#[cfg(feature = "deadpool")]
pub use deadpool_redis::Pool;

/// A Redis, used from tokio over one connection of its own to each server, or through the user's client.
///
/// With its own connections, requests for one lock take effect in order, except in a cluster, and drawing a token costs one increment of a
/// counter. A connection, manager or pool that is passed in is shared: the keeper's renewals go through it, too, and every grant
/// also reads the server's clock, since such a client does not show when it has reconnected. Waiters poll; those of a
/// pool are notified if the pool comes with a URL (`Redis::pooled`).
pub struct Redis {
    servers: Servers<Source>,
    /// One task asks for the map of a cluster at a time.
    refreshing: Mutex<()>,
    warnings: Vec<String>,
}

impl Redis {
    /// Connects to what `config` names: one server, the primary that its sentinels name, or a cluster, of which one primary is greeted,
    /// and others when they are first needed. The first contact is made now, and takes about a second at most.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses the client, or is not a Redis as the URL describes. Nothing was
    /// changed, except that the token counter may have been raised.
    ///
    /// # Cancel safety
    /// Can be dropped at any point.
    pub async fn connect(config: &RedisConfig) -> Result<Self, BackendError> {
        Self::try_connect(config).await.map_err(|failure| failure.into_error(Operation::Connect))
    }

    async fn try_connect(config: &RedisConfig) -> Result<Self, Failure> {
        let (servers, warnings) = match Servers::of(config)? {
            Servers::One(server) => {
                let (server, warnings) = connected(Server::clone(&server), config).await?;
                (Servers::one(server), warnings)
            }
            Servers::Many(many) => {
                let (hears, warnings) = first_contact(&many).await?;
                (Servers::Many(if hears { many } else { many.unheard() }), warnings)
            }
        };
        Ok(Self::over(servers, warnings))
    }

    fn over(servers: Servers<Source>, warnings: Vec<String>) -> Self {
        Self { servers, refreshing: Mutex::default(), warnings }
    }

    /// The same Redis with `PREFIX:` before the names of locks.
    ///
    /// # Errors
    /// `Invalid` for a prefix that is empty, too long, reserved, or contains a control character.
    pub fn with_prefix(self, prefix: &str) -> Result<Self, Invalid> {
        Ok(Self { servers: self.servers.with_prefix(&prefix.parse()?), ..self })
    }

    /// Asks the server that has a lock.
    fn answer<'a, Q: Question + Sync>(
        &'a self,
        name: &'a LockName,
        question: &'a Q,
        span: Span,
    ) -> impl Future<Output = Result<Q::Answer, Failure>> + Send {
        match &self.servers {
            Servers::One(server) => Either::Left(server.answer(question, span)),
            // Boxed: most requests do not need this space.
            Servers::Many(many) => Either::Right(Box::pin(self.answer_of(many, name, question, span))),
        }
    }

    async fn answer_of<Q: Question + Sync>(
        &self,
        many: &Many<Source>,
        name: &LockName,
        question: &Q,
        span: Span,
    ) -> Result<Q::Answer, Failure> {
        let mut routing = many.routing(name, span);
        loop {
            let (address, form) = match routing.step() {
                Step::Send(address, form) => (address, form),
                Step::Refresh => {
                    self.refresh(many, span).await;
                    continue;
                }
                Step::Pause => {
                    sleep(PAUSE).await;
                    continue;
                }
                Step::Fail(failure) => return Err(failure),
            };
            let answer = match (many.node(&address), form) {
                (Ok(node), Form::Plain) => node.answer_once(question, span, routing.first()).await,
                (Ok(node), Form::Asking) => node.answer_once(&Asked(question), span, routing.first()).await,
                (Err(failure), _) => Err(failure),
            };
            if let Some(outcome) = routing.outcome((address, form), question.retry(), answer) {
                return outcome;
            }
        }
    }

    /// Asks for the map, or waits for the task that does. Whether that helped shows in the map.
    async fn refresh(&self, many: &Many<Source>, span: Span) {
        let refresh = async {
            let _one_at_a_time = self.refreshing.lock().await;
            let directory = Arc::clone(&many.directory);
            in_background(move || directory.refresh(span)).await
        };
        _ = timeout_at(span.until.into(), refresh).await;
    }
}

/// Connects to the only server of a client. If that fails, says whether that is because of TLS.
async fn connected(mut server: Server<Source>, config: &RedisConfig) -> Result<(Server<Source>, Vec<String>), Failure> {
    match server.greet(config).await {
        Ok(warnings) => {
            // If the server cannot push messages, waiters are not notified.
            server.wire.channel.take_if(|channel| !channel.is_open());
            Ok((server, warnings))
        }
        Err(failure) => {
            let (reached, unexplained) = (config.server().clone(), failure.clone());
            Err(spawn_blocking(move || explain(&reached, unexplained)).await.unwrap_or(failure))
        }
    }
}

/// Whether waiters of the first server that can be used are notified, and warnings about it.
async fn first_contact(many: &Arc<Many<Source>>) -> Result<(bool, Vec<String>), Failure> {
    let mut patience = Patience::within(Span::from_now(CONNECT_WITHIN));
    loop {
        match contact(many).await {
            Ok(contact) => return Ok(contact),
            Err(failure) => many.not_found(&mut patience, failure)?,
        }
        sleep(PAUSE).await;
    }
}

async fn contact(many: &Arc<Many<Source>>) -> Result<(bool, Vec<String>), Failure> {
    let asked = Arc::clone(many);
    in_background(move || asked.find()).await?;
    let mut last = None;
    for address in many.directory.primaries() {
        let node = many.node(&address)?;
        match node.greet(many.config()).await {
            Ok(warnings) => return Ok((node.hears(), warnings)),
            Err(failure) if failure.may_pass() => last = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    Err(last.unwrap_or_else(Failure::strange_answer))
}

/// The servers are asked in blocking code, for both facades.
async fn in_background(ask: impl FnOnce() -> Result<(), Failure> + Send + 'static) -> Result<(), Failure> {
    spawn_blocking(ask).await.unwrap_or_else(|_| Err(Failure::runtime_gone()))
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.servers.fmt(f)
    }
}
