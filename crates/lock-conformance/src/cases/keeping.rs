//! A lock can be kept for a while after its release. It then expires by itself and has no holder.

use lock_core::{Fenced, Released, Renewed};

use crate::Bench;
use crate::bench::earliest_end;
use crate::facade::options;
use crate::verbs::{AMPLE, BRIEF, LONG, claim};

/// A kept lock is refused to others, with the time that is left, until it expires.
pub fn a_kept_lock_is_free_when_its_time_is_over_and_not_before(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let mine = claim("a");
    let lease = one.take(&mine);
    let asked_at = bench.now();
    assert_eq!(one.keep(&mine, AMPLE), Released::Released);
    let remaining = two.refused(&claim("a")).remaining;
    assert!(remaining.is_none_or(|remaining| remaining <= AMPLE), "{remaining:?} of {AMPLE:?}");
    let over_at = bench.taken_over(&two, "a", bench.now() + AMPLE);
    assert!(over_at >= earliest_end(asked_at, AMPLE), "free too early");
    assert_ne!(two.fence(&lease), Fenced::Acknowledged);
}

/// A release that is repeated, because its answer was lost, keeps the lock for no longer than before.
pub fn keeping_again_never_lengthens_the_time(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let mine = claim("a");
    one.take(&mine);
    assert_eq!(one.keep(&mine, AMPLE), Released::Released);
    let kept_at = bench.now();
    assert_eq!(one.keep(&mine, LONG), Released::Released);
    bench.taken_over(&two, "a", kept_at + AMPLE);
}

/// Neither a late renewal nor a late claim gives a kept lock back to the owner that left.
pub fn the_owner_that_left_has_nothing_of_a_kept_lock(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let mine = claim("a");
    let lease = one.take(&mine);
    assert_eq!(one.keep(&mine, AMPLE), Released::Released);
    let kept_at = bench.now();
    assert_eq!(one.renew(&lease), Renewed::NotHeld);
    assert_ne!(one.fence(&lease), Fenced::Acknowledged);
    one.refused(&mine);
    bench.taken_over(&two, "a", kept_at + AMPLE);
}

/// The owner that left can still free the lock.
pub fn a_release_ends_the_keeping(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let mine = claim("a");
    one.take(&mine);
    assert_eq!(one.keep(&mine, LONG), Released::Released);
    two.refused(&claim("a"));
    assert_eq!(one.release(&mine), Released::Released);
    two.take(&claim("a"));
}

/// A waiter has the lock soon after it is no longer kept, and not before.
pub fn a_waiter_has_a_kept_lock_when_its_time_is_over(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.client());
    let mine = claim("a");
    one.take(&mine);
    let waiter = two.wait_for("a", &options(LONG));
    (0..20).for_each(|_| bench.pause());
    let asked_at = bench.now();
    assert_eq!(one.keep(&mine, BRIEF), Released::Released);
    bench.until("the waiter has it", || waiter.is_finished());
    assert!(bench.now() >= earliest_end(asked_at, BRIEF), "admitted too early");
    assert!(bench.now().since(asked_at) < LONG / 2, "admitted far too late");
    waiter.outcome().unwrap().release().unwrap();
}

/// A user that releases and keeps a lock shuts everybody out for that time, also the waiters of its own client.
pub fn a_guard_is_released_for_later(bench: &Bench) {
    let (one, two) = (bench.client(), bench.client());
    let guard = one.acquire("a", &options(LONG)).unwrap();
    let waiter = one.wait_for("a", &options(LONG));
    let asked_at = bench.now();
    guard.release_keeping(AMPLE).unwrap();
    assert!(two.try_acquire("a", &options(LONG)).unwrap().is_none(), "free too early");
    bench.until("the waiter has it", || waiter.is_finished());
    assert!(bench.now() >= earliest_end(asked_at, AMPLE), "admitted too early");
    waiter.outcome().unwrap().release().unwrap();
}
