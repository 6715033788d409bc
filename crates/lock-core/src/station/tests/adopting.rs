//! A lease that is detached, and adopted by another turn.

use std::num::NonZeroU32;
use std::time::Duration;

use super::super::{Input, Join};
use super::rig::{Rig, all_modes, error, holding, join, millis, none, reader, rig, told_in_order};
use crate::{Effect, ErrorKind, Fairness, Mode, Patience, Policy, Released, Renewed};

/// The claim of a client that has had no token yet for a lease that had token 8.
const CLAIM: &str = "run #1: acquire o1 in place of t, above 8, no place";

/// The first waiter has a ticket for an exclusive lease that had token 8.
fn adopting() -> Rig {
    adopting_at(told_in_order())
}

fn adopting_at(policy: Policy) -> Rig {
    let mut rig = Rig::new(policy);
    assert_eq!(rig.adopt(join(1), 8), [CLAIM]);
    rig
}

fn readers(rig: &mut Rig) -> Vec<String> {
    rig.adopt(reader(1), 8)
}

fn lost_reply(rig: &mut Rig) {
    assert_eq!(rig.fail(ErrorKind::Timeout, Effect::Unknown), none());
}

#[test]
fn who_detaches_holds_nothing_and_the_lease_is_neither_renewed_nor_released() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    let (hold, owner) = (rig.hold(), rig.owner());
    assert_eq!(rig.detach(1), ["stop renewal o1", "detached 1"]);
    assert!(hold.is_given_up() && rig.station.is_idle() && rig.station.next_wake().is_none());
    assert_eq!(rig.leave(1), none());
    let late = Input::Renewal { owner, asked_at: rig.now, answer: Ok(Renewed::NotHeld) };
    assert_eq!(rig.feed(late), none());
}

#[test]
fn those_who_wait_behind_a_lease_that_is_detached_ask_the_store() {
    let mut rig = holding(told_in_order(), 7, 8, 1);
    let next = "run #2: acquire o2, above 7";
    assert_eq!(rig.detach(1), ["stop renewal o1", "detached 1", next]);
}

#[test]
fn a_lease_that_others_hold_under_or_that_is_being_replaced_is_not_detached() {
    let mut shared = Rig::new(told_in_order());
    shared.read(1);
    shared.read(2);
    shared.grant(7, 7);
    assert_eq!(shared.detach(1), none());
    shared.leave(2);
    assert_eq!(shared.detach(1), ["stop renewal o1", "detached 1"]);
    let mut replaced = holding(told_in_order(), 7, 7, 0);
    replaced.replace(1, "60s");
    assert_eq!(replaced.detach(1), none());
}

#[test]
fn a_hold_that_has_ended_is_lost_and_not_detached() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.pass(Duration::from_secs(30));
    let ended = rig.detach(1);
    assert_eq!(ended[0], "lose 1: expired");
    assert!(!ended.contains(&"detached 1".to_owned()), "{ended:?}");
}

#[test]
fn an_adopted_lease_is_renewed_and_released_like_any_other() {
    let mut rig = adopting();
    let admitted = ["start renewal o1: 30000ms, asked 0ms ago", "admit 1: token 9, valid for 29698ms"];
    assert_eq!(rig.grant(9, 9), admitted);
    rig.pass(millis(10_000));
    rig.renewed(false);
    assert_eq!(rig.leave(1), ["stop renewal o1", "run #2: release o1"]);
    assert_eq!(rig.release(Ok(Released::Released)), ["ended 1: released"]);
    assert!(rig.station.is_idle());
}

#[test]
fn a_claim_of_unknown_outcome_is_repeated_with_the_same_two_owners() {
    let mut rig = adopting();
    for number in 2..5 {
        lost_reply(&mut rig);
        assert_eq!(rig.wake(), [CLAIM.replace("#1", &format!("#{number}"))]);
    }
    assert_eq!(rig.grant(9, 9)[1], "admit 1: token 9, valid for 29698ms");
    let unsure = ["stop renewal o1", "run #5: release o1, claim may be in flight"];
    assert_eq!(rig.leave(1), unsure, "an earlier claim may still arrive");
}

