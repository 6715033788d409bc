//! The Redis backend against a real server, in both facades.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod alike;
mod bounded;
mod breaks;
mod cluster_faults;
mod cluster_keys;
mod cluster_moves;
mod clusters;
mod crowd;
mod dwell;
mod dwell_modes;
mod dwell_twins;
mod errors;
mod exclusion;
mod facades;
mod faults;
mod flushes;
mod fsync;
mod greeting;
mod hand_over;
mod handed_over;
mod inspect;
mod keeping;
mod latches;
mod limits;
mod long_queues;
mod losses;
mod many;
mod modes;
mod node;
mod pools;
mod promotions;
mod queue;
mod queue_cost;
mod queue_entries;
mod queue_versions;
mod replicas;
mod replicas_keep;
mod revocations;
mod sentinels;
mod shared_versions;
mod sharing;
mod sizes;
mod support;
#[cfg(feature = "tls")]
mod tls;
mod together;
mod tokens;
mod versions;
