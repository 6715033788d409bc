//! The machine against models of its stores, in virtual time.
//!
//! The stations and the keeper are the real ones. There are six kinds of store: [`redis`] is one Redis with our
//! scripts, as `docs/wire.md` describes them, for exclusive leases; [`memory`] is the reference store of `lock-memory`, with
//! readers, permits, kept locks, replaced leases and latches, where everything goes wrong that can go wrong with one Redis;
//! [`session`] is a store like ZooKeeper, whose entries end with the session of their client, with followers that answer from the
//! past; [`leased`] is a store like etcd, whose entries end with a lease each, with leaders that do not know that they lead no
//! more; [`replicated`] is the Redis of [`redis`] with replicas and sentinels; and [`quorum`] is the real code of a quorum over the
//! model nodes of `lock-memory`. Between processes and stores is a network that delays, loses, duplicates and reorders packets, cuts connections, and has partitions. Processes and stores are suspended, end
//! and restart; stores restart with their data, without it, or with an old copy. Every clock shows a different time.
//!
//! One seed decides everything: playing the same seed does the same in every detail. In the first part of a run
//! everything goes wrong; in the second part all is well, and every waiter must get a turn. What must hold whatever
//! happens is in `invariants`, with one rule in each file. Each [`Fault`] is counted, so that a test can check that it
//! fired. Each mistake turns one rule off, so that a test can check that this would be found. Some rules of recovery
//! matter only in a rare order of events: the quorum's plots play those orders, with jitter.
//!
//! `cargo test -p lock-sim` plays about a thousand seeds of each kind, `cargo xtask sim` many. `LEASEHOLD_SEEDS=20000`
//! makes the tests play more, and `LEASEHOLD_SEED=7` only that one. A seed that fails prints what happened before the
//! failure, and how to play it again.
//!
//! Begin with `world` (what there is, and how time advances); then `client` (a process), `network` (what is in
//! between), and one kind of store with what goes wrong there: its `mischief`, its `invariants`. What `redis`, `memory`, `session` and `leased`
//! have in common is in `one`, and the order of entries of the last two in `ordered`.

mod arriving;
mod client;
mod clock;
mod diary;
mod dice;
mod env;
mod fault;
mod fault_sets;
mod invariants;
pub mod leased;
mod ledger;
pub mod memory;
mod network;
mod one;
mod ordered;
mod packet;
pub mod quorum;
pub mod redis;
pub mod replicated;
mod run;
pub mod session;
mod wish;
mod world;

pub use fault::{Fault, Tally};
pub use invariants::{Broken, Rule};
pub use run::Report;