#[test]
fn a_ticket_that_is_over_is_an_error_of_its_own() {
    let mut rig = adopting();
    assert_eq!(rig.fail(ErrorKind::NotHeld, Effect::None), ["refuse 1: the ticket is over"]);
    assert!(rig.station.is_idle(), "nothing is left at the store");
    let mut rig = adopting();
    lost_reply(&mut rig);
    rig.wake();
    let over = ["refuse 1: the ticket is over", "run #3: release o1, claim may be in flight"];
    assert_eq!(rig.fail(ErrorKind::NotHeld, Effect::None), over);
}

#[test]
fn a_waiter_that_gives_up_leaves_nothing_at_the_store() {
    let release = "run #2: release o1, claim may be in flight";
    let mut rig = adopting();
    assert_eq!(rig.leave(1), none(), "the answer may come soon");
    assert_eq!(rig.wake(), [release]);
    assert_eq!(rig.grant(9, 9), none(), "the release ends it");
    let mut rig = adopting();
    assert_eq!(rig.cancel(1), ["refuse 1: cancelled"]);
    assert_eq!(rig.grant(9, 9), ["run #2: release o1"]);
    assert_eq!(adopting().feed(Input::Close), ["refuse 1: closed", release]);
    let mut rig = adopting();
    assert_eq!(rig.fail(ErrorKind::Unreachable, Effect::None), none());
    assert_eq!(rig.leave(1), none(), "no claim has reached it");
    assert!(rig.station.is_idle());
}

#[test]
fn a_wait_for_an_adoption_ends_in_time() {
    let impatient = |patience, max_requests| {
        let mut rig = rig();
        rig.adopt(Join { patience, max_requests, ..join(1) }, 8);
        rig
    };
    let failed = "refuse 1: error Unreachable, effect None";
    for mut rig in [impatient(Patience::Never, None), impatient(Patience::Forever, NonZeroU32::new(1))] {
        assert_eq!(rig.fail(ErrorKind::Unreachable, Effect::None), [failed]);
    }
    let patience = Patience::within(rig().now, millis(500));
    let end = rig().now + millis(500);
    let mut rig = impatient(patience, None);
    assert_eq!(rig.fail(ErrorKind::Unreachable, Effect::None), none());
    while rig.now < end {
        let outputs = rig.wake();
        if rig.now >= end {
            assert_eq!(outputs, [failed]);
        } else {
            assert_eq!(rig.fail(ErrorKind::Unreachable, Effect::None), none());
        }
    }
    assert!(rig.station.is_idle());
}

#[test]
fn a_token_that_is_not_above_that_of_the_ticket_is_refused() {
    let mut rig = adopting();
    let forgotten = ["refuse 1: the store forgot, token 8 after 8", "run #2: release o1"];
    assert_eq!(rig.grant(8, 8), forgotten);
}

#[test]
fn a_grant_that_comes_late_is_asked_for_again() {
    let mut rig = adopting();
    rig.pass(millis(25_000));
    assert_eq!(rig.grant(9, 9), none());
    assert_eq!(rig.wake(), [CLAIM.replace("#1", "#2")]);
    assert_eq!(rig.grant(9, 9)[1], "admit 1: token 9, valid for 29698ms");
}

/// Not a waiter of this client may be between the detached turn and the adopted one, nor lose its place.
#[test]
fn those_who_wait_keep_their_places_beside_an_adopted_lease() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    rig.adopt(join(2), 8);
    assert_eq!(rig.grant(9, 9), ["start renewal o2: 30000ms, asked 0ms ago", "admit 2: token 9, valid for 29698ms"]);
    let refreshed = rig.wake();
    assert_eq!(refreshed, ["run #3: acquire o1"]);
    rig.queue();
    let left = rig.leave(2);
    assert_eq!(left, ["stop renewal o2", "run #4: release o2"], "it is not passed on here");
    rig.about(3);
    assert_eq!(rig.hand_over(10, 10)[1], "admit 1: token 10, valid for 9898ms");
}

