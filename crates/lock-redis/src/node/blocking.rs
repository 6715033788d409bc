//! A node for plain threads.

use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

use lock_core::node::{Ask, BlockingQuorumNode, QuorumNode, Told};
use lock_core::{BackendError, EventSink, Location, LockName, Queueing};

use super::ask::{Whole, parts};
use super::open;
use crate::RedisConfig;
use crate::blocking::Source;
use crate::failure::Failure;
use crate::servers::{Server, Source as _};
use crate::span::Span;

/// A node with up to eight connections, which the threads that send requests share. Once somebody has to wait, a separate thread with a
/// connection of its own learns when locks are freed.
pub struct RedisNode {
    server: Server<Source>,
    address: String,
}

impl RedisNode {
    /// The Redis of `config`, listed in its deployment as `address`. It connects with the first request, and again when
    /// a connection breaks.
    ///
    /// # Errors
    /// A configuration that cannot work. Nothing was sent.
    pub fn new(config: &RedisConfig, address: impl Into<String>) -> Result<Self, BackendError> {
        let address = address.into();
        Ok(Self { server: open(config, &address)?, address })
    }

    fn answer(&self, ask: &Ask, span: Span) -> Result<Told, Failure> {
        let Some(parts) = parts(ask) else { return self.server.answer(ask, span) };
        let mut whole = Whole::default();
        for part in &parts {
            if let ControlFlow::Break(other) = whole.take(self.server.answer(part, span)) {
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

impl BlockingQuorumNode for RedisNode {
    fn for_keeper(&self) -> Self {
        Self { server: self.server.another(), address: self.address.clone() }
    }

    fn ask(&self, ask: &Ask, within: Duration) -> Result<Told, BackendError> {
        let told = self.answer(ask, Span::from_now(within));
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
