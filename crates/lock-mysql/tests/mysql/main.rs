//! The MySQL backend against real MariaDB servers: fences, broken twins of the procedures, crashes, and connections.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod begins;
mod beside;
mod clocks;
mod connecting;
mod connections;
mod counter;
mod dumps;
mod durability;
mod encryption;
mod examined;
mod fences;
mod gates;
mod levels;
mod pools;
mod roles;
mod schedules;
mod storm;
mod support;
mod sweeps;
mod tellers;
mod terms;
mod turns;
mod twins;