#[test]
fn readers_beside_an_adopted_lease_share_another_one() {
    let mut rig = rig();
    readers(&mut rig);
    rig.grant(9, 9);
    let asks = "run #2: acquire o2, shared, above 9";
    assert_eq!(rig.read(2), [asks]);
    assert_eq!(rig.grant(10, 10)[1], "admit 2: token 10, valid for 29698ms");
    assert_eq!(rig.read(3), ["admit 3: token 10, valid for 29698ms"]);
    assert_eq!(rig.leave(1), ["stop renewal o1", "run #3: release o1"]);
    assert_eq!(rig.leave(2), ["ended 2: released"]);
    assert_eq!(rig.leave(3), ["stop renewal o2", "run #4: release o2"]);
}

/// The claims of both are at the store at the same time, so their answers may overtake each other.
#[test]
fn the_answers_to_a_reader_and_to_one_that_adopts_may_come_in_any_order() {
    let mut rig = rig();
    rig.read(2);
    rig.adopt(reader(1), 7);
    rig.grant(9, 9);
    assert_eq!(rig.about(1).grant(8, 8)[1], "admit 2: token 8, valid for 29698ms");
}

#[test]
fn an_adopted_lease_that_is_exclusive_ends_what_was_held_here() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.adopt(join(5), 7);
    let adopted = rig.grant(9, 9);
    assert_eq!(adopted[0], "lose 1: not held");
    assert!(adopted.contains(&"admit 5: token 9, valid for 29698ms".to_owned()), "{adopted:?}");
}

/// The store lost what it knew, or an operator ended the lease: a turn that is passed on must not have a token below the reader's.
#[test]
fn an_adopted_lease_of_a_reader_ends_an_older_exclusive_one() {
    let mut rig = holding(told_in_order(), 7, 8, 1);
    rig.adopt(reader(5), 8);
    let adopted = rig.grant(9, 9);
    assert_eq!(adopted[0], "lose 1: not held");
    assert!(adopted.contains(&"admit 5: token 9, valid for 29698ms".to_owned()), "{adopted:?}");
}

/// The store replaces a lease by an exclusive one only if it has no other.
#[test]
fn a_reader_that_goes_on_as_a_writer_ends_what_the_store_no_longer_has() {
    for (writer, reader_left) in [(1, 2), (2, 1)] {
        let mut rig = rig();
        readers(&mut rig);
        rig.grant(9, 9);
        rig.read(2);
        rig.grant(10, 10);
        rig.upgrade(writer);
        let upgraded = rig.grant(11, 11);
        assert!(upgraded.contains(&format!("lose {reader_left}: not held")), "{upgraded:?}");
        assert!(upgraded.contains(&format!("replaced {writer}: token 11, valid for 29698ms")), "{upgraded:?}");
    }
}

#[test]
fn a_writer_that_was_adopted_can_go_on_as_a_reader_and_back() {
    let mut rig = adopting();
    rig.grant(9, 9);
    rig.join(2);
    rig.queue();
    rig.downgrade(1);
    assert_eq!(rig.grant(10, 10)[2], "replaced 1: token 10, valid for 29698ms");
    rig.upgrade(1);
    let back = rig.grant(11, 11);
    assert_eq!(back[2], "replaced 1: token 11, valid for 29698ms");
    assert_eq!(back.len(), 3, "the waiter keeps its place: {back:?}");
}

#[test]
fn an_error_of_an_adoption_concerns_nobody_else() {
    let mut rig = rig();
    rig.feed(Input::Join(Join { patience: Patience::Never, ..join(1) }));
    rig.adopt(Join { patience: Patience::Never, ..join(2) }, 8);
    assert_eq!(rig.about(2).fail(ErrorKind::Unreachable, Effect::None), ["refuse 2: error Unreachable, effect None"]);
    assert_eq!(rig.about(1).grant(9, 9)[1], "admit 1: token 9, valid for 29698ms");
}

