//! The umbrella crate as users see it. Metrics, alerts and tracing are programs of their own, because each sets something for the
//! whole process.
#![cfg(feature = "full")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and a process tells its parent by printing"
)]

mod away;
mod backups;
mod connect;
mod fencing;
mod following;
mod mysql;
mod observing;
mod pages;
mod pools;
mod postgres;
mod postgres_pools;
mod schema;
mod starved;
