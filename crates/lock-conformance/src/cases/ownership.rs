//! Only the owner of a lease can renew or release it, and asking twice is the same as asking once.

use lock_core::{Certainty, Claim, Fenced, Lease, Released, Renewed};

use crate::Bench;
use crate::bench::earliest_end;
use crate::verbs::{AMPLE, BRIEF, claim, lasting, waiting_claim};

/// A release by another owner than the holder changes nothing.
pub fn a_stranger_cannot_release(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let lease = one.take(&claim("a"));
    assert_eq!(two.release(&claim("a")), Released::NotHeld);
    assert_eq!(two.abandon(&claim("a")), Released::NotHeld);
    assert_eq!(one.fence(&lease), Fenced::Acknowledged);
    two.refused(&claim("a"));
}

/// A renewal by another owner than the holder is refused, and moves no deadline.
pub fn a_stranger_cannot_renew(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let mine = lasting(BRIEF, claim("a"));
    let lease = one.take(&mine);
    let granted_at = bench.now();
    let forged = Lease { owner: claim("a").owner, terms: claim("a").terms, ..lease };
    assert_eq!(two.renew(&forged), Renewed::NotHeld);
    bench.taken_over(&two, "a", granted_at + BRIEF);
}

/// Releasing again does not affect later holders.
pub fn a_second_release_is_harmless(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let first = claim("a");
    one.take(&first);
    assert_eq!(one.release(&first), Released::Released);
    assert_eq!(one.release(&first), Released::NotHeld);
    let lease = two.take(&claim("a"));
    assert_eq!(one.release(&first), Released::NotHeld);
    assert_eq!(one.try_release(&first, Certainty::Unknown).unwrap(), Released::NotHeld);
    assert_eq!(two.fence(&lease), Fenced::Acknowledged);
}

/// An owner that asks again keeps what it had.
pub fn the_same_owner_gets_the_same_tokens(bench: &Bench) {
    let [one, two] = bench.verbs_for_each_owner();
    let mine = claim("a");
    let lease = one.take(&mine);
    assert_eq!(one.take(&mine), lease);
    assert_eq!(two.take(&mine), lease, "asked on another connection");
    assert_eq!(one.take(&Claim { queueing: waiting_claim("a").queueing, ..mine.clone() }), lease);
    assert_eq!(two.fence(&lease), Fenced::Acknowledged);
    assert_eq!(one.release(&mine), Released::Released);
    two.take(&claim("a"));
}

/// An owner that asks again holds for a whole ttl again, from when it asked.
pub fn asking_again_re_arms_the_ttl(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let mine = lasting(AMPLE, claim("a"));
    let lease = one.take(&mine);
    bench.elapse(AMPLE / 3);
    let asked_at = bench.now();
    let (again, valid_for) = one.granted(&mine);
    let over_at = bench.taken_over(&two, "a", bench.now() + AMPLE);
    assert_eq!(again, lease);
    assert!(over_at >= earliest_end(asked_at, valid_for), "over before its holder believed");
}

/// A renewal of a lease that is not held is refused and leaves the lock free.
pub fn a_renewal_never_creates(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let mine = claim("a");
    let lease = one.take(&mine);
    let elsewhere = Lease { name: claim("b").name, ..lease.clone() };
    assert_eq!(one.renew(&elsewhere), Renewed::NotHeld);
    two.take(&claim("b"));
    assert_eq!(one.release(&mine), Released::Released);
    assert_eq!(one.renew(&lease), Renewed::NotHeld);
    assert_eq!(one.fence(&lease), Fenced::NotHeld);
    two.take(&claim("a"));
}

/// Each of many leases in one request gets its own answer, in order; an empty request gets none.
pub fn renewals_are_answered_in_their_order(bench: &Bench) {
    let one = bench.verbs();
    let claims: Vec<_> = (0..248).map(|number| claim(&format!("a{number}"))).collect();
    let leases: Vec<_> = claims.iter().map(|claim| one.take(claim)).collect();
    for released in claims.iter().step_by(3) {
        assert_eq!(one.release(released), Released::Released);
    }
    let answers = one.try_renew(&leases).unwrap();
    assert_eq!(answers.len(), leases.len());
    for (number, answer) in answers.into_iter().enumerate() {
        let held = matches!(answer, Renewed::Renewed { .. });
        assert_eq!(held, number % 3 != 0, "lease {number}: {answer:?}");
    }
    assert_eq!(one.try_renew(&[]).unwrap(), []);
}

/// A fence says whether this is still the stored grant, and which token came after.
pub fn a_fence_knows_the_stored_grant(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let mine = claim("a");
    let lease = one.take(&mine);
    assert_eq!(one.fence(&lease), Fenced::Acknowledged);
    assert_eq!(two.fence(&lease), Fenced::Acknowledged, "asked on another connection");
    assert_eq!(two.fence(&Lease { owner: claim("a").owner, ..lease.clone() }), Fenced::NotHeld);
    assert_eq!(one.release(&mine), Released::Released);
    one.flush();
    assert_eq!(one.fence(&lease), Fenced::NotHeld);
    let next = two.take(&claim("a"));
    match one.fence(&lease) {
        Fenced::Higher(token) => assert_eq!(token, next.tokens.low()),
        other @ (Fenced::Acknowledged | Fenced::NotHeld) => panic!("a higher token was granted: {other:?}"),
    }
}

/// A waiter that leaves is not given the lock.
pub fn a_waiter_gives_up_its_place(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (first, second) = (claim("a"), waiting_claim("a"));
    one.take(&first);
    two.queued(&second);
    assert_eq!(two.release(&second), Released::Left);
    assert_eq!(two.release(&second), Released::NotHeld);
    assert_eq!(one.release(&first), Released::Released);
    three.take(&claim("a"));
}
