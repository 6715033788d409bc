//! The etcd backend against real servers.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod base;
mod beside_go;
mod changes;
mod configured;
mod deposed;
mod examined;
mod histories;
mod history;
mod latches;
mod locks;
mod nodes;
mod outages;
mod peers;
mod renewals;
#[cfg(feature = "tls")]
mod security;
mod support;
mod upkeep;

/// The version that is tested.
const VERSION: test_support::EtcdVersion = test_support::EtcdVersion::V3_5;
