//! Many processes on one lock while everything breaks, and a checker of what they saw.
//!
//! Each worker process writes a [`history`]: when it waited, when it was given a turn, until when its guard said that
//! the lock was held. All processes of one machine read the same clock, so the [`check`]er decides exactly whether two
//! turns overlapped and whether tokens rose. The test in `tests/it` breaks the server, the network and the workers.
//!
//! Reading order: `history` (what is written down) · `check` (what must be true of it) · `part` (what a worker does
//! next, from its seed) · `nonblocking`, `threads` (the two faces of a worker).

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, reason = "a worker that cannot work fails the test")]

pub mod check;
pub mod history;
pub mod nonblocking;
pub mod part;
pub mod threads;
