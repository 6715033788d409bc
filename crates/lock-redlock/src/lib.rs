//! A quorum of independent nodes as one backend: Redlock, with fencing tokens and recovery from restarts.
//!
//! All nodes are asked in parallel, and the verdict is reached as soon as it is certain. Tokens rise whatever clocks,
//! pauses and messages do, as long as any two majorities share a node that keeps its counter. A node that lost its
//! memory abstains until everything that it forgot has expired. `docs/book/src/guarantees.md` says what is guaranteed,
//! `docs/wire.md` what a node stores.
//!
//! # What a node does after a loss of memory
//! It abstains for the longest ttl in use. If too few other nodes know that ttl, it abstains for `max_ttl`; if it has also forgotten its
//! deployment, for at least five minutes; and in any case for at least two seconds. After a majority lost its data, that is at least five
//! minutes, even if a minority remembers a shorter `max_ttl`: a move that raised it may have left that minority behind.
//!
//! Notes of when a node began to abstain count only if a majority of them agrees to within 1 % and two seconds. A note ahead of its node's clock,
//! which was set back, is made anew, so clocks that are corrected after a restart cost at most one more wait. If all clocks step by the same
//! amount, nothing shows it: make sure that the time is right before the server starts. A clock that is years ahead pulls the tokens of all
//! nodes up with it; they stay there, and still rise. A clock beyond the year 2255 is not followed.
//!
//! # Deployments
//! While a node of another deployment answers, a node that knows of no deployment waits until a majority votes in this one, because it may belong
//! to the other. So does a node that restarted, if the other deployment comes from a later move: its data may be older than that.
//!
//! Two lists of nodes do not both grant after a move from one to the other, or after one that was interrupted: no node votes in the new list until
//! more than half of the old nodes were moved to it and have waited for `max_ttl` (or half of them, if the first one is among them), or a new
//! node has that the command moved after these. Moves are numbered, and each node compares the list that a move has found with its own. If
//! three moves at once leave no list with so many nodes, or two and a loss of data, none can grant.
//!
//! # Outcomes
//! A lease that a majority denies is not released: the nodes that still have it keep it until it expires, so that the holder's work can end
//! first. A round without a majority is released everywhere, and a claim that arrives after its release is refused.
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
