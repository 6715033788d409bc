//! Many processes on one lock while everything breaks, and a checker of what they saw.
//!
//! Each worker process writes a [`history`]: when it waited, when it was given a turn, until when its guard said that
//! the lock was held. All processes of one machine read the same clock, so the [`check`]er decides exactly whether two
//! turns overlapped and whether tokens rose. The test in `tests/it` breaks the server, the network and the workers.
//!
//! `cargo test -p stress -- --nocapture` runs it and prints its seed; `LEASEHOLD_SEED=7` takes one back, and
//! `LEASEHOLD_STRESS_SECONDS=240` breaks things for longer.
//!
//! Reading order: `history` (what is written down) · `check` (what must be true of it) · `part` (what a worker does
//! next, from its seed) · `nonblocking`, `threads` (the two faces of a worker).

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, reason = "a worker that cannot work fails the test")]

pub mod check;
pub mod history;
pub mod nonblocking;
pub mod part;
pub mod threads;
