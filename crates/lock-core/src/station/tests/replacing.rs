//! A lease that is replaced in one step, and a store that does not say whether it was.

use std::time::Duration;

use super::super::{Input, Join};
use super::rig::{Rig, all_modes, error, holding, join, millis, none, somebody, told_in_order};
use crate::{Answer, BackendError, Effect, ErrorKind, Mode, Note, Patience, Released, Renewed, Terms};

/// `o1` holds under token 7, and a replacement for one minute is in flight as `o2`.
fn replacing() -> Rig {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    let claim = "run #2: acquire o2 in place of o1, ttl 1m, above 7, no place";
    assert_eq!(rig.replace(1, "60s"), [claim]);
    rig
}

fn lost_reply(rig: &mut Rig) {
    assert_eq!(rig.fail(ErrorKind::Timeout, Effect::Unknown), none());
}

fn renewed() -> Result<Renewed, BackendError> {
    Ok(Renewed::Renewed { valid_for: Duration::from_secs(30), wanted: false })
}

#[test]
fn the_turn_goes_on_under_the_new_lease() {
    let mut rig = replacing();
    let granted =
        ["stop renewal o1", "start renewal o2: 60000ms, asked 0ms ago", "replaced 1: token 8, valid for 59398ms"];
    assert_eq!(rig.grant(8, 8), granted);
    assert_eq!(rig.leave(1), ["stop renewal o2", "run #3: release o2"]);
    assert_eq!(rig.release(Ok(Released::Released)), ["ended 1: released"]);
}

#[test]
fn late_answers_about_the_old_lease_change_nothing() {
    let mut rig = replacing();
    let old = rig.station.leases.first().unwrap().lease.owner;
    rig.grant(8, 8);
    let until = rig.hold().valid_until();
    for answer in [renewed(), Ok(Renewed::NotHeld)] {
        let asked_at = rig.now + Duration::from_secs(40);
        assert_eq!(rig.feed(Input::Renewal { owner: old, asked_at, answer }), none());
        assert_eq!(rig.hold().valid_until(), until);
    }
}

#[test]
fn max_hold_counts_on_under_the_new_lease() {
    let mut rig = Rig::new(told_in_order());
    let max_hold = Some(Duration::from_secs(5));
    rig.feed(Input::Join(Join { max_hold, ..join(1) }));
    rig.grant(7, 7);
    let end = rig.hold().valid_until();
    rig.pass(millis(10));
    rig.replace(1, "60s");
    rig.grant(8, 8);
    assert_eq!((rig.hold().token().get(), rig.hold().valid_until()), (8, end));
}

#[test]
fn a_replacement_of_unknown_outcome_is_repeated_with_the_same_owners() {
    let mut rig = replacing();
    for number in 3..6 {
        lost_reply(&mut rig);
        let again = format!("run #{number}: acquire o2 in place of o1, ttl 1m, above 7, no place");
        assert_eq!(rig.wake(), [again]);
    }
    assert_eq!(rig.grant(8, 8)[2], "replaced 1: token 8, valid for 59398ms");
    let unsure = ["stop renewal o2", "run #6: release o2, claim may be in flight"];
    assert_eq!(rig.leave(1), unsure, "an earlier claim may still arrive");
}

#[test]
fn before_the_answer_not_held_is_ignored_and_the_validity_stays() {
    let mut rig = replacing();
    let until = rig.hold().valid_until();
    lost_reply(&mut rig);
    assert_eq!(rig.renewal(rig.now, Ok(Renewed::NotHeld)), none());
    assert_eq!(rig.hold().valid_until(), until);
    rig.wake();
    assert_eq!(rig.grant(8, 8)[2], "replaced 1: token 8, valid for 59398ms");
}

