//! A request whose answer never arrived is repeated or undone.

use lock_core::{
    AcquireError, BackendError, Certainty, Claim, Effect, EntriesEnd, Fenced, Lease, OnUnavailable, Released, Renewed,
    Waiting,
};

use crate::facade::options;
use crate::verbs::{LONG, claim, waiting_claim};
use crate::{Bench, Fault, Verbs};

/// Asks a question whose answer is lost; the error must say that it may have taken effect.
#[track_caller]
fn unanswered<T>(bench: &Bench, ask: impl FnOnce() -> Result<T, BackendError>) {
    let error = bench.during(Fault::LoseReplies, ask).err().expect("the answer was lost");
    assert_eq!(error.effect(), Effect::Unknown, "{error}");
    assert!(error.kind().is_transient(), "{error}");
}

/// The store kept the grant; the owner gets it by asking again. At a store without a queue, no owner asks a second
/// time, and what the first claim did is undone.
pub fn an_acquire_without_an_answer_can_be_asked_again(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.bystander());
    let mine = unasked(bench, &one);
    unanswered(bench, || one.try_acquire(&mine));
    if bench.capabilities().waiting == Waiting::Poll {
        bench.taken_over(&two, "a", bench.now() + LONG / 6);
        return;
    }
    two.refused(&claim("a"));
    bench.insist(|| one.try_acquire(&mine));
    let lease = one.take(&mine);
    assert_eq!(two.fence(&lease), Fenced::Acknowledged);
    assert_eq!(one.release(&mine), Released::Released);
    two.take(&claim("a"));
}

/// A claim for "a" that is granted with its first request. A store with sessions may look before it makes an entry that waits for nothing, and
/// other stores have something to make for the first claim of a client.
fn unasked(bench: &Bench, one: &Verbs) -> Claim {
    take_turn(one);
    match bench.capabilities().entries_end {
        EntriesEnd::WithTtl => claim("a"),
        EntriesEnd::WithSession => waiting_claim("a"),
    }
}

/// Holds the lock once, so that everything is made that later claims need.
fn take_turn(one: &Verbs) {
    let earlier = claim("a");
    one.take(&earlier);
    one.release(&earlier);
}

/// A release that says that a claim may still be in flight undoes whatever the acquire did.
pub fn an_acquire_without_an_answer_can_be_given_up(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.bystander());
    let mine = claim("a");
    one.release(&mine);
    unanswered(bench, || one.try_acquire(&mine));
    bench.insist(|| one.try_release(&mine, Certainty::Unknown));
    two.take(&claim("a"));
}

/// A lease is still held, and renewed by asking again.
pub fn a_renewal_without_an_answer_can_be_repeated(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.bystander());
    let lease = one.take(&claim("a"));
    unanswered(bench, || one.try_renew(std::slice::from_ref(&lease)));
    let answers = bench.insist(|| one.try_renew(std::slice::from_ref(&lease)));
    assert!(matches!(answers[..], [Renewed::Renewed { .. }]), "{answers:?}");
    assert_eq!(two.fence(&lease), Fenced::Acknowledged);
}

/// The lock is free after the second release at the latest.
pub fn a_release_without_an_answer_can_be_repeated(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.bystander());
    let mine = claim("a");
    one.take(&mine);
    unanswered(bench, || one.try_release(&mine, Certainty::Answered));
    let answer = bench.insist(|| one.try_release(&mine, Certainty::Answered));
    assert!(matches!(answer, Released::NotHeld | Released::Released), "{answer:?}");
    two.take(&claim("a"));
}

/// Asking who holds a lock changes nothing, answered or not.
pub fn a_fence_without_an_answer_changes_nothing(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.bystander());
    let lease: Lease = one.take(&claim("a"));
    unanswered(bench, || one.try_fence(&lease));
    assert_eq!(bench.insist(|| one.try_fence(&lease)), Fenced::Acknowledged);
    two.refused(&claim("a"));
}

/// A claim that was in flight when its owner gave up is refused, whether or not an earlier one had succeeded.
pub fn a_claim_that_arrives_after_its_release_leaves_nothing(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    let (never_granted, granted_before) = (claim("a"), claim("a"));
    assert_eq!(one.abandon(&never_granted), Released::NotHeld);
    assert!(one.try_acquire(&never_granted).is_err(), "a ghost was granted the lock");
    one.take(&granted_before);
    assert_eq!(one.abandon(&granted_before), Released::Released);
    assert!(one.try_acquire(&granted_before).is_err(), "a ghost was granted the lock");
    two.take(&claim("a"));
}

/// Nor does it get a place in the queue.
pub fn a_claim_that_arrives_after_its_release_takes_no_place(bench: &Bench) {
    let (one, two, three) = (bench.verbs(), bench.verbs(), bench.verbs());
    let (held, ghost) = (claim("a"), waiting_claim("a"));
    one.take(&held);
    two.abandon(&ghost);
    // Whatever its answer is, it must not block others.
    two.try_acquire(&ghost).ok();
    assert_eq!(one.release(&held), Released::Released);
    three.take(&claim("a"));
}

/// A user who got an error holds nothing, and blocks others for no longer than a moment.
pub fn a_try_without_an_answer_leaves_nothing(bench: &Bench) {
    let (client, bystander) = (bench.client(), bench.bystander());
    client.try_acquire("b", &options(LONG)).unwrap().expect("nobody holds it").release().unwrap();
    let outcome = bench.during(Fault::LoseReplies, || client.try_acquire("a", &options(LONG)));
    assert!(matches!(outcome, Err(AcquireError::Backend(_))), "{outcome:?}");
    // Far sooner than by its ttl.
    bench.taken_over(&bystander, "a", bench.now() + LONG / 6);
}

/// A waiter gets the lock although answers were lost meanwhile, and is its only holder.
pub fn a_wait_survives_lost_answers(bench: &Bench) {
    let (client, bystander) = (bench.client(), bench.bystander());
    let waiter = bench.during(Fault::LoseReplies, || {
        let waiter = client.wait_for("a", &options(LONG).on_unavailable(OnUnavailable::Wait));
        bench.until("an answer is lost", || bench.faults().fired() > 0);
        waiter
    });
    bench.until("the lock is acquired", || waiter.is_finished());
    let guard = waiter.outcome().unwrap();
    bystander.refused(&claim("a"));
    guard.verify().unwrap();
    guard.release().unwrap();
    bystander.take(&claim("a"));
}
