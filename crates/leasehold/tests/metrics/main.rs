//! The feature `metrics`, as Prometheus scrapes it: on two stores and in both facades, and as `docs/book/src/metrics.md` describes it.
#![cfg(feature = "full")]
#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "tests may, and counts are exact")]

mod client;
mod endpoint;
mod pages;
mod play;

use std::sync::{Arc, LazyLock};
use std::thread;

use leasehold::blocking;
use leasehold::memory::MemoryStore;
use leasehold::redis::RedisConfig;
use test_support::RedisServer;
use test_support::bounds::{Watchdog, wait_for};

use client::{Client, Parts, Store};
use endpoint::{Endpoint, Scrape};
use play::Play;

const STORES: [&str; 2] = ["memory", "redis"];

/// Everything has happened in both facades on both stores, and all clients have ended.
static SCRAPE: LazyLock<Scrape> = LazyLock::new(|| {
    let endpoint = Endpoint::start();
    let facades = [Store::on_tokio as fn(&Store, &Parts) -> Client, Store::on_threads];
    thread::scope(|scope| {
        let endpoint = &endpoint;
        for facade in facades {
            scope.spawn(move || {
                let parts = Parts::default();
                let store = MemoryStore::new(Arc::new(parts.clock.clone()));
                let other = blocking::Client::builder(Arc::new(store.blocking())).clock(Arc::new(parts.clock.clone()));
                let client = facade(&Store::Memory(store), &parts);
                Play { backend: "memory", parts, client, other: other.build().unwrap(), endpoint }.run();
            });
            scope.spawn(move || {
                let (server, parts) = (RedisServer::start(), Parts::default());
                let client = facade(&Store::Redis(Box::new(RedisConfig::from_url(&server.url()).unwrap())), &parts);
                let other = blocking::connect(&server.url()).unwrap();
                Play { backend: "redis", parts, client, other, endpoint }.run();
            });
        }
    });
    let gauges = ["leasehold_locks_held", "leasehold_releases_pending", "leasehold_store_unavailable"];
    wait_for("the gauges to be zero after the clients have ended", || {
        let scrape = endpoint.scrape();
        let zero = |gauge: &&str| STORES.iter().all(|store| scrape.value(gauge, &[("backend", store)]) == Some(0.0));
        gauges.iter().all(zero).then_some(scrape)
    })
});

#[test]
fn both_facades_count_the_same_on_each_store() {
    let _watchdog = Watchdog::over_this_test();
    for store in STORES {
        let value = |name, label, value| SCRAPE.value(name, &[("backend", store), (label, value)]);
        for reason in ["expired", "revoked", "max hold"] {
            assert_eq!(value("leasehold_lost_total", "reason", reason), Some(2.0), "{store}, {reason}");
        }
        for outcome in ["busy", "timed out", "closed"] {
            assert_eq!(value("leasehold_acquire_seconds_count", "outcome", outcome), Some(2.0), "{store}, {outcome}");
        }
        for outcome in ["dropped", "cancelled"] {
            assert_eq!(value("leasehold_acquire_seconds_count", "outcome", outcome), Some(1.0), "{store}, {outcome}");
        }
        assert_eq!(value("leasehold_hold_seconds_count", "end", "detached"), Some(2.0), "{store}");
        for counter in ["leasehold_degraded_total", "leasehold_renewals_late_total"] {
            assert_eq!(SCRAPE.sum(counter, store), 2.0, "{store}, {counter}");
        }
        let acquired = value("leasehold_acquire_seconds_count", "outcome", "acquired");
        assert_eq!(Some(SCRAPE.sum("leasehold_hold_seconds_count", store)), acquired, "each hold has one end");
    }
}

/// The calls wait for others for 15 s. How soon they know of them depends on the machine.
#[test]
fn seconds_are_seconds() {
    let _watchdog = Watchdog::over_this_test();
    for store in STORES {
        let waited = SCRAPE.sum("leasehold_wait_seconds_sum", store);
        assert!((1.0..300.0).contains(&waited), "{store}: {waited}");
        assert!(SCRAPE.sum("leasehold_long_waits_total", store) >= 2.0, "{store}");
        assert!(SCRAPE.sum("leasehold_queue_position_count", store) >= 2.0, "{store}");
        assert!(SCRAPE.sum("leasehold_hold_seconds_sum", store) >= 2.0 * (20.0 + 29.0 + 10.0), "{store}");
    }
}
