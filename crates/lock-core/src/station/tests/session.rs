//! A store whose entries end with a session: nothing is over by itself, and what stays owed ends the session.

use std::time::Duration;

use super::super::Input;
use super::rig::{Rig, error, holding, millis, none, told_in_order};
use crate::{Effect, EntriesEnd, ErrorKind, LossReason, Policy, Released, StoreEvent};

fn with_session() -> Policy {
    let mut policy = told_in_order();
    policy.store.entries_end = EntriesEnd::WithSession;
    policy
}

fn session_ended(rig: &mut Rig) -> Vec<String> {
    rig.feed(Input::Event(StoreEvent::SessionEnded))
}

/// A station whose waiter has left, with a release that has failed for half a minute.
fn indebted(policy: Policy, kind: ErrorKind) -> Rig {
    let mut rig = Rig::new(policy);
    rig.join(1);
    rig.queue();
    assert_eq!(rig.leave(1), ["run #2: release o1"]);
    let end = rig.now + millis(31_302);
    while rig.now < end {
        assert_eq!(rig.release(Err(error(kind, Effect::None))), none(), "{:?}", rig.station);
        if rig.station.is_idle() {
            break;
        }
        rig.wake();
    }
    rig
}

#[test]
fn a_release_is_owed_until_it_is_answered_and_in_the_end_the_session_has_to_end() {
    for kind in [ErrorKind::Timeout, ErrorKind::Denied] {
        let mut rig = indebted(with_session(), kind);
        for _ in 0..3 {
            assert_eq!(rig.release(Err(error(kind, Effect::None))), ["end the session"]);
            assert!(rig.station.must_end_session(rig.now) && !rig.station.is_idle());
            assert_eq!(rig.wake().len(), 1, "it is sent again");
        }
        assert_eq!(rig.release(Ok(Released::Left)), none());
        assert!(!rig.station.must_end_session(rig.now) && rig.station.is_idle(), "an answer is enough");
    }
}

#[test]
fn elsewhere_the_end_of_the_lease_is_enough() {
    for kind in [ErrorKind::Timeout, ErrorKind::Denied] {
        let rig = indebted(told_in_order(), kind);
        assert!(rig.station.is_idle() && !rig.station.must_end_session(rig.now), "{kind:?}");
    }
}

#[test]
fn the_end_of_the_session_settles_what_is_owed() {
    let mut rig = indebted(with_session(), ErrorKind::Denied);
    assert_eq!(session_ended(&mut rig), none());
    assert!(rig.station.is_idle() && !rig.station.must_end_session(rig.now));
    assert_eq!(rig.release(Err(error(ErrorKind::Denied, Effect::None))), none(), "it was of that session");
    assert!(rig.station.is_idle());
}

#[test]
fn a_holder_that_waits_for_its_release_is_told_that_it_is_over() {
    let mut rig = holding(with_session(), 7, 7, 0);
    rig.leave(1);
    assert_eq!(session_ended(&mut rig), ["ended 1: released"]);
    assert!(rig.station.is_idle());
}

#[test]
fn who_holds_under_the_session_has_lost_that_and_the_next_one_asks() {
    let mut rig = holding(with_session(), 7, 7, 1);
    let hold = rig.hold();
    let lost = ["lose 1: not held", "stop renewal o1", "run #2: release o1", "run #3: acquire o2, above 7"];
    assert_eq!(session_ended(&mut rig), lost);
    assert_eq!(hold.check(rig.now).unwrap_err().reason, LossReason::NotHeld);
}

#[test]
fn who_waits_asks_again_at_once() {
    let mut rig = Rig::new(with_session());
    rig.join(1);
    rig.queue();
    assert_eq!(session_ended(&mut rig), ["run #2: acquire o2"], "the place of o1 ends with the session");
}

/// The backend has the answer already, and the station hears of the end of the session first.
#[test]
fn an_answer_from_an_earlier_session_does_not_count() {
    let mut rig = Rig::new(with_session());
    rig.join(1);
    assert_eq!(session_ended(&mut rig), ["run #2: acquire o2"]);
    assert_eq!(rig.about(1).grant(7, 7), ["run #3: release o1"], "others may have the lock by now");
    assert!(rig.about(2).grant(8, 8).iter().any(|output| output.starts_with("admit 1")));
}

#[test]
fn a_claim_that_was_given_up_is_released_again_if_its_answer_is_from_an_earlier_session() {
    let mut rig = Rig::new(with_session());
    rig.join(1);
    rig.leave(1);
    rig.pass(millis(100));
    let given_up = ["run #2: release o1, claim may be in flight"];
    assert_eq!(rig.feed(Input::Tick), given_up);
    session_ended(&mut rig);
    assert_eq!(rig.queue(), ["run #3: release o1"], "it may have reached the backend after the end");
}

/// A late claim can be carried out for as long as the session lives.
#[test]
fn a_replacement_without_an_answer_is_settled_by_time_only_where_a_late_claim_has_a_ttl() {
    for (policy, settled) in [(with_session(), 0), (told_in_order(), 1)] {
        let mut rig = holding(policy, 7, 7, 0);
        rig.replace(1, "1m");
        rig.fail(ErrorKind::Timeout, Effect::Unknown);
        for _ in 0..4 {
            rig.pass(Duration::from_secs(20));
            rig.renewed(false);
        }
        let refused = rig.be_busy();
        assert_eq!(refused.len(), settled, "{refused:?}");
    }
}
