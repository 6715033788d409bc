//! A waiter learns who holds the lock, gets it soon after its release, and leaves nothing behind when it gives up.

use std::time::Duration;

use lock_core::{AcquireError, Holder, Operation, Released};

use crate::facade::{end_of, options};
use crate::verbs::{BRIEF, LONG, claim, lasting, waiting_claim};
use crate::{Bench, Waiter};

/// How much sooner than a ttl a waiter must have the lock: no poll and no place lasts longer.
const SOON: Duration = Duration::from_secs(11);

/// A refusal says who holds the lock, and how much of the lease is left if the store can tell.
pub fn busy_names_the_holder_and_what_remains(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let lease = one.take(&claim("a"));
    let put_off = two.refused(&claim("a"));
    match put_off.holder {
        Holder::Leasehold { tokens, note } => {
            assert_eq!(tokens, lease.tokens);
            assert_eq!((note.pid(), note.why()), (Some(std::process::id()), "conformance"));
        }
        Holder::Foreign => panic!("the holder is not a leasehold client"),
    }
    let remaining = put_off.remaining.unwrap_or(LONG);
    assert!(remaining <= LONG && remaining > LONG / 2, "{remaining:?} of {LONG:?}");
}

/// A claim that wants no place gets none.
pub fn without_a_wish_no_place_is_kept(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let held = claim("a");
    one.take(&held);
    let passing = claim("a");
    two.refused(&passing);
    assert_eq!(two.release(&passing), Released::NotHeld);
    assert_eq!(one.release(&held), Released::Released);
    three.take(&claim("a"));
}

/// A user who only tries learns that the lock is held, and gets it when it is free.
pub fn a_try_is_answered_at_once(bench: &Bench) {
    let (one, two) = (bench.client(), bench.client());
    let guard = one.acquire("a", &options(LONG)).unwrap();
    let asked_at = bench.now();
    for client in [&one, &two] {
        assert!(client.try_acquire("a", &options(LONG)).unwrap().is_none());
    }
    assert!(bench.now().since(asked_at) < SOON);
    guard.release().unwrap();
    assert!(two.try_acquire("a", &options(LONG)).unwrap().is_some());
}

/// Begins to wait, and gives the waiter time to ask the store.
fn wait_for(bench: &Bench, client: &crate::Client) -> Waiter {
    let waiter = client.wait_for("a", &options(LONG));
    (0..20).for_each(|_| bench.pause());
    assert!(!waiter.is_finished(), "the lock is held by somebody else");
    waiter
}

/// A waiter has the lock soon after its release, however long the lease would have lasted.
pub fn a_release_wakes_a_waiter_long_before_the_ttl(bench: &Bench) {
    let (one, two) = (bench.client(), bench.client());
    let guard = one.acquire("a", &options(LONG)).unwrap();
    let waiter = wait_for(bench, &two);
    let (token, released_at) = (guard.token(), bench.now());
    guard.release().unwrap();
    bench.until("the waiter has it", || waiter.is_finished());
    assert!(bench.now().since(released_at) < SOON);
    let guard = waiter.outcome().unwrap();
    assert!(guard.token() > token);
    guard.verify().unwrap();
}

/// A waiter whose wait is over learns who holds the lock, and leaves nothing behind.
pub fn a_wait_that_is_over_names_the_holder(bench: &Bench) {
    let (one, ([two, _], asked), three) = (bench.client(), bench.clients_of_one_backend(), bench.client());
    let guard = one.acquire("a", &options(LONG).why("nightly report")).unwrap();
    let waiter = two.wait_for("a", &options(LONG).wait(Duration::from_secs(3)));
    // A clock that is moved must not end the wait before the first answer.
    end_of(|| asked.ran(Operation::Acquire) > 0);
    bench.until("the wait is over", || waiter.is_finished());
    let error = waiter.outcome().unwrap_err();
    assert!(matches!(error, AcquireError::TimedOut { holder: Some(_), .. }), "{error:?}");
    assert!(error.to_string().contains("nightly report"), "{error}");
    let released_at = bench.now();
    guard.release().unwrap();
    bench.until("the next one has it", || three.try_acquire("a", &options(LONG)).unwrap().is_some());
    assert!(bench.now().since(released_at) < SOON);
}

/// A waiter that gives up does not delay the others.
pub fn a_cancelled_waiter_leaves_nothing(bench: &Bench) {
    let (one, two, three) = (bench.client(), bench.client(), bench.client());
    let guard = one.acquire("a", &options(LONG)).unwrap();
    let cancelled = wait_for(bench, &two);
    let waiter = wait_for(bench, &three);
    cancelled.cancel();
    let released_at = bench.now();
    guard.release().unwrap();
    bench.until("the next one has it", || waiter.is_finished());
    assert!(bench.now().since(released_at) < SOON);
    waiter.outcome().unwrap().release().unwrap();
    assert!(bench.client().try_acquire("a", &options(LONG)).unwrap().is_some());
}

/// First come, first served.
pub fn waiters_are_served_in_their_order(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (first, second, third) = (claim("a"), waiting_claim("a"), waiting_claim("a"));
    one.take(&first);
    assert_eq!(two.queued(&second), 1);
    assert_eq!(three.queued(&third), 2);
    assert_eq!(one.release(&first), Released::Released);
    assert_eq!(three.queued(&third), 1, "its turn has not come");
    let lease = two.take(&second);
    assert_eq!(two.release(&second), Released::Released);
    assert!(three.take(&third).tokens.low() > lease.tokens.high());
}

/// A lock for which somebody waits goes to nobody else.
pub fn nobody_overtakes_the_queue(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (first, second) = (claim("a"), waiting_claim("a"));
    one.take(&first);
    two.queued(&second);
    assert_eq!(one.release(&first), Released::Released);
    three.refused(&claim("a"));
    assert_eq!(three.queued(&waiting_claim("a")), 1, "behind the one who holds it by now");
    two.take(&second);
}

/// A waiter that asks again keeps its place.
pub fn asking_again_keeps_the_place(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (first, second, third) = (claim("a"), waiting_claim("a"), waiting_claim("a"));
    one.take(&first);
    for _ in 0..3 {
        assert_eq!(two.queued(&second), 1);
        assert_eq!(three.queued(&third), 2);
    }
    assert_eq!(one.release(&first), Released::Released);
    three.queued(&third);
    two.take(&second);
}

/// A waiter that has died delays others no longer than its place lasts.
pub fn a_place_that_is_not_refreshed_is_skipped(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (first, third) = (claim("a"), waiting_claim("a"));
    one.take(&first);
    two.queued(&lasting(BRIEF, waiting_claim("a")));
    three.queued(&third);
    bench.outlive(BRIEF);
    assert_eq!(one.release(&first), Released::Released);
    three.take(&third);
}

/// A waiter that dies when its turn comes keeps the lock no longer than its place would have lasted.
pub fn a_hand_over_that_nobody_takes_goes_on(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (first, third) = (claim("a"), waiting_claim("a"));
    let before = one.take(&first);
    two.queued(&lasting(BRIEF, waiting_claim("a")));
    three.queued(&third);
    assert_eq!(one.release(&first), Released::Released);
    bench.outlive(BRIEF);
    let lease = three.take(&third);
    assert!(lease.tokens.low() > before.tokens.high());
    two.refused(&claim("a"));
}
