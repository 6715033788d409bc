//! Leases that are replaced in one step.

use lock_core::{Answer, Claim, ErrorKind, Fenced, Released, Renewed, Terms, Ttl};
use lock_memory::store::Store;

use crate::support::*;

/// A claim of owner 2 for a longer ttl, to replace the lease of owner 1.
fn replacing() -> Claim {
    Claim { terms: Terms::exclusive(Ttl::new(TTL * 2).unwrap()), replaces: Some(owner(1)), ..try_claim(2) }
}

fn held() -> Store {
    let mut store = Store::new();
    granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    store
}

#[test]
fn a_replacement_passes_the_queue_and_draws_a_token() {
    let mut store = held();
    store.acquire(at(1), TWO, &claim(3)).unwrap();
    let (lease, valid_for) = granted(store.acquire(at(1), ONE, &replacing()).unwrap());
    assert_eq!((tokens(&lease), valid_for), ((2, 2), TTL * 2));
    assert_eq!(hand_overs(&mut store), []);
    assert_eq!(granted(store.acquire(at(2), ONE, &replacing()).unwrap()).0, lease, "asked again");
    assert_eq!(store.fence(at(2), &lease), Fenced::Acknowledged);
    assert_eq!(position(store.acquire(at(2), TWO, &claim(3)).unwrap()), 1);
}

#[test]
fn only_the_present_lease_can_be_replaced() {
    let mut store = Store::new();
    let refused = |store: &mut Store, time| store.acquire(at(time), ONE, &replacing()).unwrap_err().kind();
    assert_eq!(refused(&mut store, 0), ErrorKind::NotHeld, "nobody ever held it");
    granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    assert_eq!(refused(&mut store, 30), ErrorKind::NotHeld, "it is over");
    granted(store.acquire(at(30), TWO, &claim(3)).unwrap());
    assert_eq!(refused(&mut store, 31), ErrorKind::NotHeld, "somebody else holds it");
}

#[test]
fn late_requests_of_the_old_owner_have_no_effect() {
    let mut store = held();
    let (old, _) = granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    let (lease, _) = granted(store.acquire(at(1), ONE, &replacing()).unwrap());
    assert_eq!(store.renew(at(2), &[old]), [Renewed::NotHeld]);
    store.acquire(at(2), ONE, &claim(1)).unwrap_err();
    assert_eq!(store.release(at(2), &release_of(1)).unwrap(), Released::NotHeld);
    assert_eq!(store.fence(at(2), &lease), Fenced::Acknowledged);
}

/// The claim was given up before it arrives.
#[test]
fn a_late_replacement_that_was_given_up_is_refused() {
    let mut store = held();
    store.release(at(1), &unsure_release(2)).unwrap();
    store.acquire(at(2), ONE, &replacing()).unwrap_err();
    assert!(
        matches!(store.acquire(at(2), TWO, &try_claim(3)).unwrap(), Answer::Busy { .. }),
        "the old one still holds"
    );
}
