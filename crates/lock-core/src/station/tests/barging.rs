//! Waiters that may be served before earlier ones.

use std::time::Duration;

use super::super::{Input, Join};
use super::rig::{Rig, all_modes, join, millis, none, reader, rig};
use crate::{Answer, Fairness, Mode, Patience, Released, RequestOrder, Terms, Waiting};

const LIMIT: u32 = 40;

fn barging(join: Join) -> Join {
    Join { fairness: Fairness::Barging, ..join }
}

fn permits(turn: u8, count: u32) -> Join {
    Join { terms: Terms { mode: Mode::permits(count, LIMIT).unwrap(), ..join(turn).terms }, ..join(turn) }
}

fn enter(rig: &mut Rig, join: Join) -> Vec<String> {
    rig.feed(Input::Join(join))
}

/// `o1` reads under token 7, in turn 1.
fn reading() -> Rig {
    let mut rig = rig();
    rig.read(1);
    rig.grant(7, 7);
    rig
}

/// Grants the latest claim while others wait.
fn grant_past_others(rig: &mut Rig, token: u64) -> Vec<String> {
    let (lease, valid_for) = (rig.lease(token, token), Duration::from_secs(30));
    rig.answer(Ok(Answer::Granted { lease, valid_for, wanted: true }))
}

#[test]
fn a_reader_joins_the_lease_of_this_client_whoever_waits() {
    let mut rig = reading();
    rig.want();
    rig.pass(millis(50));
    assert_eq!(enter(&mut rig, barging(reader(2))), ["admit 2: token 7, valid for 29648ms"]);
    rig.join(3);
    rig.queue_after(8);
    assert_eq!(rig.read(4), none(), "a fair one waits behind the writer");
    let at_once = Join { patience: Patience::Never, ..barging(reader(5)) };
    assert_eq!(enter(&mut rig, at_once), ["admit 5: token 7, valid for 29648ms"]);
}

/// An adopted lease is for one turn: with a reader more under it, it could be neither upgraded nor detached.
#[test]
fn a_reader_never_joins_an_adopted_lease() {
    let mut rig = rig();
    rig.adopt(reader(1), 8);
    rig.grant(9, 9);
    rig.read(2);
    rig.grant(10, 10);
    rig.want();
    assert_eq!(enter(&mut rig, barging(reader(3))), ["admit 3: token 10, valid for 29698ms"]);
    assert_eq!(rig.detach(1), ["stop renewal o1", "detached 1"]);
    let mut rig = reading();
    rig.adopt(reader(2), 8);
    rig.grant(9, 9);
    rig.upgrade(1);
    assert_eq!(enter(&mut rig, barging(reader(3))), none(), "the only lease it may join is being replaced");
}

#[test]
fn a_reader_waits_until_it_is_known_whether_the_lease_becomes_exclusive() {
    let mut rig = reading();
    rig.upgrade(1);
    assert_eq!(enter(&mut rig, barging(reader(2))), none());
    assert_eq!(rig.be_busy()[1..], ["admit 2: token 7, valid for 29698ms"]);
}

#[test]
fn a_grant_past_others_is_only_for_those_who_may_pass_them() {
    let mut rig = rig();
    let claim = "run #1: acquire o1, shared, barging";
    assert_eq!(enter(&mut rig, barging(reader(1))), [claim]);
    rig.read(2);
    enter(&mut rig, barging(reader(3)));
    let granted = [
        "start renewal o1: 30000ms, asked 0ms ago",
        "admit 1: token 7, valid for 29698ms",
        "admit 3: token 7, valid for 29698ms",
        "run #2: acquire o2, shared, above 7",
    ];
    assert_eq!(grant_past_others(&mut rig, 7), granted);
    let mut rig = self::rig();
    enter(&mut rig, barging(reader(1)));
    rig.read(2);
    assert_eq!(rig.grant(7, 7)[2], "admit 2: token 7, valid for 29698ms", "nobody waits");
}

#[test]
fn a_waiter_that_wants_the_lock_alone_keeps_its_place_in_line() {
    let mut rig = rig();
    rig.join(1);
    rig.grant(7, 9);
    rig.join(2);
    assert_eq!(enter(&mut rig, barging(join(3))), none());
    assert_eq!(rig.leave(1)[1], "admit 2: token 8, valid for 29698ms");
}

fn semaphore(ordering: RequestOrder) -> Rig {
    let mut policy = all_modes();
    policy.store.ordering = ordering;
    Rig::with_mode(policy, Mode::permits(1, LIMIT).unwrap())
}

#[test]
fn a_request_for_permits_asks_past_those_who_have_no_place_yet() {
    let mut rig = semaphore(RequestOrder::Unordered);
    enter(&mut rig, permits(1, 3));
    assert_eq!(enter(&mut rig, permits(2, 1)), none(), "it might overtake the first one");
    let claim = "run #2: acquire o2, 1 of 40 permits, barging";
    assert_eq!(enter(&mut rig, barging(permits(3, 1))), [claim]);
    assert_eq!(rig.about(2).grant_slots(7, [0])[1], "admit 3: token 7, valid for 29698ms");
}

#[test]
fn a_grant_past_others_is_not_exchanged_with_a_fair_waiter_that_wants_the_same() {
    let mut rig = semaphore(RequestOrder::InOrder);
    enter(&mut rig, permits(1, 1));
    enter(&mut rig, barging(permits(2, 1)));
    enter(&mut rig, barging(permits(3, 1)));
    rig.about(1).queue_after(6);
    assert_eq!(rig.about(3).grant_slots(7, [0])[1], "admit 2: token 7, valid for 29698ms", "these two may");
    assert_eq!(rig.about(2).grant_slots(8, [1])[1], "admit 3: token 8, valid for 29698ms");
    assert!(rig.state().contains("Waiting in the queue for 1"), "{}", rig.state());
}

/// This many wait for a permit in the store's queue, behind turn 1, which holds three.
fn waiting_untold(waiters: u8, ordering: RequestOrder) -> Rig {
    let mut policy = all_modes();
    (policy.store.waiting, policy.store.ordering) = (Waiting::Queue, ordering);
    let mut rig = Rig::with_mode(policy, Mode::permits(1, LIMIT).unwrap());
    enter(&mut rig, permits(1, 3));
    rig.grant_slots(7, [0, 1, 2]);
    for turn in 2..waiters + 2 {
        enter(&mut rig, permits(turn, 1));
        rig.queue_after(9);
    }
    rig
}

fn claims(outputs: &[String]) -> usize {
    outputs.iter().filter(|output| output.contains("acquire")).count()
}

#[test]
fn after_a_release_at_a_store_that_tells_nobody_one_waiter_after_the_other_asks_while_they_are_served() {
    let mut rig = waiting_untold(10, RequestOrder::InOrder);
    let (mut asked, mut served) = (claims(&rig.leave(1)), 0);
    assert_eq!(asked, 1, "the first one");
    while served < 3 {
        let next = rig.grant_slots(10 + served, [u32::try_from(served).unwrap()]);
        assert!(next.iter().any(|output| output.starts_with(&format!("admit {}:", served + 2))), "{next:?}");
        (asked, served) = (asked + claims(&next), served + 1);
    }
    assert_eq!(claims(&rig.queue_after(12)), 0, "nothing is left for the one that asked last");
    assert_eq!(asked, 4);
    rig.release(Ok(Released::Released));
    let mut rig = waiting_untold(10, RequestOrder::Unordered);
    assert_eq!(claims(&rig.leave(1)), 10, "any of them may be the first at the store");
}
