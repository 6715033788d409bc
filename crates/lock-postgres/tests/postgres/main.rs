//! The PostgreSQL backend against real servers: fences, schedules that broken functions do not survive, crashes, and connections.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod begins;
mod connecting;
mod connections;
mod durability;
mod fences;
mod pooler;
mod roles;
mod schedules;
mod standbys;
mod support;
mod sweeps;
