//! Servers that are suspended: connections stay, and nothing answers.

use std::time::{Duration, Instant};

use lock_core::ErrorKind;
use test_support::bounds::{wait_at_most, wait_for};
use test_support::{Proxy, ZookeeperEnsemble, ZookeeperOptions, ZookeeperServer};

use crate::support::{Client, SOON, at, claim, end, locks, meanwhile, url, waiting};

/// A client leaves a server that says nothing after two fifths of this, and an ensemble its leader after a second.
const SESSION: Duration = Duration::from_secs(8);
const BRIEF: Duration = Duration::from_secs(6);

fn ensemble() -> ZookeeperEnsemble {
    // Two seconds of silence are enough for another leader.
    ZookeeperEnsemble::start_with(ZookeeperOptions::default().volatile().settings(&["syncLimit=4"]))
}

/// Suspends the server that a client is connected to. The client finds another one before its lease ends.
fn suspend_under(ensemble: &ZookeeperEnsemble, stopped: usize, name: &str) {
    let other = (0..3).find(|number| *number != stopped && ensemble.is_serving(*number)).unwrap();
    let proxy = Proxy::start(ensemble.server(stopped).port());
    let ours = locks(&url(&at(proxy.port()), SESSION));
    let next = Client::new(&url(&ensemble.server(other).address(), SESSION));
    let guard = ours.mutex(name).acquire().unwrap();
    let place = waiting(name);
    next.queue(&place, 1);
    ensemble.server(stopped).stop();
    proxy.lead_to(ensemble.server(other).port());
    let suspended = Instant::now();
    wait_at_most(SESSION * 2, "the lease is renewed over another server", || {
        guard.check().is_err() || guard.valid_until() > suspended + SESSION
    });
    guard.check().unwrap();
    assert!(!next.is_granted(place.owner), "two hold the lock");
    guard.release().unwrap();
    next.wait_for_grant(&place);
    ensemble.server(stopped).resume();
    ensemble.wait_until_serving(stopped);
}

#[test]
fn a_client_leaves_a_suspended_follower_and_a_suspended_leader_and_keeps_its_lease() {
    let ensemble = ensemble();
    let leader = ensemble.leader();
    suspend_under(&ensemble, ensemble.followers()[0], "under a follower");
    assert_eq!(ensemble.leader(), leader);
    suspend_under(&ensemble, leader, "under the leader");
    assert_ne!(ensemble.leader(), leader);
}

/// The old leader is resumed when another one has given the lock away, and answers what it was asked before.
#[test]
fn a_lease_under_a_suspended_leader_ends_before_the_next_one_begins() {
    let ensemble = ensemble();
    let leader = ensemble.leader();
    let ours = locks(&url(&ensemble.server(leader).address(), BRIEF));
    let next = Client::new(&url(&ensemble.server(ensemble.followers()[0]).address(), SESSION));
    let guard = ours.mutex("led").acquire().unwrap();
    let place = waiting("led");
    next.queue(&place, 1);
    ensemble.server(leader).stop();
    let watch = guard.watch();
    let lost = meanwhile(move || watch.lost_within(SESSION));
    wait_for("the next one is granted", || next.is_granted(place.owner));
    assert!(guard.check().is_err(), "two hold the lock");
    ensemble.server(leader).resume();
    assert!(end(lost).is_some());
    ensemble.wait_until_serving(leader);
    assert!(guard.check().is_err());
    // A request for such short leases may have too little time to open the next session.
    let tried = wait_for("an answer", || ours.mutex("led").try_acquire());
    assert!(tried.is_none(), "the next one holds it");
}

#[test]
fn a_request_to_a_suspended_server_says_that_it_is_unreachable() {
    let server = ZookeeperServer::start();
    let client = Client::new(&url(&server.address(), BRIEF));
    let lease = client.take(&claim("held"));
    server.stop();
    for _ in 0..3 {
        let error = client.renew(&lease, SOON).expect_err("nothing answers");
        let kinds = [ErrorKind::Unreachable, ErrorKind::Unavailable];
        assert!(kinds.contains(&error.kind()), "{error:?}");
    }
    server.resume();
    wait_for("a grant", || client.acquire(&claim("free"), BRIEF));
}