#[test]
fn not_held_counts_once_the_replacement_is_refused() {
    let by = Note::from_wire("1@elsewhere");
    for (answer, lost) in [(Renewed::NotHeld, "lose 1: not held"), (Renewed::Revoked { by }, "lose 1: revoked")] {
        let mut rig = replacing();
        assert_eq!(rig.renewal(rig.now, Ok(answer)), none());
        let refused = rig.fail(ErrorKind::Protocol, Effect::None);
        assert_eq!(refused[..2], ["replaced 1: error Protocol, effect None", lost]);
    }
}

#[test]
fn both_owners_are_released_once_the_hold_has_ended() {
    let mut rig = replacing();
    lost_reply(&mut rig);
    while rig.now + millis(2_000) < rig.hold().valid_until() {
        for output in rig.wake() {
            assert!(!output.contains("release"), "{output}");
            lost_reply(&mut rig);
        }
    }
    rig.now = rig.hold().valid_until();
    let ended = rig.feed(Input::Tick).join("; ");
    for part in ["lose 1: expired", "release o1, claim may be in flight", "release o2, claim may be in flight"] {
        assert!(ended.contains(part), "{ended}");
    }
}

/// One of two leases is stored. Both are released, and only the second request may find one.
#[test]
fn a_holder_that_leaves_during_the_replacement_counts_as_holding_until_then() {
    let mut rig = replacing();
    lost_reply(&mut rig);
    let both =
        ["stop renewal o1", "run #3: release o1, claim may be in flight", "run #4: release o2, claim may be in flight"];
    assert_eq!(rig.leave(1), both);
    assert_eq!(rig.release(Ok(Released::NotHeld)), ["ended 1: released"]);
}

#[test]
fn a_renewal_during_the_replacement_extends_the_old_lease() {
    let mut rig = replacing();
    lost_reply(&mut rig);
    rig.pass(millis(10));
    let until = rig.hold().valid_until();
    rig.renewal(rig.now, renewed());
    assert!(rig.hold().valid_until() > until);
}

#[test]
fn a_refusal_is_final_once_no_earlier_claim_can_arrive() {
    let busy = || Ok(Answer::Busy { remaining: None, holder: somebody(9, 9), drawn: None });
    assert_eq!(replacing().answer(busy()), ["replaced 1: busy, held under token 9"]);
    let mut rig = replacing();
    lost_reply(&mut rig);
    let asked = rig.now;
    let settled = loop {
        rig.renewal(rig.now, renewed());
        rig.wake();
        if let [told] = &rig.answer(busy())[..] {
            break told.clone();
        }
    };
    assert_eq!(settled, "replaced 1: busy, held under token 9");
    assert!(rig.now.since(asked) > Duration::from_secs(60), "for the ttl that the new lease would have had");
}

/// Such as a full server, which renews leases and refuses everything else for hours.
#[test]
fn an_error_without_effect_is_final_once_the_old_lease_was_renewed_after_any_earlier_claim() {
    let mut rig = replacing();
    lost_reply(&mut rig);
    let asked = rig.now;
    let settled = loop {
        rig.renewal(rig.now, renewed());
        rig.wake();
        if let [told] = &rig.fail(ErrorKind::Unavailable, Effect::None)[..] {
            break told.clone();
        }
        assert!(rig.now.since(asked) < Duration::from_secs(180), "it is asked for without an end");
    };
    assert_eq!(settled, "replaced 1: error Unavailable, effect None");
    assert!(rig.now.since(asked) > Duration::from_secs(120), "a claim may arrive in the first half of that");
}

#[test]
fn an_error_without_effect_is_reported_at_once() {
    let mut rig = replacing();
    assert_eq!(rig.fail(ErrorKind::Unreachable, Effect::None), ["replaced 1: error Unreachable, effect None"]);
    assert_eq!(rig.leave(1), ["stop renewal o1", "run #3: release o1"]);
}

#[test]
fn a_stale_grant_is_asked_for_again() {
    let mut rig = replacing();
    rig.pass(Duration::from_secs(29));
    rig.renewal(rig.now, renewed());
    rig.pass(Duration::from_secs(15));
    assert_eq!(rig.grant(8, 8), none());
    assert_eq!(rig.wake(), ["run #3: acquire o2 in place of o1, ttl 1m, above 7, no place"]);
}

