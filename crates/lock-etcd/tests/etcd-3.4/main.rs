//! The same on the oldest etcd.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../etcd/changes.rs"]
mod changes;
#[path = "../etcd/configured.rs"]
mod configured;
#[path = "../etcd/deposed.rs"]
mod deposed;
#[path = "../etcd/histories.rs"]
mod histories;
#[path = "../etcd/history.rs"]
mod history;
#[path = "../etcd/latches.rs"]
mod latches;
#[path = "../etcd/locks.rs"]
mod locks;
#[path = "../etcd/nodes.rs"]
mod nodes;
#[path = "../etcd/outages.rs"]
mod outages;
#[path = "../etcd/peers.rs"]
mod peers;
#[path = "../etcd/renewals.rs"]
mod renewals;
#[path = "../etcd/support.rs"]
mod support;
#[path = "../etcd/upkeep.rs"]
mod upkeep;

/// The version that is tested.
const VERSION: test_support::EtcdVersion = test_support::EtcdVersion::V3_4;
