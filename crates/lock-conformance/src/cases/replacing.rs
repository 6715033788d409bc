//! A lease can be replaced by another one of the same client in one step.

use lock_core::{Fenced, Released, Renewed};

use crate::Bench;
use crate::verbs::{claim, replacing, waiting_claim};

/// The new lease has a higher token and other terms, and nobody has the lock in between.
pub fn a_lease_is_replaced_in_one_step_past_the_queue(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (old, waiter) = (claim("a"), waiting_claim("a"));
    let before = one.take(&old);
    two.denied(&waiter);
    let new = replacing(&old);
    let lease = one.take(&new);
    assert!(lease.tokens.low() > before.tokens.high() && lease.terms == new.terms);
    assert_eq!(one.fence(&lease), Fenced::Acknowledged);
    assert!(matches!(one.renew(&lease), Renewed::Renewed { .. }));
    two.denied(&waiter);
    assert_eq!(one.release(&new), Released::Released);
    two.take(&waiter);
}

/// A client that was not answered asks again with the same two owners.
pub fn a_replacement_that_is_asked_again_is_the_same(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let old = claim("a");
    one.take(&old);
    let new = replacing(&old);
    let lease = one.take(&new);
    assert_eq!(one.take(&new), lease);
    assert_eq!(two.take(&new), lease, "asked on another connection");
    assert_eq!(one.fence(&lease), Fenced::Acknowledged);
}

/// Where the old owner does not hold the lock, nothing is granted, whether somebody else does or nobody.
pub fn only_a_lease_that_is_held_is_replaced(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let old = claim("a");
    one.denied(&replacing(&old));
    one.take(&old);
    assert_eq!(one.release(&old), Released::Released);
    one.denied(&replacing(&old));
    let lease = two.take(&claim("a"));
    one.denied(&replacing(&old));
    assert_eq!(two.fence(&lease), Fenced::Acknowledged);
}

/// A replacement that arrives after it was given up ends nothing.
pub fn a_late_replacement_that_was_given_up_is_refused(bench: &Bench) {
    let one = bench.verbs();
    let old = claim("a");
    let lease = one.take(&old);
    let new = replacing(&old);
    assert_eq!(one.abandon(&new), Released::NotHeld);
    one.denied(&new);
    assert_eq!(one.fence(&lease), Fenced::Acknowledged, "the old one still holds");
    assert!(matches!(one.renew(&lease), Renewed::Renewed { .. }));
}

/// No late request of the old owner does anything to the new lease.
pub fn the_owner_that_was_replaced_has_nothing(bench: &Bench) {
    let one = bench.verbs();
    let old = claim("a");
    let before = one.take(&old);
    let new = replacing(&old);
    let lease = one.take(&new);
    assert_eq!(one.renew(&before), Renewed::NotHeld);
    one.denied(&old);
    assert_eq!(one.release(&old), Released::NotHeld);
    assert_eq!(one.fence(&lease), Fenced::Acknowledged);
    assert_eq!(one.release(&new), Released::Released);
    one.denied(&old);
}
