//! Readers of one lease, the store's answers about waiters elsewhere, and what happens when they race.

use std::time::Duration;

use super::super::{Input, Join};
use super::rig::{Rig, error, join, millis, none, reader, rig, somebody, told_in_order, ttl};
use crate::{Answer, Effect, ErrorKind, Mode, Patience, Released, Renewed, StoreEvent, Terms, Waiting};

/// `o1` reads under token 7, in turn 1, and the store has just said that nobody waits.
fn reading() -> Rig {
    let mut rig = rig();
    assert_eq!(rig.read(1), ["run #1: acquire o1, shared"]);
    rig.grant(7, 7);
    rig
}

fn impatient(reader: Join) -> Input {
    Input::Join(Join { patience: Patience::Never, ..reader })
}

/// The same a while later, and another reader has come.
fn refreshing() -> Rig {
    let mut rig = reading();
    rig.pass(millis(20));
    assert_eq!(rig.read(2), ["renew o1"]);
    rig
}

fn busy(rig: &mut Rig) -> Vec<String> {
    rig.answer(Ok(Answer::Busy { remaining: None, holder: somebody(9, 9), drawn: None }))
}

#[test]
fn readers_share_a_lease_and_the_last_one_releases_it() {
    let mut rig = reading();
    rig.pass(millis(19));
    assert_eq!(rig.read(2), ["admit 2: token 7, valid for 29679ms"]);
    assert_eq!(rig.leave(1), ["ended 1: released"]);
    assert_eq!(rig.leave(2), ["stop renewal o1", "run #2: release o1"]);
    assert_eq!(rig.release(Ok(Released::Released)), ["ended 2: released"]);
    assert!(rig.station.is_idle());
}

#[test]
fn one_grant_is_for_all_readers_up_to_the_first_writer() {
    let mut rig = rig();
    rig.read(1);
    rig.feed(Input::Join(Join { terms: Terms { mode: Mode::Shared, ttl: ttl("10m") }, ..reader(2) }));
    rig.join(3);
    rig.read(4);
    let granted = [
        "start renewal o1: 30000ms, asked 0ms ago",
        "admit 1: token 7, valid for 29698ms",
        "admit 2: token 7, valid for 29698ms",
        "run #2: acquire o2, above 7",
    ];
    assert_eq!(rig.grant(7, 7), granted);
}

#[test]
fn an_old_answer_is_refreshed_once_for_all_readers() {
    let mut rig = refreshing();
    assert_eq!(rig.read(3), none());
    rig.pass(millis(1));
    let admitted = ["admit 2: token 7, valid for 29698ms", "admit 3: token 7, valid for 29698ms"];
    assert_eq!(rig.renewed(false), admitted);
    rig.pass(millis(19));
    assert_eq!(rig.read(4), ["admit 4: token 7, valid for 29679ms"]);
    rig.pass(millis(1));
    assert_eq!(rig.read(5), ["renew o1"]);
}

/// The answer is older than 20 ms when it arrives. It still counts for readers that had come before it was asked for.
#[test]
fn a_slow_answer_admits_those_who_had_come_before() {
    let mut rig = refreshing();
    let asked_at = rig.now;
    rig.pass(millis(50));
    assert_eq!(rig.read(3), none());
    let renewed = Renewed::Renewed { valid_for: Duration::from_secs(30), wanted: false };
    let admitted = ["admit 2: token 7, valid for 29648ms", "renew o1"];
    assert_eq!(rig.renewal(asked_at, Ok(renewed)), admitted);
}

/// A renewal that was sent before it was asked for says nothing to later waiters.
#[test]
fn an_answer_to_an_earlier_renewal_is_not_the_refresh() {
    let mut rig = refreshing();
    let renewed = Renewed::Renewed { valid_for: Duration::from_secs(30), wanted: false };
    let before = crate::Moment::from_nanos(rig.now.as_nanos() - 20_000_000);
    assert_eq!(rig.renewal(before, Ok(renewed)), none());
    assert_eq!(rig.read(3), none(), "the one that was asked for is still to come");
    assert_eq!(rig.renewed(false).len(), 2);
}

#[test]
fn if_others_wait_readers_ask_for_a_lease_behind_them() {
    let mut rig = refreshing();
    rig.feed(impatient(reader(3)));
    let wanted = ["refuse 3: busy, held under token 7", "run #2: acquire o2, shared, above 7"];
    assert_eq!(rig.renewed(true), wanted);
    assert_eq!(rig.queue_after(8), none());
    rig.pass(millis(50));
    assert_eq!(rig.read(4), none(), "it has a place there already");
    assert_eq!(rig.leave(1), ["stop renewal o1", "run #3: release o1"]);
    let admitted = [
        "start renewal o2: 10000ms, asked 50ms ago",
        "admit 2: token 9, valid for 9848ms",
        "admit 4: token 9, valid for 9848ms",
    ];
    assert_eq!(rig.hand_over(9, 9), admitted);
}

