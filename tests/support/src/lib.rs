//! Real servers, a faulty proxy and processes for tests.
//!
//! Everything here fails a test loudly instead of returning errors: a server that is missing or does not start is the
//! test's failure, never a silent skip. No tokio in here: async and blocking tests use it.

#![allow(clippy::panic, reason = "a part of a test that cannot be set up fails the test")]

pub mod bounds;
mod proxy;
mod redis_server;
pub mod signals;
mod temp;

pub use bounds::Finish;
pub use proxy::{AfterDrop, Fault, Proxy};
pub use redis_server::{DataCopy, RedisOptions, RedisServer, RedisVersion};
pub use temp::temp_dir;

/// Runs something that must not fail for the test to mean anything.
#[track_caller]
fn must<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error}"),
    }
}
