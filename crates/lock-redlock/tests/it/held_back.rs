//! Per node and lock the order is claim, release, next claim.

use std::time::Duration;

use lock_core::node::{Ask, Told};
use lock_core::{BackendError, Certainty, Claim, Effect, ErrorKind, Evidence, Operation, ReleaseRequest, Released};
use lock_redlock::quorum::{Outcome, Outgoing, Purpose, Request, Verdict};

use crate::script::{Script, is_claim, is_release};
use crate::support::{MAX_TTL, WITHIN, claim};

fn release_of(owner: u8) -> Request {
    let Claim { name, owner, terms, .. } = claim(owner);
    Request::Release(ReleaseRequest {
        name,
        owner,
        terms,
        certainty: Certainty::Answered,
        keep: None,
        evidence: Evidence::Nothing,
    })
}

/// A lock was granted by two of three nodes, and its release has begun. Node 2 has not answered the claim.
fn releasing(within: Duration) -> Script {
    let mut script = Script::voting(3);
    script.begin(Request::Acquire(claim(1)));
    script.grant(0, 10);
    script.grant(1, 10);
    assert!(matches!(script.verdicts.pop(), Some(Verdict::Acquire(Ok(_)))));
    script.begin_within(release_of(1), within);
    script
}

/// The releases that were sent: the node, what they say about the claim, and how long their tombstones live.
fn releases(script: &Script) -> Vec<(usize, Certainty, Duration)> {
    let told = |sent: &Outgoing| {
        let Ask::Release(request) = &sent.ask else { return None };
        Some((sent.node.0, request.certainty, request.terms.ttl.get()))
    };
    script.sent.iter().filter_map(told).collect()
}

fn confirm(script: &mut Script, node: usize) {
    script.answer(node, is_release, Ok(Told::Released(Released::Released)));
}

fn lost(kind: ErrorKind) -> Outcome {
    Err(BackendError::new("memory", Operation::Acquire, kind, Effect::Unknown, "as the test says"))
}

fn released(script: &mut Script) -> Option<Result<Released, BackendError>> {
    let Verdict::Release(verdict) = script.verdicts.pop()? else { panic!("it is no release") };
    Some(verdict)
}

#[test]
fn a_release_waits_for_the_answer_to_its_claim_and_leaves_no_tombstone() {
    let mut script = releasing(WITHIN);
    assert_eq!(script.asked(is_release), [0, 1]);
    script.grant(2, 10);
    let told: Vec<_> = releases(&script).iter().map(|(node, certainty, _)| (*node, *certainty)).collect();
    assert_eq!(told, [0, 1, 2].map(|node| (node, Certainty::Answered)));
}

#[test]
fn after_a_claim_without_an_answer_the_release_leaves_a_tombstone() {
    for kind in [ErrorKind::Timeout, ErrorKind::Unreachable] {
        let mut script = releasing(WITHIN);
        script.answer(2, is_claim, lost(kind));
        assert_eq!(releases(&script)[2], (2, Certainty::Unknown, MAX_TTL), "{kind:?}");
    }
}

#[test]
fn the_next_claim_follows_the_release_and_its_own_release_waits_for_it() {
    let mut script = releasing(WITHIN);
    confirm(&mut script, 0);
    confirm(&mut script, 1);
    script.begin(Request::Acquire(claim(2)));
    assert_eq!(script.asked(is_claim), [2, 0, 1]);
    script.grant(0, 20);
    script.grant(1, 20);
    script.begin(release_of(2));
    script.begin(Request::Acquire(claim(3)));
    script.grant(2, 10);
    let sent: Vec<_> = script.sent.iter().filter(|sent| sent.node.0 == 2).collect();
    assert!(matches!(sent[..], [first, second] if is_release(&first.ask) && is_claim(&second.ask)), "{sent:?}");
    script.grant(2, 20);
    let sent: Vec<_> = script.sent.iter().filter(|sent| sent.node.0 == 2).map(|sent| &sent.ask).collect();
    assert!(sent.len() == 3 && is_release(sent[1]) && is_claim(sent[2]), "{sent:?}");
}

/// They are for other locks, or nothing is held back before them.
#[test]
fn other_claims_wait_for_nothing() {
    let mut script = releasing(WITHIN);
    script.begin(Request::Acquire(Claim { name: "b".parse().unwrap(), ..claim(2) }));
    assert_eq!(script.asked(is_claim), [2, 0, 1, 2]);
}