#[test]
fn while_a_reader_has_a_place_only_readers_that_do_not_wait_refresh() {
    let mut rig = reading();
    rig.want();
    rig.read(2);
    rig.queue_after(8);
    rig.pass(millis(50));
    rig.read(3);
    assert_eq!(rig.leave(2), none(), "the place is for the next reader now");
    let mut rig = reading();
    rig.want();
    rig.read(2);
    rig.leave(2);
    rig.pass(millis(50));
    assert_eq!(rig.feed(impatient(reader(3))), ["renew o1"], "the claim in flight is for nobody else");
}

/// The writer before them has given up, so the lease that is held is still good.
#[test]
fn readers_whose_turn_comes_early_join_the_lease_that_is_held() {
    let mut rig = reading();
    rig.want();
    rig.read(2);
    rig.queue_after(8);
    rig.read(3);
    let joined = ["run #3: release o2", "admit 2: token 7, valid for 29698ms", "admit 3: token 7, valid for 29698ms"];
    assert_eq!(rig.hand_over(9, 9), joined);
    assert_eq!(rig.read(4), ["admit 4: token 7, valid for 29698ms"], "the grant said that nobody waits");
    assert_eq!(rig.leave(1), ["ended 1: released"]);
}

#[test]
fn a_writer_asks_beside_the_readers_and_is_not_passed() {
    let mut rig = reading();
    assert_eq!(rig.join(2), ["run #2: acquire o2, above 7"]);
    rig.queue_after(8);
    assert_eq!(rig.read(3), none());
    assert_eq!(rig.feed(impatient(reader(4))), ["refuse 4: busy, held under token 7"]);
    assert_eq!(rig.leave(1), ["stop renewal o1", "run #3: release o1"]);
    assert_eq!(rig.hand_over(9, 9)[1], "admit 2: token 9, valid for 9898ms");
    let next = ["stop renewal o2", "run #4: release o2", "run #5: acquire o3, shared, above 9"];
    assert_eq!(rig.leave(2), next);
}

#[test]
fn readers_behind_a_writer_that_gives_up_join() {
    let mut rig = reading();
    rig.join(2);
    rig.queue_after(8);
    rig.read(3);
    let left = ["admit 3: token 7, valid for 29698ms", "run #3: release o2"];
    assert_eq!(rig.leave(2), left);
}

#[test]
fn a_reader_behind_a_writer_that_does_not_wait_joins() {
    let mut rig = refreshing();
    rig.feed(impatient(join(3)));
    rig.read(4);
    let told = ["admit 2: token 7, valid for 29698ms", "refuse 3: busy, held under token 7"];
    assert_eq!(rig.renewed(false)[..2], told);
    rig.leave(4);
    assert_eq!(rig.feed(impatient(join(5))), ["refuse 5: busy, held under token 7"]);
}

/// Where the store does not report the hand-over, a writer behind the readers of its own process asks once they are done.
#[test]
fn a_writer_asks_when_the_readers_here_are_done_if_the_store_does_not_tell_it() {
    let mut policy = told_in_order();
    policy.store.waiting = Waiting::Queue;
    let mut rig = Rig::new(policy);
    rig.read(1);
    rig.grant(7, 7);
    rig.join(2);
    rig.queue_after(8);
    let released = ["stop renewal o1", "run #3: release o1", "run #4: acquire o2, above 7"];
    assert_eq!(rig.leave(1), released);
}

#[test]
fn the_last_reader_releases_although_others_wait_for_a_refresh() {
    let mut rig = refreshing();
    let next = ["stop renewal o1", "run #2: release o1", "run #3: acquire o2, shared, above 7"];
    assert_eq!(rig.leave(1), next);
    let admitted = ["start renewal o2: 30000ms, asked 0ms ago", "admit 2: token 8, valid for 29698ms"];
    assert_eq!(rig.grant(8, 8), admitted);
}

#[test]
fn the_answer_for_the_lease_before_admits_nobody() {
    let mut rig = refreshing();
    let before = rig.owner();
    rig.leave(1);
    let answer = Ok(Renewed::Renewed { valid_for: Duration::from_secs(30), wanted: false });
    assert_eq!(rig.feed(Input::Renewal { owner: before, asked_at: rig.now, answer }), none());
}

