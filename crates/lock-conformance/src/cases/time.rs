//! A lease ends when its time is over and never earlier, and its holder knows first.

use std::time::Duration;

use lock_core::{Fenced, Renewed};

use crate::bench::earliest_end;
use crate::facade::options;
use crate::verbs::{AMPLE, BRIEF, LONG, claim, lasting};
use crate::{Bench, Fault};

/// A lease that nobody renews ends when its time is over, and not earlier.
pub fn an_unrenewed_lease_ends(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let asked_at = bench.now();
    let (lease, valid_for) = one.granted(&lasting(BRIEF, claim("a")));
    let over_at = bench.taken_over(&two, "a", bench.now() + BRIEF);
    assert!(over_at >= earliest_end(asked_at, valid_for), "over before its holder believed");
    assert_ne!(one.fence(&lease), Fenced::Acknowledged);
}

/// No answer promises more time than was requested.
pub fn no_grant_is_longer_than_asked(bench: &Bench) {
    let one = bench.verbs();
    for (number, millis) in [100, 1234, 59_999, 365 * 24 * 60 * 60 * 1000].into_iter().enumerate() {
        let ttl = Duration::from_millis(millis);
        let long = claim(&format!("a{number}"));
        // Held for longer first: the shortest ttl must not run out between two requests.
        one.take(&long);
        let asked_again = lasting(ttl, long);
        let (lease, valid_for) = one.granted(&asked_again);
        assert!(valid_for <= ttl && !valid_for.is_zero(), "{valid_for:?} for {ttl:?}");
        assert_eq!(lease.terms.ttl.get(), ttl);
        match one.renew(&lease) {
            Renewed::Renewed { valid_for, .. } => assert!(valid_for <= ttl, "{valid_for:?} for {ttl:?}"),
            // The shortest may be over by now.
            Renewed::NotHeld | Renewed::Unsure(_) => assert_eq!(millis, 100),
            Renewed::Revoked { by } => panic!("{by} did not"),
        }
    }
}

/// A renewed lease lasts for a whole ttl from the renewal.
pub fn a_renewal_counts_from_now(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let lease = one.take(&lasting(AMPLE, claim("a")));
    bench.elapse(AMPLE / 3);
    let asked_at = bench.now();
    let Renewed::Renewed { valid_for, .. } = one.renew(&lease) else { panic!("it was renewed in time") };
    let over_at = bench.taken_over(&two, "a", bench.now() + AMPLE);
    assert!(over_at >= earliest_end(asked_at, valid_for), "over before its holder believed");
}

/// An expired lease cannot be renewed, even if nobody has taken the lock meanwhile.
pub fn a_late_renewal_is_refused(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let lease = one.take(&lasting(BRIEF, claim("a")));
    bench.outlive(BRIEF);
    assert_eq!(one.renew(&lease), Renewed::NotHeld);
    assert_eq!(one.fence(&lease), Fenced::NotHeld);
    two.take(&claim("a"));
}

/// A live holder keeps the lock for as long as it likes.
pub fn renewal_outlives_the_ttl(bench: &Bench) {
    let (one, two) = (bench.client(), bench.client());
    let ttl = bench.shortened(Duration::from_secs(6));
    let guard = one.acquire("a", &options(ttl)).unwrap();
    bench.keep(&guard, ttl, ttl * 4 / 3);
    assert!(two.try_acquire("a", &options(LONG)).unwrap().is_none(), "taken from its holder");
    guard.check().unwrap();
    guard.verify().unwrap();
    guard.release().unwrap();
    assert!(two.try_acquire("a", &options(LONG)).unwrap().is_some());
}

/// When renewals fail, the guard reports the loss before anybody else can hold the lock.
pub fn a_loss_is_noticed_before_the_store_lets_go(bench: &Bench) {
    let client = bench.client();
    let guard = client.acquire("a", &options(BRIEF)).unwrap();
    let bystander = bench.bystander();
    bench.during(Fault::Cut, || {
        let granted_at = bench.now();
        bench.taken_over(&bystander, "a", granted_at + BRIEF);
        assert!(guard.check().is_err(), "two hold it at once");
        bench.until("the loss is told", || guard.lost().is_some());
    });
}
