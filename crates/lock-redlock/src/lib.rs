//! A quorum of independent nodes as one backend: Redlock, with fencing tokens and recovery from restarts.
//!
//! All nodes are asked in parallel, and the verdict is reached as soon as it is certain. Tokens rise whatever clocks,
//! pauses and messages do, as long as any two majorities share a node that keeps its counter. A node that lost its
//! memory abstains until everything that it forgot has expired. `docs/book/src/guarantees.md` says what is guaranteed,
//! `docs/wire.md` what a node stores.
//!
//! The nodes are a type parameter: anything that is an [`AsyncQuorumNode`](lock_core::node::AsyncQuorumNode) or a
//! [`BlockingQuorumNode`](lock_core::node::BlockingQuorumNode).
//!
//! Reading order: `quorum` (what is decided, without I/O: `acquire`, `renew`, `release`, `recovery`) · `nonblocking` and
//! `blocking` (which send it) · `inspect` (what operators see) · `hints` (events from the nodes), `location` · `config` (URLs).

#![cfg_attr(feature = "async", expect(clippy::duplicate_mod, reason = "what both forms share is compiled in each"))]

pub mod blocking;
mod config;
mod epochs;
mod hints;
mod inspect;
mod location;
#[cfg(feature = "async")]
pub mod nonblocking;
pub mod quorum;

pub use config::{NodeUrl, RedlockConfig};
pub use epochs::HostEpochs;

use std::time::Duration;

use lock_core::{
    Ability, BackendError, Capabilities, Durability, Effect, ErrorKind, Isolation, Operation, RequestOrder, Waiting,
};

/// The name of this backend in errors and capabilities.
const BACKEND: &str = "redlock";

/// The longest ttl unless the configuration says otherwise. It is also the shortest time for which a node abstains if
/// it knows of no deployment and too few others remember.
const DEFAULT_MAX_TTL: Duration = Duration::from_secs(5 * 60);

/// How much longer than `within` to wait for a node: one that watches the time itself can say more about the request.
/// Chosen: more than the precision of timers.
const GRACE: Duration = Duration::from_millis(20);

/// What a quorum can do, whatever its nodes are.
fn capabilities() -> Capabilities {
    Capabilities::new(BACKEND, Waiting::Poll, Durability::ClockFloor)
        .with_shared_counter()
        .with_several_copies()
        .with_ordering(RequestOrder::InOrder)
        .with_isolation(Isolation::Isolated)
        .with_abilities(&[Ability::Inspect])
}

/// A majority of the nodes agrees about one owner, not about a set of arrivals.
fn no_latches() -> BackendError {
    let told = "a quorum has no latches: each of its nodes would count the arrivals on its own";
    BackendError::new(BACKEND, Operation::Latch, ErrorKind::Unsupported, Effect::None, told)
        .with_remedy("use a single Redis or a SQLite file for latches")
}
