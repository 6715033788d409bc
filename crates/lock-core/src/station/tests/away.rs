//! Waiters that give up while the store is away.

use super::super::refusing::away;
use super::super::{Input, Join};
use super::rig::{Rig, error, holding, join, millis, none, told_in_order};
use crate::{Effect, ErrorKind, Mode, OnUnavailable, Patience, Policy, Renewed, Waiting};

fn failing(turn: u8) -> Join {
    Join { on_unavailable: OnUnavailable::Fail, ..join(turn) }
}

/// A rig with these waiters, whose first claim is in flight.
fn asking(policy: Policy, waiters: &[Join]) -> Rig {
    let mut rig = waiters.first().map_or_else(|| Rig::new(policy), |first| Rig::with_mode(policy, first.terms.mode));
    waiters.iter().for_each(|waiter| _ = rig.feed(Input::Join(waiter.clone())));
    rig
}

/// The claims fail until this much time has passed. Which waiters were refused by then, in order.
fn refused_within(rig: &mut Rig, time: u64) -> Vec<String> {
    let (end, mut refused) = (rig.now + millis(time), Vec::new());
    loop {
        refused.extend(rig.fail(ErrorKind::Unreachable, Effect::None));
        if rig.station.next_wake().is_none_or(|wake| wake > end) {
            refused.retain(|output| output.starts_with("refuse"));
            rig.now = end;
            return refused;
        }
        refused.extend(rig.wake());
    }
}

const REFUSED: &str = "refuse 2: error Unreachable, effect None";

#[test]
fn only_a_waiter_that_is_to_fail_gives_up_and_not_before_an_operation_timeout() {
    for waiting in [Waiting::QueueWithPush, Waiting::Queue, Waiting::Poll] {
        let mut policy = told_in_order();
        policy.store.waiting = waiting;
        let mut rig = asking(policy, &[join(1), failing(2), join(3)]);
        assert_eq!(refused_within(&mut rig, 999), none(), "a second is the operation timeout");
        rig.wake();
        assert_eq!(refused_within(&mut rig, 1_001), [REFUSED]);
        assert_eq!(refused_within(&mut rig, 60_000), none(), "the others wait");
        rig.wake();
        assert!(rig.grant(7, 9).iter().any(|output| output.starts_with("admit 1: token 7")));
    }
}

#[test]
fn the_time_counts_from_the_first_failure_since_the_store_answered_and_from_the_join() {
    let mut rig = asking(told_in_order(), &[join(1), failing(2)]);
    assert_eq!(refused_within(&mut rig, 900), none());
    rig.wake();
    rig.queue();
    rig.wake();
    assert_eq!(refused_within(&mut rig, 900), none(), "the store has answered in between");
    rig.feed(Input::Join(failing(3)));
    rig.wake();
    assert_eq!(refused_within(&mut rig, 900), [REFUSED]);
    rig.wake();
    assert_eq!(refused_within(&mut rig, 1_000), [REFUSED.replace('2', "3")], "it came later");
}

#[test]
fn a_store_that_answers_is_waited_for_and_so_are_other_holders() {
    let mut rig = asking(told_in_order(), &[failing(1)]);
    for _ in 0..10 {
        assert_eq!(rig.queue(), none());
        rig.pass(millis(5_000));
        rig.wake();
    }
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.feed(Input::Join(failing(2)));
    rig.pass(millis(20_000));
    let failed = error(ErrorKind::Unreachable, Effect::None);
    assert_eq!(rig.renewal(rig.now, Err(failed.clone())), none(), "the lock is held here, and the store is not asked");
    assert_eq!(rig.renewal(rig.now, Ok(Renewed::Unsure(failed))), none());
}

#[test]
fn a_wait_that_ends_first_ends_as_usual_and_nobody_who_does_not_wait_waits_longer() {
    let mut rig = asking(told_in_order(), &[]);
    rig.feed(Input::Join(Join { patience: Patience::within(rig.now, millis(300)), ..failing(2) }));
    let refused = refused_within(&mut rig, 400);
    assert_eq!(refused, [REFUSED]);
    assert!(rig.station.is_idle(), "nobody is left to ask for");
    rig.feed(Input::Join(Join { patience: Patience::Never, ..failing(2) }));
    assert_eq!(refused_within(&mut rig, 0), [REFUSED]);
}

#[test]
fn the_error_of_a_waiter_that_gives_up_says_how_to_wait_for_the_store() {
    use crate::{BackendError, Operation};
    let down = BackendError::new("test", Operation::Acquire, ErrorKind::Unreachable, Effect::None, "refused");
    let wait = "to wait until the store is back, set `on_unavailable(OnUnavailable::Wait)`";
    assert_eq!(away(&down).to_string(), format!("test acquire: refused; {wait}"));
    let down = down.with_remedy("start it");
    assert_eq!(away(&down).to_string(), format!("test acquire: refused; start it; {wait}"));
}

#[test]
fn an_adoption_gives_up_like_a_waiter() {
    for (on_unavailable, gives_up) in [(OnUnavailable::Wait, false), (OnUnavailable::Fail, true)] {
        let mut rig = asking(told_in_order(), &[]);
        rig.adopt(Join { on_unavailable, ..join(2) }, 8);
        assert_eq!(refused_within(&mut rig, 900), none());
        rig.wake();
        assert_eq!(refused_within(&mut rig, 2_000) == [REFUSED], gives_up, "{on_unavailable:?}");
    }
}

#[test]
fn a_reader_and_a_request_for_permits_give_up_as_well() {
    let shared = Join { terms: crate::Terms { mode: Mode::Shared, ..join(2).terms }, ..failing(2) };
    let permits = Join { terms: crate::Terms { mode: Mode::permits(1, 4).unwrap(), ..join(2).terms }, ..failing(2) };
    for join in [shared, permits] {
        let mut rig = asking(super::rig::all_modes(), &[join]);
        assert_eq!(refused_within(&mut rig, 900), none());
        rig.wake();
        assert_eq!(refused_within(&mut rig, 2_000), [REFUSED]);
    }
}
