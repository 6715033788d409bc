//! For how long a limit that was set is remembered.

use std::time::Duration;

use lock_core::limit::{Act, Record, Request};
use lock_core::{Claim, ErrorKind, Limit, Mode, Width};
use lock_memory::store::Store;

use crate::support::*;

fn permits(byte: u8, count: u32, limit: u32) -> Claim {
    let mode = Mode::permits(count, limit).unwrap();
    Claim { width: Width::for_waiters(count as usize), ..try_claim(byte).in_mode(mode) }
}

fn set(known: u32, new: u32) -> Request {
    let limit = |number| Limit::new(number).unwrap();
    Request { name: try_claim(1).name, known: limit(known), act: Act::Set(limit(new)) }
}

#[test]
fn a_limit_is_remembered_for_days_after_it_was_set_last() {
    let mut store = Store::new();
    let mut now = at(0);
    for _ in 0..2 {
        store.limit(now, &set(4, 8)).unwrap();
        now = now + (Record::KEPT_FOR - TICK);
    }
    let lease = granted(store.acquire(now, ONE, &permits(1, 4, 4)).unwrap()).0;
    assert_eq!(lease.terms.mode.limit(), Limit::new(8).ok());
    now = now + TICK;
    let error = store.acquire(now, ONE, &permits(2, 1, 4)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OtherKind, "the holder still has the limit in force: {error}");
    granted(store.acquire(now, ONE, &permits(3, 4, 8)).unwrap());
    now = now + TTL + Duration::from_secs(1);
    granted(store.acquire(now, ONE, &permits(4, 4, 4)).unwrap());
    assert_eq!(store.acquire(now, ONE, &permits(5, 1, 8)).unwrap_err().kind(), ErrorKind::OtherKind);
}

/// Its holder had more than the limit that was set since then.
#[test]
fn a_lease_above_a_lowered_limit_is_replaced_by_one_of_fewer_permits() {
    let mut store = Store::new();
    granted(store.acquire(at(0), ONE, &permits(1, 4, 4)).unwrap());
    store.limit(at(0), &set(4, 2)).unwrap();
    let fewer = Claim { replaces: Some(owner(1)), ..permits(2, 3, 4) };
    let lease = granted(store.acquire(at(1), ONE, &fewer).unwrap()).0;
    assert_eq!(lease.terms.mode.count(), 3);
}
