//! Where the connections of plain threads come from.

use std::sync::Arc;

use lock_core::{Capabilities, Isolation, Operation};
#[cfg(feature = "r2d2")]
use redis::{Client, ConnectionLike};

use super::stack::{Asks, Heard, Stack};
use crate::channel::Channel;
#[cfg(feature = "r2d2")]
use crate::classify::pool_failure;
#[cfg(feature = "r2d2")]
use crate::connect::bound;
use crate::failure::Failure;
#[cfg(feature = "r2d2")]
use crate::server::server_info::ServerInfo;
use crate::servers;
use crate::span::Span;
use crate::target::Target;

#[derive(Clone)]
pub(crate) enum Source {
    Own(Arc<Stack>),
    #[cfg(feature = "r2d2")]
    Pool(r2d2::Pool<Client>),
    /// A pool, and connections of its own, on one of which waiters are notified.
    #[cfg(feature = "r2d2")]
    PoolAndStack(r2d2::Pool<Client>, Arc<Stack>),
}

impl servers::Source for Source {
    fn own(target: Target, channel: Option<Arc<Channel>>) -> Self {
        Self::Own(Arc::new(Stack::new(target, channel)))
    }

    fn another(&self) -> Self {
        match self.stack() {
            Some(stack) => Self::Own(Arc::new(stack.another())),
            None => self.clone(),
        }
    }

    fn promise(source: Option<&Self>, redis: Capabilities) -> Capabilities {
        match source {
            #[cfg(feature = "r2d2")]
            Some(Self::Pool(_)) => redis,
            Some(_) | None => redis.with_isolation(Isolation::Isolated),
        }
    }

    fn forget_verified(&self) {
        self.stack().into_iter().for_each(Stack::forget_verified);
    }

    fn listens(&self) -> bool {
        self.stack().is_some_and(Stack::listens)
    }

    fn listen_in_time(&self) {
        self.stack().into_iter().for_each(Stack::listen_in_time);
    }
}

impl Source {
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
