//! The etcd backend against real servers.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod deposed;
mod locks;
mod outages;
mod peers;
mod support;

/// The version that is tested.
const VERSION: test_support::EtcdVersion = test_support::EtcdVersion::V3_5;
