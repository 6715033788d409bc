//! The checks against real threads, a real database and a real server.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod gate;
mod http;
mod race;
mod redis;
mod resources;
mod sql;

use lock_core::FencingToken;

/// The token with this number.
fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}
