//! Many processes on one lock while everything breaks, and a checker of what they saw.
//!
//! Each worker process writes a [`history`]: when it waited, when it got a turn, and until when its guard said that the
//! lock was held. All processes of one machine read the same clock, so the [`check`]er decides exactly whether two turns
//! overlapped and whether tokens rose. In each turn of a writer, or with a permit, they count in a [`register`] that
//! refuses lower tokens, so that no update may ever be lost. Readers share a lock, and permits have numbers. The tests
//! break servers, the network and the workers: `tests/it` those of one Redis, `tests/quorum` those of five, `tests/cluster`
//! those of a cluster, `tests/postgres` and `tests/mysql` those of one PostgreSQL or MariaDB, with a crowd on one lock. `tests/matrix` plays one fault at a time in each setting. `tests/crowds` has many readers,
//! writers and permits, limits that change, and workers with a mistake, which the checks must find. `tests/failovers` has a
//! primary with replicas that sentinels replace. In `tests/porcupine`, a checker that is not ours judges what was recorded.
//!
//! `cargo test -p stress -- --nocapture` runs them and prints their seed; `LEASEHOLD_SEED=7` replays one, and
//! `LEASEHOLD_STRESS_SECONDS=240` runs for longer. `cargo xtask chaos` does both.
//!
//! Reading order: `cast` (what the seats of a worker want) · `hold`, `ask`, `history`, `turn` (what is recorded) · `register` (what the
//! locks protect) · `problem`, `check`, `fair`, `double` (what must be true, and what was) · `operations` (the same for others to check) · `part` (what a worker is told) · `dice`, `seat` (what it does
//! next, from its seed) · `connect`, `nonblocking`, `threads` (the two facades of a worker) ·
//! `crew` (the processes) · `storm` (fault injection) · `nemesis` (that of one server) · `run` (a test's beginning and end) · `sql`, `crowd`
//! (what is the same for all databases).

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "parts of a test")]

pub mod ask;
pub mod cast;
pub mod check;
pub mod connect;
pub mod crew;
pub mod crowd;
mod dice;
pub mod double;
pub mod fair;
pub mod history;
pub mod hold;
pub mod nemesis;
pub mod nonblocking;
pub mod operations;
pub mod part;
pub mod problem;
pub mod register;
pub mod run;
mod seat;
pub mod sql;
pub mod storm;
pub mod threads;
pub mod turn;
