//! The machine against models of its stores, in virtual time.
//!
//! The stations and the keeper are the real ones. There are three kinds of store: [`redis`] is one Redis with our scripts, as
//! `docs/wire.md` describes them, [`quorum`] is the real code of a quorum over the model nodes of `lock-memory`, and
//! [`memory`] is the reference store of `lock-memory`, for what only that can do.
//! Between processes and stores is a network that delays, loses, doubles and reorders, cuts, and has gaps. Processes stand
//! still, end and come back, and so do stores, with their data, without, or with old ones. Every clock shows something else.
//!
//! One seed decides everything: playing the same seed does the same to the last letter. A run has some time in which
//! everything goes wrong, and then some in which all is well and everybody must have a turn. What must hold whatever
//! happens stands in `invariants`, one rule in each file. Each [`Fault`] is counted, so that a test can say that it
//! fired; each mistake turns one rule off, so that a test can say that it would be found. Some rules of the quorum's guard are
//! missed only in a rare order of events: its plots play those orders, with jitter.
//!
//! `cargo test -p lock-sim` plays a thousand seeds of each kind or so, `cargo xtask sim` many. `LEASEHOLD_SEEDS=20000` has the
//! tests play more, and `LEASEHOLD_SEED=7` that one alone; a seed that fails says what happened before it, and how to play it again.
//!
//! Begin with `world` (what there is, and how time goes on); then `client` (a process), `network` (what is between), and
//! one kind of store with what goes wrong there: its `mischief`, its `invariants`.

mod client;
mod clock;
mod diary;
mod dice;
mod env;
mod fault;
mod invariants;
mod ledger;
mod letter;
pub mod memory;
mod network;
pub mod quorum;
pub mod redis;
mod run;
mod wish;
mod world;

pub use fault::{Fault, Tally};
pub use invariants::{Broken, Rule};
pub use run::Report;
