//! The MySQL backend against real MariaDB servers: fences, broken twins of the procedures, crashes, and connections.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod fences;
mod roles;
mod support;
mod tellers;
mod turns;
mod twins;
