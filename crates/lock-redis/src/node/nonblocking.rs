//! A node for tokio.

use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

use futures_util::future::Either;
use lock_core::node::{Ask, AsyncQuorumNode, QuorumNode, Told};
use lock_core::{BackendError, EventSink, Location, LockName};

use super::ask::{Whole, parts};
use super::open;
use crate::RedisConfig;
use crate::failure::Failure;
use crate::nonblocking::Source;
use crate::servers::Server;
use crate::span::Span;

/// A node with one connection, which keeps requests in order and, in RESP3, also carries hints about freed locks.
pub struct RedisNode {
    server: Server<Source>,
    address: String,
}

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

    fn answer(&self, ask: &Ask, within: Duration) -> impl Future<Output = Result<Told, Failure>> + Send {
        match parts(ask) {
            None => Either::Left(self.server.answer_untimed(ask, within)),
            // Boxed: most requests do not need this space.
            Some(parts) => Either::Right(Box::pin(self.in_parts(parts, Span::from_now(within)))),
        }
    }

    async fn in_parts(&self, parts: Vec<Ask>, span: Span) -> Result<Told, Failure> {
        let mut whole = Whole::default();
        for part in &parts {
            if let ControlFlow::Break(other) = whole.take(self.server.answer(part, span).await) {
                return other;
            }
        }
        Ok(whole.told())
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

impl AsyncQuorumNode for RedisNode {
    fn for_keeper(&self) -> Self {
        Self { server: self.server.another(), address: self.address.clone() }
    }

    async fn ask(&self, ask: &Ask, within: Duration) -> Result<Told, BackendError> {
        let told = self.answer(ask, within).await;
        told.map_err(|failure| failure.of_node(&self.address).into_error(ask.operation()))
    }
}

impl fmt::Debug for RedisNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisNode").field("address", &self.address).finish_non_exhaustive()
    }
}