#[test]
fn a_writer_elsewhere_that_comes_during_a_refresh_is_not_passed() {
    let mut rig = refreshing();
    rig.pass(millis(1));
    let asked = ["run #2: acquire o2, shared, above 7"];
    assert_eq!(rig.want(), asked);
    let renewed = Renewed::Renewed { valid_for: Duration::from_secs(30), wanted: false };
    let before = crate::Moment::from_nanos(rig.now.as_nanos() - 1_000_000);
    assert_eq!(rig.renewal(before, Ok(renewed)), none(), "it is older than the event");
}

#[test]
fn a_lease_that_is_lost_while_readers_wait_for_a_refresh_is_asked_for_again() {
    let mut rig = refreshing();
    let lost = ["lose 1: not held", "stop renewal o1", "run #2: release o1", "run #3: acquire o2, shared, above 7"];
    assert_eq!(rig.renewal(rig.now, Ok(Renewed::NotHeld)), lost);
}

/// The keeper tries again by itself.
#[test]
fn a_refresh_that_fails_is_reported_as_the_failure_of_the_store() {
    let failed = error(ErrorKind::Unreachable, Effect::None);
    for answer in [Err(failed.clone()), Ok(Renewed::Unsure(failed))] {
        let mut rig = refreshing();
        assert_eq!(rig.feed(impatient(reader(3))), none());
        assert_eq!(rig.renewal(rig.now, answer), ["refuse 3: error Unreachable, effect None"]);
        assert_eq!(rig.station.last_error().map(crate::BackendError::kind), Some(ErrorKind::Unreachable));
    }
    let mut rig = reading();
    rig.pass(millis(20));
    rig.feed(Input::Join(Join { patience: Patience::within(rig.now, millis(5)), ..reader(2) }));
    assert_eq!(rig.wake(), ["refuse 2: error Timeout, effect Unknown"], "the store has said nothing");
}

#[test]
fn each_reader_has_its_own_max_hold_and_a_lost_lease_ends_all_turns() {
    let mut rig = reading();
    rig.feed(Input::Join(Join { max_hold: Some(millis(100)), ..reader(2) }));
    rig.read(3);
    assert_eq!(rig.wake(), ["lose 2: max_hold"]);
    let lost = ["lose 1: not held", "lose 3: not held", "stop renewal o1"];
    assert_eq!(rig.renewal(rig.now, Ok(Renewed::NotHeld))[..3], lost);
}

/// The store has ended the readers' lease without telling them.
#[test]
fn an_exclusive_grant_ends_the_turns_of_readers_here() {
    let mut rig = reading();
    rig.join(2);
    let granted = [
        "lose 1: not held",
        "stop renewal o1",
        "run #3: release o1",
        "start renewal o2: 30000ms, asked 0ms ago",
        "admit 2: token 8, valid for 29698ms",
    ];
    assert_eq!(rig.grant(8, 8), granted);
}

#[test]
fn a_shared_lease_is_not_kept() {
    let mut rig = reading();
    assert_eq!(rig.leave_and_keep(1), ["stop renewal o1", "run #2: release o1"]);
}

#[test]
fn a_writer_goes_on_as_a_reader_and_waiting_readers_join_it() {
    let mut rig = rig();
    rig.join(1);
    rig.grant(7, 7);
    rig.read(2);
    let claim = ["run #2: acquire o2 in place of o1, shared, above 7, no place"];
    assert_eq!(rig.downgrade(1), claim);
    let granted = [
        "stop renewal o1",
        "start renewal o2: 30000ms, asked 0ms ago",
        "replaced 1: token 8, valid for 29698ms",
        "admit 2: token 8, valid for 29698ms",
    ];
    assert_eq!(rig.grant(8, 8), granted);
}

/// Until the store has answered, it may have either lease. A reader that comes then waits for the outcome.
#[test]
fn nobody_joins_a_downgrade_of_unknown_outcome() {
    let mut rig = rig();
    rig.join(1);
    rig.grant(7, 7);
    rig.downgrade(1);
    assert_eq!(rig.fail(ErrorKind::Timeout, Effect::Unknown), none());
    assert_eq!(rig.read(2), none());
    assert_eq!(rig.feed(impatient(reader(3))), ["refuse 3: busy, held under token 7"]);
    assert_eq!(rig.renewal(rig.now, Ok(Renewed::NotHeld)), none());
    let again = ["run #3: acquire o2 in place of o1, shared, above 7, no place"];
    assert_eq!(rig.wake(), again);
    assert_eq!(rig.grant(8, 8)[3], "admit 2: token 8, valid for 29698ms");
}

#[test]
fn the_only_reader_goes_on_as_the_writer() {
    let mut rig = reading();
    let claim = ["run #2: acquire o2 in place of o1, above 7, no place"];
    assert_eq!(rig.upgrade(1), claim);
    assert_eq!(rig.read(2), none(), "the lease may be exclusive by now");
    let granted =
        ["stop renewal o1", "start renewal o2: 30000ms, asked 0ms ago", "replaced 1: token 8, valid for 29698ms"];
    assert_eq!(rig.grant(8, 8), granted);
    assert_eq!(rig.state(), "Held by 1 as o2, token 8, for 29698ms; queue: 2");
}

