//! Places, hand-overs, and what becomes of waiters that have stopped.

use lock_core::{Answer, Certainty, Claim, Holder, Mode, Queueing, Released, Renewed, Terms, Ttl, Width};
use lock_memory::store::Store;

use crate::support::*;

/// A store in which owner 1 holds the lock since `at(0)`.
fn held() -> Store {
    let mut store = Store::new();
    granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    store
}

fn owners(hand_overs: &[HandOver]) -> Vec<lock_core::Owner> {
    hand_overs.iter().map(|hand_over| hand_over.lease.owner).collect()
}

#[test]
fn waiters_queue_in_the_order_of_arrival_and_learn_position_holder_and_times() {
    let mut store = held();
    let (lease, _) = granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    let holder = Holder::Leasehold { tokens: lease.tokens, note: claim(1).note };
    let answer = store.acquire(at(5), TWO, &claim(2)).unwrap();
    assert_eq!(
        answer,
        Answer::Queued {
            position: 1,
            remaining: Some(seconds(25)),
            valid_for: PLACE,
            holder,
            drawn: Some(lease.tokens.high())
        }
    );
    assert_eq!(position(store.acquire(at(5), TWO, &claim(3)).unwrap()), 2);
    assert_eq!(position(store.acquire(at(6), TWO, &claim(2)).unwrap()), 1, "asking again keeps the place");
}

#[test]
fn a_short_ttl_makes_a_short_place() {
    let mut store = held();
    let short = Claim { terms: Terms::exclusive(Ttl::new(seconds(2)).unwrap()), ..claim(2) };
    let answer = store.acquire(at(0), TWO, &short).unwrap();
    assert!(matches!(answer, Answer::Queued { valid_for, .. } if valid_for == seconds(2)), "{answer:?}");
}

#[test]
fn a_release_hands_over_to_the_first_with_its_own_width_for_the_time_of_its_place() {
    let mut store = held();
    let wide = Claim { width: Width::for_waiters(4), ..claim(2) };
    store.acquire(at(1), TWO, &wide).unwrap();
    store.acquire(at(1), ONE, &claim(3)).unwrap();
    assert_eq!(store.release(at(2), &release_of(1)).unwrap(), Released::Released);
    let tokens = lock_core::TokenRange::above(1, wide.width).unwrap();
    let lease = wide.lease(tokens);
    assert_eq!(
        hand_overs(&mut store),
        [HandOver { client: TWO, lease: lease.clone(), valid_for: PLACE, wanted: true }]
    );
    let busy = store.acquire(at(2), ONE, &try_claim(4)).unwrap();
    assert!(matches!(busy, Answer::Busy { remaining: Some(left), .. } if left == PLACE), "{busy:?}");
    assert_eq!(granted(store.acquire(at(3), TWO, &claim(2)).unwrap()), (lease, TTL), "its next ask is for the ttl");
    assert_eq!(position(store.acquire(at(3), ONE, &claim(3)).unwrap()), 1, "the others move up");
}

#[test]
fn a_place_that_is_not_refreshed_is_skipped() {
    let mut store = held();
    store.acquire(at(0), TWO, &claim(2)).unwrap();
    store.acquire(at(5), TWO, &claim(3)).unwrap();
    assert_eq!(store.release(at(10), &release_of(1)).unwrap(), Released::Released);
    assert_eq!(owners(&hand_overs(&mut store)), [owner(3)]);
}

#[test]
fn asking_again_refreshes_the_place_and_what_it_asks_for() {
    let mut store = held();
    store.acquire(at(0), TWO, &claim(2)).unwrap();
    store.acquire(at(9), ONE, &Claim { width: Width::for_waiters(5), ..claim(2) }).unwrap();
    store.release(at(18), &release_of(1)).unwrap();
    let hand_overs = hand_overs(&mut store);
    assert_eq!((owners(&hand_overs), hand_overs[0].client), (vec![owner(2)], ONE));
    assert_eq!(tokens(&hand_overs[0].lease), (2, 6));
}

#[test]
fn a_holder_no_longer_has_a_place() {
    let mut store = held();
    store.acquire(at(25), TWO, &claim(2)).unwrap();
    granted(store.acquire(at(30), TWO, &claim(2)).unwrap());
    assert_eq!(store.holder(at(30), &name("invoice:42")).unwrap().waiters, 0);
    assert_eq!(store.release(at(31), &release_of(2)).unwrap(), Released::Released);
    assert!(hand_overs(&mut store).is_empty());
}

#[test]
fn an_expired_place_is_lost_to_those_behind_it() {
    let mut store = held();
    store.acquire(at(0), TWO, &claim(2)).unwrap();
    store.acquire(at(5), TWO, &claim(3)).unwrap();
    assert_eq!(position(store.acquire(at(10), TWO, &claim(2)).unwrap()), 2);
}

#[test]
fn a_waiter_that_left_the_queue_gets_nothing() {
    let mut store = held();
    store.acquire(at(0), TWO, &claim(2)).unwrap();
    assert_eq!(store.release(at(1), &release_of(2)).unwrap(), Released::Left);
    assert_eq!(store.release(at(1), &release_of(2)).unwrap(), Released::NotHeld);
    store.release(at(2), &release_of(1)).unwrap();
    assert!(hand_overs(&mut store).is_empty());
    assert!(store.holder(at(2), &name("invoice:42")).is_none());
}

#[test]
fn asking_without_the_wish_to_queue_gives_the_place_up() {
    let mut store = held();
    store.acquire(at(0), TWO, &claim(2)).unwrap();
    let retry = Claim { queueing: Queueing::Unwanted, ..claim(2) };
    assert!(matches!(store.acquire(at(1), TWO, &retry).unwrap(), Answer::Busy { .. }));
    assert_eq!(store.release(at(1), &release_of(2)).unwrap(), Released::NotHeld);
}

