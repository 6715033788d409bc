//! Where the connections of plain threads come from.

use lock_core::Operation;
#[cfg(feature = "r2d2")]
use redis::Client;
use redis::{Cmd, RedisResult, Value};

#[cfg(feature = "r2d2")]
use crate::classify::pool_failure;
#[cfg(feature = "r2d2")]
use crate::connect::bound;
use crate::failure::{Failure, Fate};
use crate::peer::Peer;
use crate::stack::{Socket, Span, Stack};

pub(super) enum Source {
    Own(Box<Stack>),
    #[cfg(feature = "r2d2")]
    Pool(r2d2::Pool<Client>),
    /// A pool, and connections of its own, on one of which waiters are notified.
    #[cfg(feature = "r2d2")]
    PoolAndStack(r2d2::Pool<Client>, Box<Stack>),
}

/// A connection for one request.
pub(super) enum Handle {
    Own(Socket),
    #[cfg(feature = "r2d2")]
    Pooled(r2d2::PooledConnection<Client>),
}

impl Source {
    /// Connections of its own to the same server, or what was passed in.
    pub(super) fn another(&self) -> Self {
        match self {
            Self::Own(stack) => Self::Own(Box::new(stack.another())),
            #[cfg(feature = "r2d2")]
            Self::Pool(pool) => Self::Pool(pool.clone()),
            #[cfg(feature = "r2d2")]
            Self::PoolAndStack(_, stack) => Self::Own(Box::new(stack.another())),
        }
    }

    /// Connections of its own, one of which can listen.
    pub(super) fn stack(&self) -> Option<&Stack> {
        match self {
            Self::Own(stack) => Some(stack),
            #[cfg(feature = "r2d2")]
            Self::PoolAndStack(_, stack) => Some(stack),
            #[cfg(feature = "r2d2")]
            Self::Pool(_) => None,
        }
    }

    /// A connection for one request. A release does not wait until the pool has a free connection and has checked it.
    #[cfg_attr(not(feature = "r2d2"), expect(unused_variables, reason = "without pools, all requests go one way"))]
    pub(super) fn checkout(&self, operation: Operation, span: Span) -> Result<Handle, Failure> {
        match self {
            Self::Own(stack) => stack.checkout(span).map(Handle::Own),
            #[cfg(feature = "r2d2")]
            Self::PoolAndStack(_, stack) if operation == Operation::Release => stack.checkout(span).map(Handle::Own),
            #[cfg(feature = "r2d2")]
            Self::Pool(pool) | Self::PoolAndStack(pool, _) => {
                pool.get_timeout(span.left()).map(Handle::Pooled).map_err(|error| pool_failure(&error))
            }
        }
    }

    pub(super) fn give_back(&self, handle: Handle, failure: Option<&Failure>) {
        let broken = failure.is_some_and(|failure| failure.fate() == Fate::Drop);
        match (self.stack(), handle) {
            (Some(stack), Handle::Own(socket)) if broken => {
                drop(socket);
                stack.clear();
            }
            (Some(stack), Handle::Own(socket)) => stack.put_back(socket),
            (_, _) => {}
        }
    }
}

impl Handle {
    pub(super) fn peer(&self) -> &Peer {
        match self {
            Self::Own(socket) => &socket.peer,
            #[cfg(feature = "r2d2")]
            Self::Pooled(_) => Peer::UNKNOWN,
        }
    }

    pub(super) fn ask(&mut self, command: &Cmd, span: Span) -> RedisResult<Value> {
        match self {
            Self::Own(socket) => socket.ask(command, span),
            #[cfg(feature = "r2d2")]
            Self::Pooled(connection) => {
                bound(connection, span.left())?;
                command.query(connection)
            }
        }
    }
}
