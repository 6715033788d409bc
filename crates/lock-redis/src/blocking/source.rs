//! Where the connections of plain threads come from.

#[cfg(feature = "r2d2")]
use std::sync::Arc;

use lock_core::Operation;
#[cfg(feature = "r2d2")]
use redis::{Client, ConnectionLike};

use super::stack::{Asks, Heard, Stack};
#[cfg(feature = "r2d2")]
use crate::classify::pool_failure;
#[cfg(feature = "r2d2")]
use crate::connect::bound;
use crate::failure::Failure;
#[cfg(feature = "r2d2")]
use crate::server::server_info::ServerInfo;
use crate::span::Span;

pub(super) enum Source {
    Own(Box<Stack>),
    #[cfg(feature = "r2d2")]
    Pool(r2d2::Pool<Client>),
    /// A pool, and connections of its own, on one of which waiters are notified.
    #[cfg(feature = "r2d2")]
    PoolAndStack(r2d2::Pool<Client>, Box<Stack>),
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

    /// Sends a command and waits for its reply. A release does not wait until the pool has a free connection and has
    /// checked it.
    #[cfg_attr(not(feature = "r2d2"), expect(unused_variables, reason = "without pools, all requests go one way"))]
    pub(super) fn ask(&self, operation: Operation, asks: &Asks<'_>, span: Span) -> Result<Heard, Failure> {
        match self {
            Self::Own(stack) => stack.ask(asks, span),
            #[cfg(feature = "r2d2")]
            Self::PoolAndStack(_, stack) if operation == Operation::Release => stack.ask(asks, span),
            #[cfg(feature = "r2d2")]
            Self::Pool(pool) | Self::PoolAndStack(pool, _) => ask_over(pool, asks, span),
        }
    }
}

/// Asks over a connection of the user's.
#[cfg(feature = "r2d2")]
fn ask_over(pool: &r2d2::Pool<Client>, asks: &Asks<'_>, span: Span) -> Result<Heard, Failure> {
    let server_info = Arc::new(ServerInfo::UNKNOWN.clone());
    let call = asks(&server_info)?;
    let mut connection = pool.get_timeout(span.left()).map_err(|error| pool_failure(&error))?;
    let reply = bound(&connection, span.left()).and_then(|()| match call.wait {
        None => call.command.query(&mut *connection),
        Some(_) => {
            let both = call.pipeline();
            call.reply_of(connection.req_packed_commands(&both.get_packed_pipeline(), 0, both.len())?)
        }
    });
    Ok(Heard { reply, server_info })
}
