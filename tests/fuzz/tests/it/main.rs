//! Each test has one kind of reader read. See the documentation of the crate.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod core;
mod fence;
mod redis;
mod sqlite;
mod stores;
