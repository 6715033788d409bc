//! The PostgreSQL backend against real servers: fences, schedules that broken functions do not survive, crashes, and connections.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod begins;
mod beside;
mod clocks;
mod connecting;
mod connections;
mod counter;
mod cuts;
mod dumps;
mod durability;
mod examined;
mod fences;
mod levels;
mod limits;
mod pooler;
mod pools;
mod revivals;
mod roles;
mod schedules;
mod shown;
mod standbys;
mod support;
mod sweeps;
mod terms;
mod waiters;
