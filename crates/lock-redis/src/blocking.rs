//! Redis for plain threads, over plain sockets.

#[path = "nonblocking/backend.rs"]
mod backend;
#[path = "nonblocking/client.rs"]
mod client;
mod listener;
mod listening;
#[path = "nonblocking/listing.rs"]
mod listing;
#[cfg(feature = "r2d2")]
mod pool;
#[cfg(feature = "r2d2")]
#[path = "nonblocking/pooled.rs"]
mod pooled;
mod renewal;
mod server;
mod slots;
mod socket;
mod source;
mod stack;

use std::thread;

use lock_core::{BackendError, LockName, Operation, Prefix};
use lock_forms::blocking as both;
use redis::Client;

use crate::channel::Channel;
use crate::failure::Failure;
use crate::routing::PAUSE;
use crate::servers::{Many, Server, Servers, Serving};
use crate::span::Span;
use crate::target::Target;
use crate::wire::Question;

pub(crate) use self::stack::Stack as Connections;

#[cfg(feature = "r2d2")]
pub use self::pool::{Pool, SocketTimeouts};
#[cfg(feature = "r2d2")]
use self::stack::Lender;

/// A Redis, used from threads over a few connections of its own to each server, or through the user's pool.
///
/// A thread has exclusive use of a connection while it waits for an answer. There are at most eight to a server; if all are in use,
/// the requests of several threads are sent together over the next one that is free. A connection that is not needed
/// for a minute is closed. A pool that is passed in is shared: the keeper's renewals go through it, too; every grant also reads the
/// server's clock, since such a pool does not show when it has reconnected; and each use leaves the connection with socket timeouts
/// of a second, so that the pool's check of a connection to a server that hangs takes no longer. Its waiters poll; they are
/// notified if the pool comes with a URL (`Redis::pooled`).
///
/// A signal that a handler takes while a thread waits for an answer counts as a broken connection, also with `SA_RESTART`: the system
/// does not resume reads that have a time limit, and the client library does not repeat them. Renewals and releases are sent
/// again, and waiters ask again, but `try_acquire` fails with an unknown outcome. So block signals in threads that use locks, and
/// handle them in another one.
pub struct Redis {
    servers: Servers<Connections>,
    warnings: Vec<String>,
}

impl Redis {
    fn over(servers: Servers<Connections>, warnings: Vec<String>) -> Self {
        Self { servers, warnings }
    }

    /// All servers.
    pub(crate) fn each(&self) -> Result<Vec<Serving<Connections>>, BackendError> {
        self.servers.each().map_err(|failure| failure.into_error(Operation::Connect))
    }

    /// Asks the server that has a lock.
    fn answer<Q: Question + Sync>(&self, name: &LockName, question: &Q, span: Span) -> Result<Q::Answer, Failure> {
        match &self.servers {
            Servers::One(server) => server.answer(question, span),
            Servers::Many(many) => self.follow(many, many.routing(name, span), question, span),
        }
    }

    /// Asks for the map, or waits for the thread that does. Whether that helped shows in the map.
    fn refresh(&self, many: &Many<Connections>, span: Span) {
        _ = many.directory.refresh(span);
    }
}

/// What asks where servers are is blocking code, for both forms.
fn in_background<A>(ask: impl FnOnce() -> Result<A, Failure>) -> Result<A, Failure> {
    ask()
}

/// In async code, it has a space of its own.
pub(crate) fn large<A>(answer: A) -> A {
    answer
}

/// What sentinels need before they are asked again.
fn pause() {
    thread::sleep(PAUSE);
}

/// Uses the client only as an address: connections are made and verified here, the first one with the first request.
impl From<Client> for Redis {
    fn from(client: Client) -> Self {
        let server = Server::new(Target::fixed(client), Channel::new(), &Prefix::default(), None);
        Self::over(Servers::one(server), Vec::new())
    }
}