/// Another reader of this process was queued, as others waited, and they gave up.
#[test]
fn nobody_joins_an_upgrade_by_a_lease_that_is_granted_meanwhile() {
    let mut rig = reading();
    rig.want();
    rig.read(2);
    rig.queue_after(8);
    let lease = rig.lease(9, 9);
    rig.upgrade(1);
    let granted = StoreEvent::Granted { lease, valid_for: Duration::from_secs(10), wanted: false };
    assert_eq!(rig.feed(Input::Event(granted)), ["run #4: release o2"]);
    assert_eq!(busy(&mut rig), ["replaced 1: busy, held under token 9", "admit 2: token 7, valid for 29698ms"]);
}

#[test]
fn one_of_several_readers_here_cannot_go_on_as_the_writer() {
    let mut rig = reading();
    rig.read(2);
    assert_eq!(rig.upgrade(1), ["replaced 1: busy, held under token 7"]);
}

#[test]
fn a_refused_upgrade_leaves_the_reader_as_it_was_and_others_join() {
    let mut rig = reading();
    rig.upgrade(1);
    rig.read(2);
    assert_eq!(busy(&mut rig), ["replaced 1: busy, held under token 9", "admit 2: token 7, valid for 29698ms"]);
}

/// The claim that was not answered may still be granted, so a "busy" counts only once it can no longer arrive.
#[test]
fn an_upgrade_is_not_refused_while_an_unanswered_try_may_arrive() {
    let mut rig = reading();
    rig.upgrade(1);
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig.read(2);
    rig.wake();
    assert_eq!(busy(&mut rig), none());
    let asked = rig.now;
    let settled = loop {
        rig.renewed(false);
        rig.wake();
        let told = busy(&mut rig);
        if !told.is_empty() {
            break told;
        }
    };
    assert_eq!(settled[0], "replaced 1: busy, held under token 9");
    assert!(settled[1].starts_with("admit 2: token 7"), "{settled:?}");
    assert!(rig.now.since(asked) > Duration::from_secs(30), "for the ttl that the new lease would have had");
}

#[test]
fn a_waiting_writer_leaves_the_queue_when_a_reader_here_goes_on_as_the_writer() {
    let mut rig = reading();
    rig.join(2);
    rig.queue_after(8);
    rig.upgrade(1);
    let granted = rig.grant(8, 8);
    assert!(granted.contains(&"run #4: release o2".to_owned()), "{granted:?}");
    assert_eq!(rig.state(), "Held by 1 as o3, token 8, for 29698ms; queue: 2; releasing o2, #4");
}

#[test]
fn other_terms_of_a_shared_lease_are_invalid() {
    let mut rig = reading();
    let [refused] = &rig.downgrade(1)[..] else { panic!("only an answer") };
    assert!(refused.contains("mode \"shared\" is not valid"), "{refused}");
}

/// A reader may have joined a lease with a longer ttl than its own.
#[test]
fn the_ttl_of_another_mode_is_at_least_that_of_the_lease() {
    let mut rig = reading();
    assert_eq!(rig.replace(1, "10s"), ["run #2: acquire o2 in place of o1, above 7, no place"]);
}

/// The end of a lease and of the claims beside it may add three releases, and at most four are allowed.
#[test]
fn beside_readers_nothing_is_asked_while_three_releases_are_pending() {
    let mut rig = rig();
    for turn in 2..5 {
        rig.feed(impatient(join(turn)));
        rig.fail(ErrorKind::Timeout, Effect::Unknown);
    }
    rig.read(1);
    rig.grant(7, 7);
    assert_eq!(rig.join(5), none());
    let claim = rig.release(Err(error(ErrorKind::Denied, Effect::None)));
    assert_eq!(claim, ["run #8: acquire o5, above 7"]);
    rig.queue_after(8);
    assert_eq!(rig.upgrade(1), none());
}

#[test]
fn a_release_that_fails_does_not_reject_a_reader_that_waits_for_a_refresh() {
    let mut rig = rig();
    for turn in 2..5 {
        rig.feed(impatient(join(turn)));
        rig.fail(ErrorKind::Timeout, Effect::Unknown);
    }
    rig.read(1);
    rig.grant(7, 7);
    rig.pass(millis(20));
    assert_eq!(rig.feed(impatient(reader(6))), ["renew o4"]);
    assert_eq!(rig.release(Err(error(ErrorKind::Unreachable, Effect::None))), none());
    assert_eq!(rig.renewed(false), ["admit 6: token 7, valid for 29698ms"]);
}
