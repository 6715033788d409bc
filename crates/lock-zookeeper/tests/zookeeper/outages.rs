//! An ensemble that loses its leader or its majority.

use std::time::{Duration, Instant};

use lock_core::{ErrorKind, OnUnavailable};
use test_support::bounds::{wait_at_most, wait_for};
use test_support::{ZookeeperEnsemble, ZookeeperOptions};

use crate::support::{Client, SHORT, SOON, claim, end, locks, meanwhile, url};

/// Longer than any election here.
const SESSION: Duration = Duration::from_secs(8);
/// Shorter than an outage here.
const BRIEF: Duration = Duration::from_secs(6);
/// By how much a request may exceed its time, and a loss its deadline, on a loaded machine.
const LATE: Duration = Duration::from_secs(1);

#[test]
fn a_lease_outlasts_the_death_of_the_leader_and_the_waiter_gets_it_on_release() {
    let mut ensemble = ZookeeperEnsemble::start_with(ZookeeperOptions::default().volatile());
    let [ours, others] = [(); 2].map(|()| locks(&url(&ensemble.addresses(), SESSION)));
    let guard = ours.mutex("led").acquire().unwrap();
    // An election may last longer than a request: only a grant ends this wait.
    let mutex = others.mutex("led").wait(SESSION * 5).on_unavailable(OnUnavailable::Wait);
    let waiter = meanwhile(move || mutex.acquire().map(|guard| (Instant::now(), guard.fencing_token())));
    let leader = ensemble.leader();
    ensemble.server_mut(leader).kill();
    let killed = Instant::now();
    // A renewal that was answered under the new leader.
    wait_at_most(SESSION, "the lease is renewed", || guard.check().is_err() || guard.valid_until() > killed + SESSION);
    guard.check().unwrap();
    assert_ne!(ensemble.leader(), leader);
    assert!(!waiter.is_finished(), "two hold the lock");
    let (token, released) = (guard.fencing_token(), Instant::now());
    guard.release().unwrap();
    let (granted, next) = end(waiter).unwrap();
    assert!(granted >= released && next > token);
    assert!(granted - released < SESSION / 2, "{:?}", granted - released);
}

#[test]
fn without_a_majority_requests_fail_in_time_and_leases_end_and_both_come_back_by_themselves() {
    let mut ensemble = ZookeeperEnsemble::start_with(ZookeeperOptions::default().volatile());
    let url = url(&ensemble.addresses(), BRIEF);
    let (client, ours) = (Client::new(&url), locks(&url));
    let lease = client.take(&claim("raw"));
    let guard = ours.mutex("guarded").acquire().unwrap();
    let leader = ensemble.leader();
    let followers = ensemble.followers();
    for &follower in &followers {
        ensemble.server_mut(follower).kill();
    }
    wait_for("the leader resigns", || !ensemble.is_serving(leader));
    // From now on, nothing is renewed.
    let (outage, deadline) = (Instant::now(), guard.valid_until());
    assert!(deadline <= outage + BRIEF, "{:?}", deadline - outage);
    let lost = guard.lost_within(BRIEF * 2).expect("the hold is lost");
    assert!(deadline.elapsed() < LATE, "{lost:?} {:?} late", deadline.elapsed());
    for _ in 0..5 {
        for failure in [client.acquire(&claim("other"), SHORT / 4).map(drop), client.renew(&lease, SHORT / 4).map(drop)]
        {
            let error = failure.expect_err("there is no majority");
            let kinds = [ErrorKind::Unreachable, ErrorKind::Timeout, ErrorKind::Unavailable];
            assert!(kinds.contains(&error.kind()), "{error:?}");
        }
    }
    let asked = Instant::now();
    client.acquire(&claim("other"), SHORT).expect_err("there is no majority");
    assert!(asked.elapsed() < SHORT + LATE, "{:?}", asked.elapsed());
    let refused = ours.mutex("other").try_acquire().map(drop).expect_err("there is no majority");
    assert!(asked.elapsed() < SHORT * 3 + LATE, "{:?}: {refused}", asked.elapsed());

    for follower in followers {
        ensemble.server_mut(follower).restart_with_data();
    }
    wait_for("a grant", || client.acquire(&claim("other"), SHORT));
    drop(guard);
    // The old entries end with their session, or by a release that was owed.
    for name in ["raw", "guarded"] {
        let again = locks(&url);
        again.mutex(name).wait(SOON).acquire().unwrap().release().unwrap();
    }
    drop(wait_for("the same client holds again", || ours.mutex("guarded").try_acquire().ok().flatten()));
}
