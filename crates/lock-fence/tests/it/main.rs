//! The checks against real threads, a real database and a real server.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod gate;
mod http;
mod race;
mod raise;
mod redis;
mod replicas;
mod resources;
mod sql;

use lock_core::{FencingToken, WriteToken};

/// The token with this number.
fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

/// The same, as that of a writer.
fn write_token(number: u64) -> WriteToken {
    WriteToken::of_writer(token(number))
}
