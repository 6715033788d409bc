//! What each verb does to a lock without a queue.

use lock_core::{
    Answer, Effect, ErrorKind, Fenced, Holder, Lease, ReleaseRequest, Released, Renewed, Terms, Ttl, Width,
};
use lock_memory::store::Store;

use crate::support::*;

#[test]
fn a_free_lock_is_granted_for_the_ttl_with_the_width_asked_for() {
    let mut store = Store::new();
    let wide = lock_core::Claim { width: Width::for_waiters(3), ..claim(1) };
    let (lease, valid_for) = granted(store.acquire(at(0), ONE, &wide).unwrap());
    assert_eq!((tokens(&lease), valid_for, lease.terms.ttl), ((1, 3), TTL, wide.terms.ttl));
    assert_eq!(lease.owner, owner(1));
    assert!(hand_overs(&mut store).is_empty());
}

#[test]
fn one_counter_serves_every_lock() {
    let mut store = Store::new();
    let other = lock_core::Claim { name: name("other"), ..claim(2) };
    assert_eq!(tokens(&granted(store.acquire(at(0), ONE, &claim(1)).unwrap()).0), (1, 1));
    assert_eq!(tokens(&granted(store.acquire(at(0), ONE, &other).unwrap()).0), (2, 2));
}

#[test]
fn asking_again_gives_the_same_tokens_and_rearms_the_ttl() {
    let mut store = Store::new();
    let (lease, _) = granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    let (again, valid_for) = granted(store.acquire(at(29), ONE, &claim(1)).unwrap());
    assert_eq!((again, valid_for), (lease, TTL));
    let busy = store.acquire(at(58), TWO, &try_claim(2)).unwrap();
    assert!(matches!(busy, Answer::Busy { remaining: Some(left), .. } if left == seconds(1)), "{busy:?}");
}

#[test]
fn a_held_lock_is_busy_for_a_claim_that_does_not_queue_and_no_place_is_kept() {
    let mut store = Store::new();
    let (lease, _) = granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    let holder = Holder::Leasehold { tokens: lease.tokens, note: claim(1).note };
    let busy = store.acquire(at(10), TWO, &try_claim(2)).unwrap();
    assert_eq!(busy, Answer::Busy { remaining: Some(seconds(20)), holder, drawn: Some(lease.tokens.high()) });
    assert_eq!(store.release(at(11), &release_of(2)).unwrap(), Released::NotHeld);
}

#[test]
fn a_lease_ends_at_its_expiry_and_not_before() {
    let mut store = Store::new();
    store.acquire(at(0), ONE, &claim(1)).unwrap();
    let last = at(30) - TICK;
    assert!(matches!(store.acquire(last, TWO, &try_claim(2)).unwrap(), Answer::Busy { .. }));
    let (lease, _) = granted(store.acquire(at(30), TWO, &try_claim(2)).unwrap());
    assert_eq!(tokens(&lease), (2, 2));
}

#[test]
fn an_owner_that_asks_after_its_lease_expired_gets_new_tokens() {
    let mut store = Store::new();
    store.acquire(at(0), ONE, &claim(1)).unwrap();
    assert_eq!(tokens(&granted(store.acquire(at(30), ONE, &claim(1)).unwrap()).0), (2, 2));
}

#[test]
fn a_release_frees_the_owners_hold_once_and_nobody_elses() {
    let mut store = Store::new();
    store.acquire(at(0), ONE, &claim(1)).unwrap();
    assert_eq!(store.release(at(1), &release_of(2)).unwrap(), Released::NotHeld);
    assert!(store.holder(at(1), &name("invoice:42")).is_some());
    assert_eq!(store.release(at(1), &release_of(1)).unwrap(), Released::Released);
    assert_eq!(store.release(at(1), &release_of(1)).unwrap(), Released::NotHeld);
    assert!(store.holder(at(1), &name("invoice:42")).is_none());
}

