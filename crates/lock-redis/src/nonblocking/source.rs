//! Where the connections of a tokio client come from.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Either;
use lock_core::{Capabilities, Isolation, Operation, RequestOrder};
use redis::aio::ConnectionLike;
use redis::{RedisResult, Value};

use super::link::Link;
use super::live::Live;
use super::silence::Patience;
use crate::channel::Channel;
#[cfg(feature = "deadpool")]
use crate::classify::pool_failure;
use crate::failure::{Failure, Fate};
use crate::hash_slot::HashSlot;
use crate::script::Script;
use crate::server::server_info::ServerInfo;
use crate::server::verification;
use crate::servers;
use crate::target::Target;
use crate::wire::{Call, load};

#[derive(Clone)]
pub(crate) enum Source {
    Own(Arc<Link>),
    /// A connection of the user's, which its requests share.
    HandedIn(Arc<dyn Shared>),
    #[cfg(feature = "deadpool")]
    Pool(deadpool_redis::Pool),
    /// A pool, and a connection of its own on which waiters are notified.
    #[cfg(feature = "deadpool")]
    PoolAndLink(deadpool_redis::Pool, Arc<Link>),
}

/// A connection of the user's. Its copies are the same connection.
pub(crate) trait Shared: Send + Sync {
    fn copy(&self) -> Box<dyn ConnectionLike + Send + Sync>;
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Shared for C {
    fn copy(&self) -> Box<dyn ConnectionLike + Send + Sync> {
        Box::new(self.clone())
    }
}

/// A connection for one request. Small, because each request holds one while it waits.
pub(super) enum Handle {
    Own(Arc<Live>),
    HandedIn(Box<dyn ConnectionLike + Send + Sync>),
    #[cfg(feature = "deadpool")]
    Pooled(Box<deadpool_redis::Connection>),
}

impl servers::Source for Source {
    fn own(target: Target, channel: Option<Arc<Channel>>) -> Self {
        Self::Own(Arc::new(Link::new(target, channel)))
    }

    fn another(&self) -> Self {
        match self.link() {
            Some(link) => Self::Own(Arc::new(link.another())),
            None => self.clone(),
        }
    }

    fn promise(source: Option<&Self>, redis: Capabilities) -> Capabilities {
        match source {
            Some(Self::Own(_)) | None => redis.with_ordering(RequestOrder::InOrder).with_isolation(Isolation::Isolated),
            Some(Self::HandedIn(_)) => redis.with_ordering(RequestOrder::InOrder),
            #[cfg(feature = "deadpool")]
            Some(Self::Pool(_)) => redis,
            #[cfg(feature = "deadpool")]
            Some(Self::PoolAndLink(..)) => redis.with_isolation(Isolation::Isolated),
        }
    }

    fn forget_verified(&self) {
        let live = self.link().and_then(Link::at_hand);
        live.iter().for_each(|live| live.server_info().forget_verified());
    }

    fn listen_in_time(&self) {
        match self {
            #[cfg(feature = "deadpool")]
            Self::PoolAndLink(_, link) => link.listen(),
            #[cfg(feature = "deadpool")]
            Self::Pool(_) => {}
            // Its own link listens whenever it is connected.
            Self::Own(_) | Self::HandedIn(_) => {}
        }
    }
}

impl Source {
    /// A connection for one request. A release does not wait until the pool has a free connection and has checked it.
    #[cfg_attr(not(feature = "deadpool"), expect(unused_variables, reason = "without pools, all requests go one way"))]
    pub(super) async fn checkout(&self, operation: Operation) -> Result<Handle, Failure> {
        match self {
            Self::Own(link) => Ok(Handle::Own(link.live().await?)),
            #[cfg(feature = "deadpool")]
            Self::PoolAndLink(_, link) if operation == Operation::Release => Ok(Handle::Own(link.live().await?)),
            Self::HandedIn(connection) => Ok(Handle::HandedIn(connection.copy())),
            #[cfg(feature = "deadpool")]
            Self::Pool(pool) | Self::PoolAndLink(pool, _) => {
                // Boxed: most clients have no pool, and their requests do not need this space.
                let connection = Box::pin(pool.get()).await.map_err(|error| pool_failure(&error))?;
                Ok(Handle::Pooled(Box::new(connection)))
            }
        }
    }

    pub(super) fn link(&self) -> Option<&Link> {
        match self {
            Self::Own(link) => Some(link),
            #[cfg(feature = "deadpool")]
            Self::PoolAndLink(_, link) => Some(link),
            #[cfg(feature = "deadpool")]
            Self::Pool(_) => None,
            Self::HandedIn(_) => None,
        }
    }

    pub(super) fn give_back(&self, handle: Handle, within: Duration, failure: Option<&Failure>) {
        let broken = failure.is_some_and(|failure| failure.fate() == Fate::Drop);
        match (self.link(), handle) {
            (Some(link), Handle::Own(live)) => {
                let answered = failure.is_none_or(Failure::is_an_answer);
                if answered {
                    live.answered();
                }
                if broken || (!answered && live.timed_out(within) == Patience::Over) {
                    link.drop_connection(&live);
                }
            }
            #[cfg(feature = "deadpool")]
            (_, Handle::Pooled(connection)) if broken => drop(deadpool_redis::Connection::take(*connection)),
            (_, _) => {}
        }
    }
}

impl Handle {
    pub(super) fn server_info(&self) -> &ServerInfo {
        match self {
            Self::Own(live) => live.server_info(),
            Self::HandedIn(_) => ServerInfo::UNKNOWN,
            #[cfg(feature = "deadpool")]
            Self::Pooled(_) => ServerInfo::UNKNOWN,
        }
    }

    /// Sends a command and waits for its answer. Not an `async fn`, whose future would hold the command twice.
    pub(super) fn ask(&mut self, call: Call) -> impl Future<Output = RedisResult<Value>> + Send {
        let connection: &mut (dyn ConnectionLike + Send) = match self {
            Self::Own(live) => return Either::Left(live.ask(call)),
            Self::HandedIn(connection) => &mut **connection,
            #[cfg(feature = "deadpool")]
            Self::Pooled(connection) => &mut **connection,
        };
        // Boxed: the requests of most clients do not need this space.
        Either::Right(Box::pin(async move {
            if call.wait.is_none() {
                return connection.req_packed_command(&call.command).await?.extract_error();
            }
            let both = call.pipeline();
            call.reply_of(connection.req_packed_commands(&both, 0, both.len()).await?)
        }))
    }

    /// Asks again what the server did not run, and not together with others: one of them may be at fault. Loads what it may have
    /// forgotten, also the script for several locks, which the next ones use. It does not depend on that: it brings its own text.
    pub(super) async fn ask_alone(&mut self, script: &'static Script, call: Call) -> RedisResult<Value> {
        for script in [script].into_iter().chain(script.many().map(|many| &many.script)) {
            _ = self.ask(Call::plain(load(script))).await;
        }
        self.ask(call.in_full()).await
    }

    /// Verifies the counter of a hash slot, on the connection that is about to depend on it.
    pub(super) async fn verify(&mut self, slot: HashSlot) -> RedisResult<()> {
        let verification = verification::of_slot(self.server_info(), slot);
        let reply = self.ask(verification).await;
        self.server_info().judge(&reply);
        reply.map(|reply| self.server_info().verified(slot, verification::longest(reply)))
    }
}
