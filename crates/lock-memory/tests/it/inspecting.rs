//! The view for operators.

use lock_core::inspect::{Cursor, Entry, Page, Query, Revoked, Waiter};
use lock_core::{Claim, FencingToken, Holder, Mode, Released, Width};
use lock_memory::store::Store;

use crate::support::*;

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn names(page: &Page) -> Vec<&str> {
    page.entries.iter().map(|entry| entry.name.as_str()).collect()
}

#[test]
fn the_holder_is_shown_with_its_times_and_its_live_waiters() {
    let mut store = Store::new();
    let (lease, _) = granted(store.acquire(at(0), ONE, &claim(1)).unwrap());
    store.acquire(at(0), TWO, &claim(2)).unwrap();
    store.acquire(at(5), TWO, &claim(3)).unwrap();
    let holder = Holder::Leasehold { tokens: lease.tokens, note: claim(1).note };
    let waiter = |byte, age| Waiter { note: Some(claim(byte).note), mode: Mode::Exclusive, age: Some(seconds(age)) };
    let entry = |age, left, queue: Vec<Waiter>| {
        let mut entry = Entry::exclusive(lease.name.clone(), holder.clone(), Some(seconds(left)), 0);
        entry.holders[0].age = Some(seconds(age));
        Some(Entry { waiters: u32::try_from(queue.len()).unwrap(), queue, ..entry })
    };
    assert_eq!(store.holder(at(6), &lease.name), entry(6, 24, vec![waiter(2, 6), waiter(3, 1)]));
    assert_eq!(store.holder(at(10), &lease.name), entry(10, 20, vec![waiter(3, 5)]));
    assert_eq!(store.holder(at(30), &lease.name), None);
}

#[test]
fn a_listing_goes_through_the_held_locks_page_by_page() {
    let mut store = Store::new();
    for (byte, text) in [(1, "b"), (2, "a"), (3, "c"), (4, "other"), (5, "d")] {
        store.acquire(at(u64::from(byte)), ONE, &Claim { name: name(text), ..claim(byte) }).unwrap();
    }
    let first = store.list(at(31), &Query::matching("?").limit(2));
    assert_eq!((names(&first), first.next.clone()), (vec!["a", "c"], Some(Cursor("c".into()))), "b has expired");
    let second = store.list(at(31), &Query::matching("?").limit(2).after(first.next.unwrap()));
    assert_eq!((names(&second), &second.next), (vec!["d"], &None));
    let exact = store.list(at(31), &Query::matching("?").limit(3));
    assert_eq!((exact.entries.len(), exact.next), (3, None), "a full last page is the last");
    assert_eq!(names(&store.list(at(31), &Query::all().limit(0))).len(), 1, "a listing always goes on");
}

#[test]
fn a_revocation_ends_the_lease_that_spans_the_token_and_no_other() {
    let mut store = Store::new();
    let wide = Claim { width: Width::for_waiters(3), ..claim(1) };
    store.acquire(at(0), ONE, &wide).unwrap();
    assert_eq!(store.revoke(at(1), &wide.name, token(4), &operator()), Revoked::NotHeld);
    assert_eq!(store.revoke(at(1), &name("other"), token(1), &operator()), Revoked::NotHeld);
    assert_eq!(store.revoke(at(1), &wide.name, token(3), &operator()), Revoked::Revoked);
    assert_eq!(store.revoke(at(1), &wide.name, token(3), &operator()), Revoked::NotHeld);
    assert_eq!(store.release(at(1), &release_of(1)).unwrap(), Released::NotHeld);
    granted(store.acquire(at(1), TWO, &claim(2)).unwrap());
    assert_eq!(store.revoke(at(31), &wide.name, token(4), &operator()), Revoked::NotHeld, "it has expired");
}

#[test]
fn a_revoked_lock_goes_to_the_next_in_line() {
    let mut store = Store::new();
    store.acquire(at(0), ONE, &claim(1)).unwrap();
    store.acquire(at(0), TWO, &claim(2)).unwrap();
    store.revoke(at(1), &name("invoice:42"), token(1), &operator());
    let hand_overs = hand_overs(&mut store);
    assert_eq!((hand_overs.len(), hand_overs[0].lease.owner), (1, owner(2)));
}