#[test]
fn the_verdict_of_a_release_waits_for_a_node_that_is_needed() {
    let mut script = releasing(WITHIN);
    script.answer(0, is_release, lost(ErrorKind::Unreachable));
    confirm(&mut script, 1);
    assert!(released(&mut script).is_none(), "the third may confirm it");
    script.grant(2, 10);
    confirm(&mut script, 2);
    assert_eq!(released(&mut script).unwrap().unwrap(), Released::Released);
}

/// A release must not take longer than its caller allows. The claim may then still be in flight.
#[test]
fn what_would_wait_too_long_is_sent_at_once() {
    let script = releasing(WITHIN / 4);
    assert_eq!(releases(&script)[2], (2, Certainty::Unknown, MAX_TTL));

    let mut script = releasing(WITHIN);
    script.begin_within(Request::Acquire(claim(2)), WITHIN / 4);
    assert_eq!(script.asked(is_claim), [2, 0, 1, 2]);
}

#[test]
fn what_waited_until_its_time_was_over_has_failed() {
    let mut script = releasing(WITHIN);
    script.begin(Request::Acquire(claim(2)));
    script.advance(WITHIN);
    script.answer(2, is_claim, lost(ErrorKind::Timeout));
    assert_eq!(script.asked(is_release), [0, 1], "its caller has gone");
    script.answer(0, is_release, lost(ErrorKind::Unreachable));
    assert!(released(&mut script).unwrap().is_err(), "one more is no majority");
    script.answer(0, is_claim, lost(ErrorKind::Unreachable));
    script.grant(1, 20);
    assert!(matches!(script.verdicts.pop(), Some(Verdict::Acquire(Err(_)))));
    script.sent.clear();
    script.pass(Purpose::Look).unwrap();
    let is_owed = |(node, ask): &(usize, Ask)| {
        *node == 2 && matches!(ask, Ask::Release(request) if request.certainty == Certainty::Unknown)
    };
    assert!(script.steps.iter().any(is_owed), "{:?}", script.steps);
}

#[test]
fn what_is_held_back_is_sent_with_a_tombstone_before_the_process_ends() {
    let mut script = releasing(WITHIN);
    script.send_held_back();
    assert_eq!(releases(&script)[2], (2, Certainty::Unknown, MAX_TTL));
    confirm(&mut script, 2);
    confirm(&mut script, 1);
    assert_eq!(released(&mut script).unwrap().unwrap(), Released::Released);
    script.grant(2, 10);
    assert_eq!(script.asked(is_release), [0], "it is sent once");
}

/// The program's runtime has ended, and the keeper's runtime finishes the work.
#[test]
fn what_nobody_would_report_is_sent_with_a_tombstone_before_the_process_ends() {
    let mut script = releasing(WITHIN);
    script.forget(2, is_claim);
    assert_eq!(script.asked(is_release), [0, 1]);
    script.send_held_back();
    assert_eq!(releases(&script)[2], (2, Certainty::Unknown, MAX_TTL));
}

/// The task that would report the answer is gone, and the request behind it fails.
#[test]
fn what_waits_for_an_answer_that_nobody_will_report_has_failed() {
    let mut script = releasing(WITHIN);
    script.begin(Request::Acquire(claim(2)));
    script.answer(0, is_release, lost(ErrorKind::Unreachable));
    script.answer(0, is_claim, lost(ErrorKind::Unreachable));
    script.forget(2, is_claim);
    assert!(matches!(script.verdicts.pop(), Some(Verdict::Release(Err(_)))));
    script.grant(1, 20);
    assert!(matches!(script.verdicts.pop(), Some(Verdict::Acquire(Err(_)))));
}

/// It refused one release for a moment, and never got the other one.
#[test]
fn a_node_that_confirms_what_was_sent_before_the_process_ends_gets_what_is_due_by_then() {
    let mut script = releasing(WITHIN);
    script.begin(release_of(2));
    let is_second = |ask: &Ask| matches!(ask, Ask::Release(request) if request.owner == claim(2).owner);
    script.answer(2, is_second, lost(ErrorKind::Unavailable));
    script.forget(2, is_claim);
    script.send_held_back();
    script.advance(Duration::from_secs(2));
    assert!(!script.asked(is_second).contains(&2));
    confirm(&mut script, 2);
    assert!(script.asked(is_second).contains(&2), "{:?}", script.sent);
}