#[test]
fn nothing_is_sent_to_a_store_that_cannot_replace_leases() {
    let mut policy = told_in_order();
    policy.store.abilities = &[];
    let mut rig = holding(policy, 7, 7, 0);
    assert_eq!(rig.replace(1, "60s"), ["replaced 1: error Unsupported, effect None"]);
    assert_eq!(rig.leave(1), ["stop renewal o1", "run #2: release o1"]);
}

/// A replacement may leave two releases, and at most four are allowed.
#[test]
fn nothing_is_replaced_while_three_releases_are_pending() {
    let mut rig = Rig::new(told_in_order());
    for turn in 2..5 {
        rig.feed(Input::Join(Join { patience: Patience::Never, ..join(turn) }));
        rig.fail(ErrorKind::Timeout, Effect::Unknown);
    }
    rig.join(1);
    rig.grant(7, 7);
    assert_eq!(rig.replace(1, "60s"), none());
    let claim = rig.release(Err(error(ErrorKind::Denied, Effect::None)));
    assert_eq!(claim, ["run #8: acquire o5 in place of o4, ttl 1m, above 7, no place"]);
}

#[test]
fn the_new_owner_is_known_during_the_replacement() {
    let rig = replacing();
    assert!(rig.station.knows(rig.claimant()));
}

#[test]
fn a_lease_whose_replacement_was_refused_is_passed_on() {
    let mut rig = holding(told_in_order(), 7, 8, 1);
    rig.replace(1, "60s");
    rig.fail(ErrorKind::Unreachable, Effect::None);
    assert_eq!(rig.leave(1), ["ended 1: released", "admit 2: token 8, valid for 29698ms"]);
}

/// A claim that arrives at the last moment is answered by a store whose clock may be a little behind.
#[test]
fn no_refusal_is_final_before_the_drift_is_over_as_well() {
    let busy: fn() -> _ = || Ok(Answer::Busy { remaining: None, holder: somebody(9, 9), drawn: None });
    let no_effect: fn() -> _ = || Err(error(ErrorKind::Unavailable, Effect::None));
    for (end, answer) in [(60_000, busy), (120_000, no_effect)] {
        for (after, outputs) in [(end, 0), (end + 602, 1)] {
            let mut rig = replacing();
            lost_reply(&mut rig);
            let asked = rig.now;
            // The last claim before that moment is answered then.
            loop {
                rig.renewal(rig.now, renewed());
                rig.wake();
                if rig.now.since(asked) > millis(end - 1_000) {
                    break;
                }
                assert_eq!(rig.answer(answer()), none());
            }
            rig.now = asked + millis(after);
            assert_eq!(rig.answer(answer()).len(), outputs, "{after} ms after the claim that was not answered");
        }
    }
}

#[test]
fn the_token_of_a_replacement_raises_the_floor() {
    for token in [8, 9] {
        let mut rig = replacing();
        rig.grant(9, 9);
        rig.leave(1);
        rig.release(Ok(Released::Released));
        assert!(rig.join(2)[0].contains("above 9"));
        let refused = rig.grant(token, token);
        assert!(refused.contains(&format!("refuse 2: the store forgot, token {token} after 9")), "{refused:?}");
    }
}

#[test]
fn permits_are_not_replaced_by_those_of_another_limit() {
    let mut rig = Rig::with_mode(all_modes(), Mode::permits(2, 4).unwrap());
    rig.join(1);
    rig.grant_slots(7, [0, 1]);
    for (count, limit) in [(1, 8), (2, 2)] {
        let terms = Terms { mode: Mode::permits(count, limit).unwrap(), ..join(1).terms };
        let refused = rig.feed(Input::Replace { turn: join(1).turn, terms });
        let [invalid] = &refused[..] else { panic!("{count} of {limit}: {refused:?}") };
        assert!(invalid.starts_with(&format!("replaced 1: limit \"{limit}\" is not valid")), "{invalid}");
    }
}
