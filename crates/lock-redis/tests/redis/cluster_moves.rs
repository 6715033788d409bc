//! Hash slots that move while their server dwells, so that keys are there which otherwise make it refuse a request in time.

use std::fmt::Debug;
use std::thread;
use std::time::Duration;

use lock_core::{BackendError, Certainty, Claim, Effect, ErrorKind, Mode, ReleaseRequest, Released, Terms};
use test_support::bounds::within;
use test_support::{Cluster, RedisServer};

use crate::dwell::{asks, dwells, queues, valid};
use crate::facades::{on_threads, on_tokio};
use crate::support::{SOON, both, claim, eventually, granted, release_of};

/// Longer than any of these tests takes: what is free before was released.
const TTL: Duration = Duration::from_secs(60);

/// The URL for a client that waits for the end of a dwell.
fn dwelling(cluster: &Cluster) -> String {
    cluster.url().replace("failover=grant", "max_ttl=60s")
}

/// The dwell of a hash slot at this server.
struct Dwell<'a>(&'a RedisServer, String);

impl<'a> Dwell<'a> {
    fn of(cluster: &Cluster, server: &'a RedisServer, name: &str) -> Self {
        let hash_slot = cluster.hash_slot_of(name);
        let find = || {
            let keys: Vec<String> = server.command(&["KEYS", "leasehold:*:dwell"]);
            keys.into_iter().find(|key| cluster.hash_slot_of(key) == hash_slot)
        };
        Self(server, eventually("the dwell of the hash slot", find))
    }

    fn begin(&self) {
        self.0.command::<()>(&["SET", &self.1, "", "PX", "600000"]);
    }

    fn end(&self) {
        self.0.command::<()>(&["DEL", &self.1]);
    }
}

#[track_caller]
fn is_refused<T: Debug>(what: &str, answer: Result<T, BackendError>) {
    let error = answer.expect_err("it was not refused");
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{what}: {error}");
}

#[test]
fn what_needs_more_than_a_lock_is_refused_without_effect_while_its_hash_slot_dwells_and_moves() {
    let cluster = Cluster::start();
    let server = &cluster.servers[0];
    for (facade, client) in both(&dwelling(&cluster)) {
        let name = cluster.name_at(0, facade);
        let held = asks(&name);
        dwells(client.acquire(&held, SOON));
        let dwell = Dwell::of(&cluster, server, &name);
        dwell.end();
        granted(client.acquire(&held, SOON));
        dwell.begin();
        let migration = cluster.migrate(cluster.hash_slot_of(&name), 1);
        let keys = migration.keys();
        is_refused(facade, client.acquire(&asks(&name), SOON));
        is_refused(facade, client.acquire(&queues(&name), SOON));
        is_refused(facade, client.acquire(&reads(&name), SOON));
        is_refused(facade, client.release(&valid(&held), SOON));
        is_refused(facade, client.release(&release_of(&held, Certainty::Unknown), SOON));
        let keeps = ReleaseRequest { keep: Some(TTL), ..valid(&held) };
        is_refused(facade, client.release(&keeps, SOON));
        // Its first connection verifies the hash slot.
        for (facade, next) in both(&dwelling(&cluster)) {
            is_refused(facade, next.acquire(&asks(&name), SOON));
        }
        assert_eq!(migration.keys(), keys, "{facade}: a request was run in part");
        migration.finish();
        let released = eventually("the hash slot has moved", || client.release(&valid(&held), SOON));
        assert_eq!(released, Released::Released);
    }
}

fn reads(name: &str) -> Claim {
    Claim { terms: Terms { mode: Mode::Shared, ..asks(name).terms }, ..asks(name) }
}

/// What a user sees: a wait goes on, and a release is repeated.
#[test]
fn waits_and_releases_survive_the_move_of_a_hash_slot_that_dwells() {
    let cluster = Cluster::start();
    let (url, server) = (dwelling(&cluster), &cluster.servers[0]);
    let facades = [("async", on_tokio(&url), on_tokio(&url)), ("blocking", on_threads(&url), on_threads(&url))];
    for (facade, holds, waits) in &facades {
        let name = cluster.name_at(0, facade);
        let [(_, client), _] = both(&url);
        dwells(client.acquire(&claim(&name), SOON));
        let dwell = Dwell::of(&cluster, server, &name);
        dwell.end();
        let held = holds.acquire(&name, TTL);
        dwell.begin();
        let migration = cluster.migrate(cluster.hash_slot_of(&name), 1);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| waits.acquire(&name, TTL).release());
            assert!(held.end().is_err(), "{facade}: it was released while its hash slot moved");
            thread::sleep(Duration::from_millis(500));
            assert!(!waiter.is_finished(), "{facade}: it did not wait");
            migration.finish();
            let there = &cluster.servers[1];
            eventually("the release is repeated", || there.command::<u64>(&["EXISTS", &name]) == 0);
            Dwell::of(&cluster, there, &name).end();
            within("the waiter", || waiter.join().unwrap());
        });
    }
}
