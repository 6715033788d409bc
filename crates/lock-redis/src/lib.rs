//! The backend for one standalone Redis, 6.2 or later, or Valkey, for a primary that sentinels name, and for a cluster.
//!
//! **Wire.** The key is the lock's name as given (or `PREFIX:NAME`), its value is
//! `lh1:<owner, 32 hex digits>:<low token>:<high token>:<note>`, and its expiry is the lease's: redis-py, redsync,
//! node-redlock and rslock see an opaque token in the layout of the Redis manual, so on the same key they exclude us
//! and we exclude them. A value that is not ours is [`Holder::Foreign`](lock_core::Holder::Foreign); a key of another
//! type is an error of kind `OtherKind` and is never touched. While leases share a name, its value is `lh2:s:<limit>:`, and two
//! more keys say who they are. Our own keys begin with `leasehold:` and are the same
//! under every prefix.
//!
//! **Tokens** come from one counter for each database (or hash slot of a cluster), raised to the server's clock in microseconds when it is missing,
//! whenever the server or the history of its data is not the one for which it was last verified, and in every draw
//! while the server has replicas. They rise across restarts, losses of data and promotions as long as the server's
//! clock is not set back by more than the outage; the floor of each claim catches the remaining cases.
//!
//! **Not guaranteed:** a Redis that fails over, or restarts without its data, forgets who holds what, so two owners may
//! hold a lock at once. Their tokens differ, and a resource that checks them is safe. With `replicas=N` in its URL, a lease counts
//! only once N replicas have acknowledged it.
//!
//! Reading order: `config` (with what each scheme means in `scheme`), `deployment`, `failover` (URLs) · `script` (what Redis runs) ·
//! `hash_slot`, `keys`, `wire` (how it is asked), `requests` (what is asked: `verbs` first, then `value`, `seen` and `look` for the
//! answers) · `replicas` (what they have to have) · `channel` (notifications from Redis) · `failure`, `classify` (what an error means) ·
//! `span` (time limits) · `target`, `connect`, `server` (what a client learns of a server before it relies on it: `greeting`,
//! `verification`) · `servers` (the client of each), `directory` (which of them has a lock: `sentinels`, `cluster`), `routing` (where a
//! request goes next) · `runs` (scripts for many) · `nonblocking` (tokio: `batcher`, `live` and `link` are its connection; `client`, `backend`
//! and `listing` are compiled for threads as well) · `blocking` (threads: `socket`, `slots` and `stack` are its connections) · `probe` (whether a pool and a URL lead to the same server) · `init`
//! (a deployment that is new) · `node` (a Redis as a node of a quorum).

#![cfg_attr(feature = "async", expect(clippy::duplicate_mod, reason = "what both forms share is compiled in each"))]

mod address;
pub mod blocking;
#[cfg(feature = "dev")]
#[doc(hidden)]
#[path = "../dev/by_hand.rs"]
pub mod by_hand;
mod channel;
mod classify;
mod cluster;
mod config;
mod connect;
mod deployment;
mod described;
mod directory;
mod examine;
mod failover;
mod failure;
#[cfg(feature = "dev")]
#[doc(hidden)]
#[path = "../dev/fuzz.rs"]
pub mod fuzz;
mod hash_slot;
mod init;
mod keys;
pub mod node;
#[cfg(feature = "async")]
pub mod nonblocking;
#[cfg(any(feature = "deadpool", feature = "r2d2"))]
mod probe;
mod replicas;
mod requests;
mod routing;
mod runs;
mod script;
mod sentinels;
mod server;
mod servers;
mod span;
mod sync;
mod target;
mod wire;

pub use config::RedisConfig;
pub use failover::OnFailover;
pub use init::{Declared, declare_new};

use lock_core::ModeKind;

/// What one Redis can grant.
const MODES: &[ModeKind] = &[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits];

/// The name under which errors and capabilities speak of this backend.
const BACKEND: &str = "redis";
