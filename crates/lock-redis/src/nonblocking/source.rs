//! Where the connections of a tokio client come from.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Either;
use lock_core::Operation;
use redis::{RedisResult, Value};

use super::lender::Lent;
use super::link::Link;
use super::live::Live;
use super::silence::Patience;
use crate::failure::{Failure, Fate};
use crate::hash_slot::HashSlot;
use crate::script::Script;
use crate::server::server_info::ServerInfo;
use crate::server::verification;
use crate::servers::Source;
use crate::wire::{Call, load};

/// A connection for one request. Small, because each request holds one while it waits.
pub(super) enum Handle {
    Own(Arc<Live>),
    Lent(Box<dyn Lent>),
}

impl Source<Link> {
    /// A connection for one request. A release does not wait until a pool has a free connection and has checked it.
    pub(super) async fn checkout(&self, operation: Operation) -> Result<Handle, Failure> {
        match self {
            Self::Own(link) => Ok(Handle::Own(link.live().await?)),
            Self::Lent(_, Some(link)) if operation == Operation::Release => Ok(Handle::Own(link.live().await?)),
            Self::Lent(lender, _) => Ok(Handle::Lent(lender.lend().await?)),
        }
    }

    pub(super) fn give_back(&self, handle: Handle, within: Duration, failure: Option<&Failure>) {
        let broken = failure.is_some_and(|failure| failure.fate == Fate::Drop);
        match (self.own(), handle) {
            (Some(link), Handle::Own(live)) => {
                let answered = failure.is_none_or(Failure::is_an_answer);
                if answered {
                    live.silence.answered();
                }
                if broken || (!answered && live.silence.timed_out(within) == Patience::Over) {
                    link.drop_connection(&live);
                }
            }
            (_, Handle::Lent(connection)) if broken => connection.end(),
            (_, _) => {}
        }
    }
}

impl Handle {
    pub(super) fn server_info(&self) -> &ServerInfo {
        match self {
            Self::Own(live) => &live.server_info,
            Self::Lent(_) => ServerInfo::UNKNOWN,
        }
    }

    /// Sends a command and waits for its answer. Not an `async fn`, whose future would hold the command twice.
    pub(super) fn ask(&mut self, call: Call) -> impl Future<Output = RedisResult<Value>> + Send {
        let connection = match self {
            Self::Own(live) => return Either::Left(live.batcher.ask(call)),
            Self::Lent(connection) => connection,
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
