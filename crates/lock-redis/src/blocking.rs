//! Redis for plain threads, over plain sockets.

mod backend;
mod listener;
mod listening;
mod listing;
#[cfg(feature = "r2d2")]
mod pool;
mod renewal;
mod server;
mod slots;
mod socket;
mod source;
mod stack;

use std::fmt;
use std::thread;

use lock_core::{BackendError, Invalid, LockName, Operation, Prefix};
use redis::Client;

use crate::RedisConfig;
use crate::channel::Channel;
use crate::connect::{CONNECT_WITHIN, explain};
use crate::failure::Failure;
use crate::routing::{Asked, Form, PAUSE, Patience, Routing, Step};
use crate::servers::{Many, Server, Servers, Serving};
use crate::span::Span;
use crate::target::Target;
use crate::wire::Question;

pub(crate) use self::source::Source;

#[cfg(feature = "r2d2")]
pub use self::pool::{Pool, SocketTimeouts};

/// A Redis, used from threads over a few connections of its own to each server, or through the user's pool.
///
/// A thread has exclusive use of a connection while it waits for an answer. There are at most eight to a server; if all are in use,
/// the requests of several threads are sent together over the next one that is free. A connection that is not needed
/// for a minute is closed. A pool that is passed in is shared: the keeper's renewals go through it, too; every grant also reads the
/// server's clock, since such a pool does not show when it has reconnected; and its connections keep the socket
/// timeouts of their last use here. Its waiters poll; they are notified if the pool comes with a URL (`Redis::pooled`).
///
/// A signal that a handler takes while a thread waits for an answer counts as a broken connection, also with `SA_RESTART`: the system
/// does not resume reads that have a time limit, and the client library does not repeat them. Renewals and releases are sent
/// again, and waiters ask again, but `try_acquire` fails with an unknown outcome. So block signals in threads that use locks, and
/// handle them in another one.
pub struct Redis {
    servers: Servers<Source>,
    warnings: Vec<String>,
}

impl Redis {
    /// Connects to what `config` names: one server, the primary that its sentinels name, or a cluster, of which one primary is greeted,
    /// and others when they are first needed. The first contact is made now, and takes about a second at most.
    ///
    /// The system's lookup of the host name may take longer.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses the client, or is not a Redis as the URL describes. Nothing was
    /// changed, except that the token counter may have been raised.
    pub fn connect(config: &RedisConfig) -> Result<Self, BackendError> {
        Self::try_connect(config).map_err(|failure| failure.into_error(Operation::Connect))
    }

    fn try_connect(config: &RedisConfig) -> Result<Self, Failure> {
        let servers = Servers::of(config)?;
        let warnings = match &servers {
            Servers::One(server) => first_greeting(server, config)?,
            Servers::Many(many) => first_contact(many)?,
        };
        Ok(Self { servers, warnings })
    }

    /// The same Redis with `PREFIX:` before the names of locks.
    ///
    /// # Errors
    /// `Invalid` for a prefix that is empty, too long, reserved, or contains a control character.
    pub fn with_prefix(self, prefix: &str) -> Result<Self, Invalid> {
        Ok(Self { servers: self.servers.with_prefix(&prefix.parse()?), ..self })
    }

    fn one(server: Server<Source>) -> Self {
        Self { servers: Servers::one(server), warnings: Vec::new() }
    }

    /// All servers.
    pub(crate) fn each(&self) -> Result<Vec<Serving<Source>>, BackendError> {
        self.servers.each().map_err(|failure| failure.into_error(Operation::Connect))
    }

    /// Asks the server that has a lock.
    fn answer<Q: Question>(&self, name: &LockName, question: &Q, span: Span) -> Result<Q::Answer, Failure> {
        match &self.servers {
            Servers::One(server) => server.answer(question, span),
            Servers::Many(many) => follow(many, many.routing(name, span), question, span),
        }
    }
}

/// Asks one server after another, until one has answered.
fn follow<Q: Question>(
    many: &Many<Source>,
    mut routing: Routing<'_>,
    question: &Q,
    span: Span,
) -> Result<Q::Answer, Failure> {
    loop {
        let (address, form) = match routing.step() {
            Step::Send(address, form) => (address, form),
            Step::Refresh => {
                // Whether that helped shows in the map.
                _ = many.directory.refresh(span);
                continue;
            }
            Step::Pause => {
                thread::sleep(PAUSE);
                continue;
            }
            Step::Fail(failure) => return Err(failure),
        };
        let answer = many.node(&address).and_then(|node| match form {
            Form::Plain => node.answer_once(question, span, routing.first()),
            Form::Asking => node.answer_once(&Asked(question), span, routing.first()),
        });
        if let Some(outcome) = routing.outcome((address, form), question.retry(), answer) {
            return outcome;
        }
    }
}

/// Connects to the only server of a client. If that fails, says whether that is because of TLS.
fn first_greeting(server: &Server<Source>, config: &RedisConfig) -> Result<Vec<String>, Failure> {
    server.greet(config).map_err(|failure| explain(config.server(), failure))
}

/// Connects to the first server that can be used, and returns warnings about it.
fn first_contact(many: &Many<Source>) -> Result<Vec<String>, Failure> {
    let mut patience = Patience::within(Span::from_now(CONNECT_WITHIN));
    loop {
        match contact(many) {
            Ok(warnings) => return Ok(warnings),
            Err(failure) => many.not_found(&mut patience, failure)?,
        }
        thread::sleep(PAUSE);
    }
}

fn contact(many: &Many<Source>) -> Result<Vec<String>, Failure> {
    many.find()?;
    let mut last = None;
    for address in many.directory.primaries() {
        match many.node(&address)?.greet(many.config()) {
            Ok(warnings) => return Ok(warnings),
            Err(failure) if failure.may_pass() => last = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    Err(last.unwrap_or_else(Failure::strange_answer))
}

/// Uses the client only as an address: connections are made and verified here, the first one with the first request.
impl From<Client> for Redis {
    fn from(client: Client) -> Self {
        Self::one(Server::new(Target::fixed(client), Channel::new(), &Prefix::default(), None))
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.servers.fmt(f)
    }
}
