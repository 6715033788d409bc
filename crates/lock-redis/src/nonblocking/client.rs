//! How a client connects to its servers, and how it asks the one that has a lock. Compiled for threads as well.

use std::fmt;
use std::sync::Arc;

use lock_core::{BackendError, Invalid, Operation};

use super::{Connections, Redis, both, in_background, pause};
use crate::RedisConfig;
use crate::connect::{CONNECT_WITHIN, explain};
use crate::failure::Failure;
use crate::routing::{Patience, Routing, Step};
use crate::servers::{Many, Server, Servers};
use crate::span::Span;
use crate::wire::Question;

#[both]
impl Redis {
    /// Connects to what `config` names: one server, the primary that its sentinels name, or a cluster, of which one primary is greeted,
    /// and others when they are first needed. The first contact is made now, and takes about a second at most.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses the client, or is not a Redis as the URL describes. Nothing was
    /// changed, except that the token counter may have been raised.
    ///
    /// # Blocking
    /// For about a second at most, besides the system's lookup of the host name.
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

    /// The same Redis with `PREFIX:` before the names of locks.
    ///
    /// # Errors
    /// `Invalid` for a prefix that is empty, too long, reserved, or contains a control character.
    pub fn with_prefix(self, prefix: &str) -> Result<Self, Invalid> {
        Ok(Self { servers: self.servers.with_prefix(&prefix.parse()?), ..self })
    }

    /// Asks one server after another, until one has answered.
    pub(super) async fn follow<Q: Question + Sync>(
        &self,
        many: &Many<Connections>,
        mut routing: Routing<'_>,
        question: &Q,
        span: Span,
    ) -> Result<Q::Answer, Failure> {
        loop {
            let (address, ownership) = match routing.step() {
                Step::Send(address, ownership) => (address, ownership),
                Step::Refresh => {
                    self.refresh(many, span).await;
                    continue;
                }
                Step::Pause => {
                    pause().await;
                    continue;
                }
                Step::Fail(failure) => return Err(failure),
            };
            let answer = match many.node(&address) {
                Ok(node) => node.answer_once(question, span, routing.attempt(ownership)).await,
                Err(failure) => Err(failure),
            };
            if let Some(outcome) = routing.outcome((address, ownership), question.retry(), answer) {
                return outcome;
            }
        }
    }
}

/// Connects to the only server of a client. If that fails, says whether that is because of TLS.
#[both]
pub(super) async fn connected(
    mut server: Server<Connections>,
    config: &RedisConfig,
) -> Result<(Server<Connections>, Vec<String>), Failure> {
    match server.greet(config).await {
        Ok(warnings) => {
            if !server.hears() {
                server.wire.channel = None;
            }
            Ok((server, warnings))
        }
        Err(failure) => {
            let reached = config.servers.server.clone();
            in_background(move || Err(explain(&reached, failure))).await
        }
    }
}

/// Whether waiters of the first server that can be used are notified, and warnings about it.
#[both]
async fn first_contact(many: &Arc<Many<Connections>>) -> Result<(bool, Vec<String>), Failure> {
    let mut patience = Patience::within(Span::from_now(CONNECT_WITHIN));
    loop {
        match contact(many).await {
            Ok(contact) => return Ok(contact),
            Err(failure) => many.not_found(&mut patience, failure)?,
        }
        pause().await;
    }
}

#[both]
async fn contact(many: &Arc<Many<Connections>>) -> Result<(bool, Vec<String>), Failure> {
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

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.servers.fmt(f)
    }
}
