//! Locks that are kept for a while after their release.

use std::time::Duration;

use lock_core::{Answer, Lease, ReleaseRequest, Released, Renewed, StoreEvent};
use lock_memory::store::{Notice, Store};

use crate::support::*;

const KEEP: Duration = Duration::from_secs(60);

/// A store in which owner 1 released the lock at `at(0)`, and the lock is kept since then.
fn kept() -> (Store, Lease) {
    let mut store = Store::new();
    let (lease, _) = granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    assert_eq!(store.release(at(0), &keep(KEEP)).unwrap(), Released::Released);
    (store, lease)
}

fn keep(time: Duration) -> ReleaseRequest {
    ReleaseRequest { keep: Some(time), ..release_of(1) }
}

#[test]
fn a_kept_lock_is_granted_to_nobody_before_its_time_ends() {
    let (mut store, _) = kept();
    let Answer::Busy { remaining, .. } = store.acquire(at(59), TWO, &try_claim(2)).unwrap() else {
        panic!("it is kept")
    };
    assert_eq!(remaining, Some(Duration::from_secs(1)));
    granted(store.acquire(at(60), TWO, &try_claim(2)).unwrap());
}

#[test]
fn the_head_of_the_queue_is_told_to_ask_and_gets_the_lock_at_the_end() {
    let mut store = Store::new();
    granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    store.acquire(at(0), TWO, &claim(2)).unwrap();
    hints(&mut store);
    store.release(at(1), &keep(Duration::from_secs(5))).unwrap();
    assert_eq!(hints(&mut store), [Notice { client: TWO, event: StoreEvent::Freed { name: name("invoice:42") } }]);
    let Answer::Queued { position, remaining, .. } = store.acquire(at(1), TWO, &claim(2)).unwrap() else { panic!() };
    assert_eq!((position, remaining), (1, Some(Duration::from_secs(5))));
    granted(store.acquire(at(6), TWO, &claim(2)).unwrap());
    assert_eq!(hand_overs(&mut store), []);
}

#[test]
fn no_request_of_the_old_owner_extends_or_revives_a_kept_lock() {
    let (mut store, lease) = kept();
    assert_eq!(store.renew(at(1), &[lease]), [Renewed::NotHeld]);
    assert!(matches!(store.acquire(at(1), ONE, &try_claim(1)).unwrap(), Answer::Busy { .. }));
    granted(store.acquire(at(60), TWO, &try_claim(2)).unwrap());
}

#[test]
fn a_repeated_release_shortens_the_time_and_never_lengthens_it() {
    let (mut store, _) = kept();
    assert_eq!(store.release(at(1), &keep(KEEP)).unwrap(), Released::Released);
    assert_eq!(store.release(at(2), &keep(Duration::from_secs(10))).unwrap(), Released::Released);
    granted(store.acquire(at(12), TWO, &try_claim(2)).unwrap());
    assert_eq!(store.release(at(13), &keep(KEEP)).unwrap(), Released::NotHeld, "somebody else holds it");
}

#[test]
fn a_plain_release_ends_the_time() {
    let (mut store, _) = kept();
    assert_eq!(store.release(at(1), &release_of(1)).unwrap(), Released::Released);
    granted(store.acquire(at(1), TWO, &try_claim(2)).unwrap());
}

/// Or the lock would go to that owner.
#[test]
fn a_release_of_what_is_kept_drops_the_owners_place_as_well() {
    let (mut store, _) = kept();
    assert_eq!(position(store.acquire(at(1), ONE, &claim(1)).unwrap()), 1);
    assert_eq!(store.release(at(1), &release_of(1)).unwrap(), Released::Released);
    assert_eq!(hand_overs(&mut store), []);
}

#[test]
fn an_expired_lease_is_not_kept() {
    let mut store = Store::new();
    let (lease, _) = granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    let over = at(0) + lease.terms.ttl.get();
    assert_eq!(store.release(over, &keep(KEEP)).unwrap(), Released::NotHeld);
    granted(store.acquire(over, TWO, &try_claim(2)).unwrap());
}

#[test]
fn a_release_that_is_repeated_with_its_time_does_not_lengthen_it() {
    let (mut store, _) = kept();
    assert_eq!(store.release(at(1), &keep(KEEP)).unwrap(), Released::Released);
    granted(store.acquire(at(60), TWO, &try_claim(2)).unwrap());
}