/// Permits that ended count for the same bound, and none of their releases is answered.
#[test]
fn an_adoption_that_releases_hold_back_ends_when_they_fail() {
    let mut rig = Rig::with_mode(all_modes(), Mode::permits(1, 40).unwrap());
    for turn in 1..=20 {
        rig.join(turn);
        rig.grant_slots(u64::from(turn), [u32::from(turn)]);
    }
    (1..=20).for_each(|turn| _ = rig.leave(turn));
    assert_eq!(rig.adopt(Join { patience: Patience::Never, ..join(21) }, 8), none());
    let told = rig.release(Err(error(ErrorKind::Unreachable, Effect::None)));
    assert!(told.contains(&"refuse 21: error Unreachable, effect None".to_owned()), "{told:?}");
}

#[test]
fn grants_that_come_too_late_count_as_answers_to_an_adoption() {
    let mut rig = rig();
    rig.adopt(Join { max_requests: NonZeroU32::new(2), ..join(1) }, 8);
    let late = |rig: &mut Rig| {
        rig.pass(millis(1));
        let lease = rig.lease(9, 9);
        rig.answer(Ok(crate::Answer::Granted { lease, valid_for: millis(4), wanted: false }))
    };
    assert_eq!(late(&mut rig), none());
    rig.wake();
    assert_eq!(late(&mut rig)[0], "refuse 1: error Timeout, effect Unknown");
}

/// The reader becomes the writer, so nobody else here has a place in the queue, but the ticket is of another lease.
#[test]
fn an_upgrade_ends_no_adoption() {
    let mut rig = rig();
    rig.read(1);
    rig.grant(9, 9);
    rig.adopt(join(2), 8);
    lost_reply(&mut rig);
    rig.upgrade(1);
    rig.grant(10, 10);
    assert!(rig.state().contains("Adopting for 2"), "{}", rig.state());
}

#[test]
fn permits_are_adopted_beside_others() {
    let mut rig = Rig::with_mode(all_modes(), Mode::permits(1, 4).unwrap());
    rig.join(2);
    rig.grant_slots(9, [1]);
    rig.adopt(join(1), 9);
    assert_eq!(rig.grant_slots(10, [0])[1], "admit 1: token 10, valid for 29698ms");
    assert_eq!(rig.detach(2), ["stop renewal o1", "detached 2"]);
    assert_eq!(rig.leave(1), ["stop renewal o2", "run #3: release o2"]);
}

#[test]
fn nothing_is_sent_to_a_store_that_cannot_replace_leases() {
    let mut policy = told_in_order();
    policy.store.abilities = &[];
    let mut rig = Rig::new(policy);
    assert_eq!(rig.adopt(join(1), 8), ["refuse 1: error Unsupported, effect None"]);
}

/// Each claim may end in a release, so no more than nineteen are sent before those are answered.
#[test]
fn claims_to_adopt_wait_for_many_releases() {
    let mut rig = rig();
    for turn in 1..=19 {
        assert_eq!(rig.adopt(join(turn), 8).len(), 1);
        rig.leave(turn);
    }
    assert_eq!(rig.adopt(join(20), 8), none());
    assert_eq!(rig.wake().len(), 19, "they are released");
    let sent = rig.release(Err(error(ErrorKind::Denied, Effect::None)));
    assert_eq!(sent.len(), 1, "{sent:?}");
}

/// An adopted lease belongs to its turn alone: one that is detached again must not have other readers under it.
#[test]
fn a_reader_that_passes_others_does_not_join_an_adopted_lease() {
    let mut rig = rig();
    readers(&mut rig);
    rig.grant(9, 9);
    rig.read(2);
    rig.grant(10, 10);
    let passing = Join { fairness: Fairness::Barging, ..reader(3) };
    assert_eq!(rig.feed(Input::Join(passing)), ["admit 3: token 10, valid for 29698ms"]);
    assert_eq!(rig.detach(1), ["stop renewal o1", "detached 1"]);
}

/// Each may end in two releases, which are owed beside those of other leases.
#[test]
fn adopted_leases_that_are_being_replaced_are_all_released() {
    let mut rig = rig();
    for turn in 1..=5 {
        rig.adopt(reader(turn), 8);
        let token = 8 + u64::from(turn);
        rig.grant(token, token);
    }
    for turn in 1..=5 {
        assert_eq!(rig.upgrade(turn).len(), 1);
    }
    for turn in 1..=5 {
        assert_eq!(rig.leave(turn).len(), 3, "one is forgotten, both are released");
    }
}