#[test]
fn an_expired_lock_passes_on_with_the_next_request() {
    let mut store = held();
    store.acquire(at(25), TWO, &claim(2)).unwrap();
    assert!(store.holder(at(30), &name("invoice:42")).is_none());
    assert!(hand_overs(&mut store).is_empty());
    let (lease, valid_for) = granted(store.acquire(at(31), TWO, &claim(2)).unwrap());
    assert_eq!((tokens(&lease), valid_for), ((2, 2), TTL), "the first in line that asks itself gets its full ttl");
    assert!(hand_overs(&mut store).is_empty());
}

#[test]
fn an_expired_lock_goes_to_the_first_in_line_even_if_another_client_asks() {
    let mut store = held();
    store.acquire(at(25), TWO, &claim(2)).unwrap();
    assert_eq!(position(store.acquire(at(30), ONE, &claim(3)).unwrap()), 1);
    assert_eq!(owners(&hand_overs(&mut store)), [owner(2)]);
    let mut store = held();
    store.acquire(at(25), TWO, &claim(2)).unwrap();
    assert!(matches!(store.acquire(at(30), ONE, &try_claim(3)).unwrap(), Answer::Busy { .. }));
    assert_eq!(owners(&hand_overs(&mut store)), [owner(2)]);
}

#[test]
fn the_former_owner_of_an_expired_lock_queues_behind_the_waiters() {
    let mut store = held();
    store.acquire(at(25), TWO, &claim(2)).unwrap();
    assert_eq!(position(store.acquire(at(30), ONE, &claim(1)).unwrap()), 1);
    assert_eq!(owners(&hand_overs(&mut store)), [owner(2)]);
}

#[test]
fn the_release_of_an_expired_hold_passes_the_lock_on() {
    let mut store = held();
    store.acquire(at(25), TWO, &claim(2)).unwrap();
    assert_eq!(store.release(at(30), &release_of(1)).unwrap(), Released::NotHeld);
    assert_eq!(owners(&hand_overs(&mut store)), [owner(2)]);
}

#[test]
fn a_late_release_does_not_touch_the_next_owner() {
    let mut store = held();
    store.acquire(at(25), TWO, &claim(2)).unwrap();
    granted(store.acquire(at(30), TWO, &claim(2)).unwrap());
    assert_eq!(store.release(at(31), &release_of(1)).unwrap(), Released::NotHeld);
    assert!(store.holder(at(31), &name("invoice:42")).is_some());
}

#[test]
fn a_waiter_that_has_stopped_delays_the_queue_only_until_its_place_expires() {
    let mut store = held();
    store.acquire(at(0), TWO, &claim(2)).unwrap();
    store.acquire(at(0), TWO, &claim(3)).unwrap();
    store.release(at(1), &release_of(1)).unwrap();
    assert_eq!(position(store.acquire(at(9), TWO, &claim(3)).unwrap()), 1);
    granted(store.acquire(at(11), TWO, &claim(3)).unwrap());
}

/// A reader needs the answer, because it may let others join it. A writer lets nobody join.
#[test]
fn a_reader_learns_from_its_renewals_that_others_wait() {
    for (mode, learns) in [(Mode::Shared, true), (Mode::Exclusive, false)] {
        let mut store = Store::new();
        let first = claim(1).in_mode(mode);
        let (lease, _) = granted(store.acquire(at(0), ONE, &first).unwrap());
        let renewed = |store: &mut Store, now| match &store.renew(now, std::slice::from_ref(&lease))[..] {
            [Renewed::Renewed { wanted, .. }] => *wanted,
            other => panic!("{other:?}"),
        };
        store.acquire(at(1), TWO, &try_claim(2)).unwrap();
        assert!(!renewed(&mut store, at(1)), "that one does not wait");
        for waiter in [2, 3, 2] {
            store.acquire(at(1), TWO, &claim(waiter)).unwrap();
        }
        assert_eq!(renewed(&mut store, at(2)), learns);
        assert!(!renewed(&mut store, at(20)), "their places have expired");
        store.acquire(at(20), TWO, &claim(4)).unwrap();
        let again = store.acquire(at(20), ONE, &first).unwrap();
        assert!(matches!(again, Answer::Granted { wanted: true, .. }), "{again:?}");
        store.release(at(21), &Claim::release(&first, Certainty::Answered)).unwrap();
        assert!(!hand_overs(&mut store)[0].wanted, "nobody is left behind it");
    }
}

/// A claim that is queued can tell later grants from earlier ones, also of another lock, where its own has none.
#[test]
fn a_waiter_is_told_the_highest_token_that_was_drawn() {
    let mut store = held();
    store.acquire(at(1), TWO, &Claim { name: name("another"), width: Width::for_waiters(4), ..claim(9) }).unwrap();
    let drawn = |answer: &Answer| match answer {
        Answer::Queued { drawn, .. } | Answer::Busy { drawn, .. } => drawn.map(lock_core::FencingToken::get),
        Answer::Granted { .. } => panic!("{answer:?}"),
    };
    assert_eq!(drawn(&store.acquire(at(1), TWO, &try_claim(2)).unwrap()), Some(5));
    assert_eq!(drawn(&store.acquire(at(1), TWO, &claim(2)).unwrap()), Some(5));
    store.release(at(2), &release_of(1)).unwrap();
    assert_eq!(tokens(&hand_overs(&mut store)[0].lease), (6, 6));
}
