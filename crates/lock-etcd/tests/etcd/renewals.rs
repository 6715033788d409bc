//! What clients learn when their watches are cut, and what a renewal tells of a key that was deleted.

use std::time::{Duration, Instant};

use lock_core::{LossReason, StoreEvent};
use test_support::Proxy;
use test_support::bounds::wait_for;

use crate::support::{Client, claim, facade, server, waiting};

const TTL: Duration = Duration::from_secs(12);

#[test]
fn a_deletion_by_hand_is_learnt_at_the_next_renewal_although_the_lease_of_etcd_lives() {
    let (server, proxy) = (server(), Proxy::start(server().port()));
    let holder = facade(&format!("etcd://127.0.0.1:{}", proxy.port()));
    let guard = holder.mutex("deleted").ttl(TTL).acquire().unwrap();
    let (next, claim) = (Client::new(&server.url()), waiting("deleted"));
    next.queue(&claim, 1);
    let keys = server.run(&["get", "--prefix", "--keys-only", "--sort-by", "CREATE", "leasehold/deleted/"]);
    let key = keys.lines().next().unwrap();

    server.run(&["del", key]);
    let deleted = Instant::now();
    assert!(proxy.cut() > 0);
    next.wait_for_grant(&claim);
    let lost = guard.lost();
    let learnt = deleted.elapsed();
    assert!(matches!(lost.reason, LossReason::NotHeld), "{lost}");
    assert!(learnt < TTL / 2, "it was renewed every {:?}, and learnt of the loss after {learnt:?}", TTL / 3);
    // Who renews only the lease of etcd learns nothing.
    let told = server.run(&["lease", "keep-alive", "--once", key.rsplit('/').next().unwrap()]);
    assert!(told.contains("keepalived with TTL"), "{told}");
    next.releases(&claim);
    drop(wait_for("the lock", || holder.mutex("deleted").try_acquire().ok().flatten()));
}

#[test]
fn waiters_are_told_that_their_watch_was_cut() {
    let (server, proxy) = (server(), Proxy::start(server().port()));
    let [one, two] = [server.port(), proxy.port()].map(|port| Client::new(&format!("etcd://127.0.0.1:{port}")));
    let (first, next) = (claim("cut"), waiting("cut"));
    one.take(&first);
    two.queue(&next, 1);
    assert!(proxy.cut() > 0);
    wait_for("an event", || two.is_told(|event| matches!(event, StoreEvent::RecheckAll)));
    wait_for("the place", || two.acquire(&next).is_ok());
    one.releases(&first);
    two.wait_for_grant(&next);
}
