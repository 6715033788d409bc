//! Many seeds, and every rule turned off once.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod leased;
mod memory;
mod quorum;
mod redis;
mod replicated;
mod seeds;
mod session;