#[test]
fn the_release_of_an_expired_hold_is_answered_not_held() {
    let mut store = Store::new();
    store.acquire(at(0), ONE, &claim(1)).unwrap();
    assert_eq!(store.release(at(30), &release_of(1)).unwrap(), Released::NotHeld);
}

#[test]
fn a_claim_that_was_given_up_is_refused_until_its_tombstone_expires() {
    let mut store = Store::new();
    assert_eq!(store.release(at(0), &unsure_release(1)).unwrap(), Released::NotHeld);
    let refused = store.acquire(at(30) - TICK, ONE, &claim(1)).unwrap_err();
    assert_eq!((refused.kind(), refused.effect()), (ErrorKind::Protocol, Effect::None));
    assert!(refused.to_string().contains("this claim was given up"), "{refused}");
    granted(store.acquire(at(29), TWO, &claim(2)).unwrap());
    store.release(at(29), &release_of(2)).unwrap();
    granted(store.acquire(at(30), ONE, &claim(1)).unwrap());
}

#[test]
fn a_tombstone_outlives_a_hold_that_was_released_and_a_place_that_was_left() {
    let mut store = Store::new();
    store.acquire(at(0), ONE, &claim(1)).unwrap();
    store.acquire(at(0), TWO, &claim(2)).unwrap();
    assert_eq!(store.release(at(0), &unsure_release(2)).unwrap(), Released::Left);
    assert_eq!(store.release(at(0), &unsure_release(1)).unwrap(), Released::Released);
    assert!(store.acquire(at(1), ONE, &claim(1)).is_err());
    assert!(store.acquire(at(1), TWO, &claim(2)).is_err());
}

#[test]
fn a_tombstone_lasts_ten_seconds_even_for_the_shortest_ttl() {
    let mut store = Store::new();
    store.release(at(0), &ReleaseRequest { terms: Terms::exclusive(Ttl::MIN), ..unsure_release(1) }).unwrap();
    assert!(store.acquire(at(10) - TICK, ONE, &claim(1)).is_err());
    granted(store.acquire(at(10), ONE, &claim(1)).unwrap());
}

#[test]
fn a_renewal_rearms_what_is_held_and_never_creates() {
    let mut store = Store::new();
    let (lease, _) = granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    let longer = Lease { terms: Terms::exclusive(Ttl::new(seconds(60)).unwrap()), ..lease.clone() };
    let stranger = Lease { owner: owner(2), ..lease.clone() };
    let elsewhere = Lease { name: name("other"), ..lease.clone() };
    let renewed = store.renew(at(29), &[stranger, longer, elsewhere.clone()]);
    assert_eq!(
        renewed,
        [Renewed::NotHeld, Renewed::Renewed { valid_for: seconds(60), wanted: false }, Renewed::NotHeld]
    );
    assert!(store.holder(at(89) - TICK, &lease.name).is_some());
    assert!(store.holder(at(29), &elsewhere.name).is_none());
    assert_eq!(store.renew(at(89), std::slice::from_ref(&lease)), [Renewed::NotHeld]);
}

#[test]
fn a_renewal_of_earlier_tokens_is_not_held() {
    let mut store = Store::new();
    let (earlier, _) = granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    granted(store.acquire(at(30), ONE, &claim(1)).unwrap());
    assert_eq!(store.renew(at(31), &[earlier]), [Renewed::NotHeld]);
}

#[test]
fn a_fence_acknowledges_the_stored_grant_and_names_a_higher_one() {
    let mut store = Store::new();
    let (first, _) = granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    assert_eq!(store.fence(at(29), &first), Fenced::Acknowledged);
    assert_eq!(store.fence(at(30), &first), Fenced::NotHeld);
    let (second, _) = granted(store.acquire(at(30), TWO, &claim(2)).unwrap());
    assert_eq!(store.fence(at(31), &first), Fenced::Higher(second.tokens.low()));
    assert_eq!(store.fence(at(31), &Lease { owner: owner(3), ..second.clone() }), Fenced::NotHeld);
    assert_eq!(store.fence(at(31), &Lease { name: name("other"), ..second }), Fenced::NotHeld);
}