/// The lease of the first claim was revoked before the other one was granted elsewhere, detached and adopted here.
#[test]
fn a_grant_that_is_older_than_the_adopted_lease_is_over() {
    let mut rig = rig();
    rig.join(2);
    rig.adopt(join(1), 9);
    rig.grant(10, 10);
    let released = "run #3: release o1";
    let asks = "run #4: acquire o3, above 10";
    assert_eq!(rig.about(1).grant(8, 8), [released, asks]);
    assert_eq!(rig.hold().ended(rig.now), None);
}

/// An operator revoked the writer's lease, and a reader's later one was adopted, before the grant to the writer came.
#[test]
fn a_writer_whose_lease_is_over_when_its_grant_comes_is_lost() {
    let mut rig = rig();
    rig.read(1);
    rig.grant(9, 9);
    rig.upgrade(1);
    rig.adopt(reader(2), 11);
    rig.grant(12, 12);
    let outputs = rig.about(2).grant(10, 10);
    let releases = ["#4: release o1", "#5: release o2"].map(|what| format!("run {what}, claim may be in flight"));
    assert_eq!(outputs, [&["lose 1: not held".to_owned(), "stop renewal o1".to_owned()], &releases[..]].concat());
    assert_eq!(rig.hold().ended(rig.now), None, "the reader goes on");
}

/// The lease that was adopted first was revoked, and the other one granted, before its own grant came.
#[test]
fn an_adopted_lease_that_is_over_when_its_grant_comes_ends_nothing() {
    let over = ["refuse 1: the ticket is over", "run #3: release o1"];
    for first in [join(1), reader(1)] {
        let mut adopted = rig();
        adopted.adopt(first.clone(), 8);
        adopted.adopt(join(2), 10);
        adopted.grant(11, 11);
        assert_eq!(adopted.about(1).grant(9, 9), over);
        let mut asked = rig();
        asked.adopt(first, 8);
        asked.join(2);
        asked.grant(11, 12);
        assert_eq!(asked.about(1).grant(9, 9), over);
        assert_eq!((adopted.hold().ended(adopted.now), asked.hold().ended(asked.now)), (None, None));
    }
}

/// A reader's lease was revoked before the writer's was granted elsewhere, detached and adopted here.
#[test]
fn a_reader_whose_lease_is_over_does_not_begin_beside_an_adopted_writer() {
    let mut rig = rig();
    rig.read(2);
    rig.adopt(join(1), 9);
    rig.grant(10, 10);
    let outputs = rig.about(1).grant(8, 8);
    assert_eq!(outputs[0], "run #3: release o1");
    assert!(outputs[1].starts_with("run #4: acquire o3, shared"), "{outputs:?}");
}

/// The first claim may have been granted before the other permit was.
#[test]
fn a_repeated_claim_is_compared_with_the_floor_of_the_first() {
    let mut rig = Rig::with_mode(all_modes(), Mode::permits(1, 4).unwrap());
    rig.adopt(join(1), 8);
    lost_reply(&mut rig);
    rig.join(2);
    assert_eq!(rig.grant_slots(20, [1])[1], "admit 2: token 20, valid for 29698ms");
    let again = rig.wake();
    assert!(again[0].contains("acquire o1 in place of t") && again[0].contains("above 8"), "{again:?}");
    assert_eq!(rig.grant_slots(9, [0])[1][..17], *"admit 1: token 9,");
}

/// The adopted lease came later, so the store has forgotten one of the two.
#[test]
fn a_grant_with_the_token_of_a_lease_that_was_adopted_meanwhile_is_given_back() {
    let mut rig = rig();
    rig.join(1);
    rig.adopt(join(2), 4);
    assert_eq!(rig.grant(5, 5)[1], "admit 2: token 5, valid for 29698ms");
    let given_back = rig.about(1).grant(5, 5);
    assert!(given_back.iter().any(|output| output.contains("release o1")), "{given_back:?}");
    assert!(!given_back.iter().any(|output| output.contains("admit 1")), "{given_back:?}");
}
