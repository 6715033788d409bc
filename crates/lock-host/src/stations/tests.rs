use std::time::Duration;

use lock_core::NameKind;
use lock_core::{Capabilities, Durability, FencingToken, LossReason, Waiting};

use super::*;
use crate::clock::{HostClock, ManualClock};
use crate::keeper_view::KeeperView;
use crate::recorder::{Recorder, claim, grant, hold, join, stations};
use crate::renewals::KeeperStep;

fn capabilities() -> Capabilities {
    Capabilities::new("test", Waiting::Queue, Durability::Process)
}

fn name(n: usize) -> LockName {
    format!("lock {n}").parse().unwrap()
}

#[test]
fn idle_stations_are_let_go_when_there_are_many() {
    let stations = stations(capabilities(), Arc::new(HostClock));
    let used = stations.site(&name(0), NameKind::Lock);
    let many = 100 * STATIONS_KEPT;
    let busy = |n: usize| n.is_multiple_of(10);
    for n in 1..=many {
        let site = stations.site(&name(n), NameKind::Lock);
        if busy(n) {
            join(&site, 1);
        }
    }
    assert!(stations.all().len() < many / 2);
    assert!(stations.find(&name(0), NameKind::Lock).is_some_and(|site| Arc::ptr_eq(&site, &used)));
    assert!(
        (1..=many).filter(|n| busy(*n)).all(|n| stations.find(&name(n), NameKind::Lock).is_some()),
        "something is going on there"
    );
}

/// A token that a dropped station handed out is not granted again at the next station of that name.
#[test]
fn a_station_that_is_let_go_leaves_its_floor_behind() {
    let stations = stations(capabilities().with_shared_counter(), Arc::new(HostClock));
    for expected in [None, Some(7)] {
        let site = stations.site(&name(1), NameKind::Lock);
        join(&site, 1);
        let claim = claim(&site);
        assert_eq!(claim.1.floor.map(FencingToken::get), expected);
        grant(&site, claim, 7);
        stations.sites.of(&name(1)).by_name.clear();
    }
}

#[test]
fn a_grant_is_for_the_station_that_asked_and_is_released_where_none_did() {
    let stations = stations(capabilities(), Arc::new(HostClock));
    let (one, two) = (stations.site(&name(1), NameKind::Lock), stations.site(&name(2), NameKind::Lock));
    join(&one, 1);
    join(&two, 2);
    let (_, theirs) = claim(&two);
    let lease = grant(&one, claim(&one), 7);
    let event =
        |lease: &Lease| StoreEvent::Granted { lease: lease.clone(), valid_for: Duration::from_secs(30), wanted: false };
    assert_eq!(stations.deliver(event(&lease)), Delivery::Taken);
    let strange = Lease { owner: theirs.owner, ..lease.clone() };
    assert_eq!(stations.deliver(event(&strange)), Delivery::Unknown);
    let elsewhere = Lease { name: name(3), ..lease };
    assert_eq!(stations.deliver(event(&elsewhere)), Delivery::Unknown);
    stations.release_unknown(elsewhere.clone());
    let Recorder { released, .. } = &stations.context().driver;
    assert_eq!(*released.lock().unwrap(), [elsewhere.owner]);
}

#[test]
fn the_end_of_a_keeper_closes_its_client() {
    let stations = stations(capabilities(), Arc::new(ManualClock::new()));
    let site = stations.site(&name(1), NameKind::Lock);
    join(&site, 1);
    grant(&site, claim(&site), 7);
    let hold = hold(&site, 1);
    let attended = site.lock().waiters.attended;
    drop(KeeperView::new(&stations).close_on_drop());
    let inner = site.lock();
    assert_eq!(hold.lost().map(|lost| lost.reason), Some(LossReason::Closed));
    assert_eq!((inner.waiters.actions.len(), inner.waiters.attended), (1, attended + 1), "the store is told");
}

#[test]
fn the_end_of_a_client_ends_its_keeper() {
    let stations = stations(capabilities(), Arc::new(HostClock));
    let queue = Arc::clone(&stations.context().renewals);
    assert!(matches!(queue.next(&mut queue.lock()), KeeperStep::Sleep(_)));
    drop(stations);
    assert!(matches!(queue.next(&mut queue.lock()), KeeperStep::End));
}
