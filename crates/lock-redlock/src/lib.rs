//! A quorum of independent nodes as one backend: Redlock, with fencing tokens and recovery from restarts.
//!
//! Each node is asked in parallel, and the verdict falls as soon as it is certain. Tokens rise whatever clocks, pauses and
//! messages do, as long as a node that two majorities share keeps its counter; a node that lost its memory abstains until
//! all that it forgot is over. What is promised and what is not stands in `docs/guarantees.md`, how a node keeps things in
//! `docs/wire.md`.
//!
//! The nodes are a type parameter: anything that is an [`AsyncQuorumNode`](lock_core::node::AsyncQuorumNode) or a
//! [`BlockingQuorumNode`](lock_core::node::BlockingQuorumNode).
//!
//! Reading order: `quorum` (what is decided, without I/O: `acquire`, `renew`, `release`, `recovery`) · `nonblocking` and
//! `blocking` (what sends it) · `hints` (what nodes tell unasked) · `config` (URLs).

pub mod blocking;
mod config;
mod epochs;
mod hints;
#[cfg(feature = "async")]
pub mod nonblocking;
pub mod quorum;

pub use config::{NodeUrl, RedlockConfig};
pub use epochs::HostEpochs;

use std::time::Duration;

use lock_core::{Capabilities, Durability, Isolation, RequestOrder, Waiting};

/// The name under which errors and capabilities speak of this backend.
const BACKEND: &str = "redlock";

/// The longest ttl where nothing else is said. It is also how long a node abstains at least that knows of no deployment,
/// where too few others remember.
const DEFAULT_MAX_TTL: Duration = Duration::from_secs(5 * 60);

/// What a quorum can do, whatever its nodes are.
fn capabilities() -> Capabilities {
    Capabilities::new(BACKEND, Waiting::Poll, Durability::ClockFloor)
        .with_shared_counter()
        .with_ordering(RequestOrder::InOrder)
        .with_isolation(Isolation::Isolated)
}
