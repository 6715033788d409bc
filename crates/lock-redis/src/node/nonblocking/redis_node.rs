//! A node over the connections of one form. Compiled for threads as well.

use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

#[both]
use lock_core::node::AsyncQuorumNode;
use lock_core::node::{Ask, QuorumNode, Told};
use lock_core::{BackendError, EventSink, Location, LockName, Queueing};

use super::{Connections, both, joined, large, open, parts};
use crate::RedisConfig;
use crate::failure::Failure;
use crate::servers::Server;
use crate::span::Span;

/// A Redis as a node of a quorum.
///
/// In async code it has one connection, which keeps requests in order and, in RESP3, also carries hints about freed locks. Threads that
/// send requests share up to eight connections. Once one of them has to wait, a separate thread with a connection of its own learns when
/// locks are freed.
pub struct RedisNode {
    server: Server<Connections>,
    address: String,
}

#[both]
impl RedisNode {
    /// The Redis of `config`, listed in its deployment as `address`. It connects with the first request, and again when
    /// the connection breaks.
    ///
    /// # Errors
    /// A configuration that cannot work. Nothing was sent.
    pub fn new(config: &RedisConfig, address: impl Into<String>) -> Result<Self, BackendError> {
        let address = address.into();
        Ok(Self { server: open(config, &address)?, address })
    }

    async fn in_parts(&self, parts: Vec<Ask>, span: Span) -> Result<Told, Failure> {
        let mut whole = None;
        for part in &parts {
            match joined(whole, self.server.answer(part, span).await) {
                ControlFlow::Continue(so_far) => whole = Some(so_far),
                ControlFlow::Break(other) => return other,
            }
        }
        // There is none if there were no parts: nobody asks for nothing.
        Ok(whole.unwrap_or(Told::Fenced(Vec::new())))
    }
}

impl QuorumNode for RedisNode {
    fn address(&self) -> &str {
        &self.address
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        self.server.wire.locate(name)
    }

    fn listen(&self, sink: EventSink) {
        self.server.wire.listen(sink);
    }
}

#[both]
impl AsyncQuorumNode for RedisNode {
    fn for_keeper(&self) -> Self {
        Self { server: self.server.another(), address: self.address.clone() }
    }

    async fn ask(&self, ask: &Ask, within: Duration) -> Result<Told, BackendError> {
        let told = match parts(ask) {
            None => self.server.answer_untimed(ask, within).await,
            Some(parts) => large(self.in_parts(parts, Span::from_now(within))).await,
        };
        if let (Ask::Acquire { claim, .. }, Ok(Told::Held { .. })) = (ask, &told)
            && claim.queueing == Queueing::Wanted
        {
            self.server.source.listen_in_time();
        }
        told.map_err(|failure| failure.of_node(&self.address).into_error(ask.operation()))
    }
}

impl fmt::Debug for RedisNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisNode").field("address", &self.address).finish_non_exhaustive()
    }
}
