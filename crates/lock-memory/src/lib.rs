//! The reference backend: a store in this process, on a clock you can move.
//!
//! Queue, hand-over and events are complete here, in the simplest code: the rules of `lock-rules` over maps. Every other
//! backend is measured against it. Locks and tokens last as long as the store and never leave the process. With a
//! manual clock, a test skips hours at once:
//!
//! ```
//! use std::sync::Arc;
//! use lock_core::{BlockingBackend, Answer, Claim, Fairness, NameKind, Note, Owner, Queueing, Terms, Ttl, Width};
//! use lock_host::ManualClock;
//! use lock_memory::MemoryStore;
//!
//! let clock = ManualClock::new();
//! let store = MemoryStore::new(Arc::new(clock.clone()));
//! let (one, other) = (store.blocking(), store.blocking());
//! let claim = |byte| Claim {
//!     name: "invoice:42".parse().unwrap(),
//!     owner: Owner::from_random([byte; 16]),
//!     terms: Terms::exclusive(Ttl::DEFAULT),
//!     width: Width::ONE,
//!     floor: None,
//!     note: Note::from_wire("1@here"),
//!     queueing: Queueing::Unwanted,
//!     replaces: None,
//!     fairness: Fairness::Fair,
//!     kind: NameKind::Lock,
//! };
//! assert!(matches!(one.acquire(&claim(1), Ttl::DEFAULT.get())?, Answer::Granted { .. }));
//! assert!(matches!(other.acquire(&claim(2), Ttl::DEFAULT.get())?, Answer::Busy { .. }));
//! clock.advance(Ttl::DEFAULT.get());
//! assert!(matches!(other.acquire(&claim(2), Ttl::DEFAULT.get())?, Answer::Granted { .. }));
//! # Ok::<(), lock_core::BackendError>(())
//! ```
//!
//! Reading order: `store` (the requests) · `rows` (one lock as the rules see it) · `lock`, `holds`, `queue` (what is stored of
//! it) · `latches` · `client` (who asks, and where events go) · `nonblocking`, `blocking` (the backends) · `config` (URLs) ·
//! `faults` (a wrapper that makes any backend fail on command) · `node` (one node of a quorum).

pub mod blocking;
mod client;
mod config;
#[cfg(test)]
mod costs;
#[cfg(test)]
mod failing;
pub mod faults;
mod holds;
mod latches;
mod lock;
pub mod node;
pub mod nonblocking;
mod notice;
mod queue;
mod revocations;
mod rows;
pub mod store;
mod visits;

pub use client::MemoryStore;
pub use config::{MemoryConfig, StoreName};

/// The name of this backend in errors and capabilities.
const BACKEND: &str = "memory";
