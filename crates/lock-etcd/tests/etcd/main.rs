//! The etcd backend against real servers.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod base;
mod configured;
mod examined;
mod locks;
mod outages;
mod peers;
#[cfg(feature = "tls")]
mod security;
mod support;
