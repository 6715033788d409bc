//! A quorum of independent nodes as one backend: Redlock, with fencing tokens and a restart guard.
//!
//! Each node is asked in parallel, and the verdict falls as soon as it is certain. Tokens rise whatever clocks, pauses and
//! messages do, as long as a node that two majorities share keeps its counter; a node that lost its memory abstains until
//! all that it forgot is over. What is promised and what is not stands in `docs/guarantees.md`, how a node keeps things in
//! `docs/wire.md`.
//!
//! The nodes are a type parameter: anything that is an [`AsyncQuorumNode`](lock_core::node::AsyncQuorumNode) or a
//! [`BlockingQuorumNode`](lock_core::node::BlockingQuorumNode).
//!
//! Reading order: `quorum` (what is decided, without I/O: `acquire`, `fence`, `release`, `guard`) · `nonblocking` and
//! `blocking` (who sends it) · `hints` (what nodes tell unasked) · `config` (URLs).

pub mod blocking;
mod config;
mod hints;
#[cfg(feature = "async")]
pub mod nonblocking;
pub mod quorum;

pub use config::{NodeUrl, RedlockConfig};

use std::io;
use std::time::Duration;

use lock_core::node::Epoch;
use lock_core::{
    BackendError, Capabilities, Durability, Effect, ErrorKind, Isolation, Operation, RequestOrder, Waiting,
};
use lock_host::random_u64;

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

/// How long each step of a pass of the guard may take that nobody waits for.
const GUARD_WITHIN: Duration = Duration::from_secs(1);

/// An epoch for each of so many nodes.
fn random_epochs(nodes: usize) -> io::Result<Vec<Epoch>> {
    (0..nodes).map(|_| random_u64().map(Epoch::from_random)).collect()
}

fn no_randomness(error: &io::Error) -> BackendError {
    let told = format!("this host has no randomness: {error}");
    BackendError::new(BACKEND, Operation::Connect, ErrorKind::Config, Effect::None, told)
}

/// An errand ended without a verdict: who should run it is gone.
fn no_verdict() -> BackendError {
    let told = "what was asking the nodes has ended";
    BackendError::new(BACKEND, Operation::Acquire, ErrorKind::Unreachable, Effect::Unknown, told)
}
