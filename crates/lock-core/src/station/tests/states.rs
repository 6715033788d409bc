//! The states of a station that the reviewed tables show.

use std::time::Duration;

use super::super::{Input, Join};
use super::rig::{Rig, all_modes, error, join, millis, reader, somebody, told_in_order, ttl};
use crate::{
    Answer, Effect, ErrorKind, Holder, Mode, Patience, Policy, Released, Renewed, RequestOrder, Terms, Waiting,
};

/// The waiter that asks first, and the one behind it.
pub(super) const FIRST: u8 = 1;
pub(super) const SECOND: u8 = 2;
/// The third waiter, in states that have one.
const NEXT: u8 = 4;
/// Tokens up to this one were handed out here before.
pub(super) const FLOOR: u64 = 9;

/// A way to drive a fresh station into a state.
pub(super) type Drive = fn() -> Rig;

/// Without a lease: idle, asking, waiting, closed.
pub(super) const ATTEMPT: &[(&str, Drive)] = &[
    ("idle", idle),
    ("idle, release in flight", || releasing(RequestOrder::InOrder)),
    ("idle, release in flight, store without order", || releasing(RequestOrder::Unordered)),
    ("idle, release of a lease failed once, store without order", release_failed),
    ("idle, release of an unanswered claim in flight, store without queue", || unanswered(Patience::Never)),
    ("idle, four releases owed", four_owed),
    ("asking", asking),
    ("asking, everybody left", asking_for_nobody),
    ("asking, the next waiter has another ttl", asking_for_another),
    ("asking again, the holder was foreign", asking_behind_foreign),
    ("asking again, after most of a place", asking_late),
    ("waiting outside", waiting_outside),
    ("waiting in the queue", waiting_in_queue),
    ("waiting in the queue, last claim timed out", waiting_after_timeout),
    ("waiting after an error", waiting_after_error),
    ("waiting outside, last claim timed out", waiting_after_silence),
    ("waiting outside, last claim timed out, store without queue", || unanswered(Patience::Forever)),
    ("closed", closed),
];

/// With a lease, and maybe a claim whose answer it overtook.
pub(super) const HELD: &[(&str, Drive)] = &[
    ("held", held),
    ("held, a waiter fits", || held_with(&[join(SECOND)])),
    ("held, a waiter has another ttl", || held_with(&[other_ttl(SECOND)])),
    ("held, a waiter has another ttl, one behind it fits", || held_with(&[other_ttl(SECOND), join(NEXT)])),
    ("held, passed on once, the tokens are used up", held_to_the_end),
    ("held by transfer", || held_by_transfer(ClaimThen::Answered)),
    ("held by transfer, claim in flight", || held_by_transfer(ClaimThen::InFlight)),
    ("held, a replacement is asked for", replacing),
    ("held, a replacement timed out", replacing_again),
    ("held, a replacement timed out, the old lease is not held", replacing_the_lost),
    ("held by transfer, claim in flight, a replacement is wanted", replacing_later),
];

/// With a lease that was adopted, or is about to be.
pub(super) const ADOPTED: &[(&str, Drive)] = &[
    ("adopting", || adopting(Mode::Exclusive)),
    ("adopting, the claim timed out, a waiter asks", || {
        let mut rig = adopting(Mode::Exclusive);
        rig.fail(ErrorKind::Timeout, Effect::Unknown);
        rig.join(SECOND);
        rig
    }),
    ("adopted, a waiter waits in the queue", || {
        let mut rig = adopted(Mode::Exclusive);
        rig.join(SECOND);
        rig.queue_after(10);
        rig
    }),
    ("adopted by a reader, another one asks", || {
        let mut rig = adopted(Mode::Shared);
        rig.read(SECOND);
        rig
    }),
];

fn adopting(mode: Mode) -> Rig {
    let mut rig = idle();
    let first = join(FIRST);
    rig.adopt(Join { terms: Terms { mode, ..first.terms }, ..first }, FLOOR);
    rig
}

fn adopted(mode: Mode) -> Rig {
    let mut rig = adopting(mode);
    rig.grant(10, 10);
    rig
}

/// With a lease that readers share, and maybe an attempt for waiters that cannot join it.
pub(super) const READING: &[(&str, Drive)] = &[
    ("read, fresh", || reading(&[])),
    ("read by two, stale", reading_for_long),
    ("read, stale and refreshing", || after_long(&[reader(SECOND)])),
    ("read, stale and refreshing, a writer is next", || after_long(&[reader(SECOND), join(NEXT)])),
    ("read, others wait, a reader asks", || wanted(&[reader(SECOND)])),
    ("read, others wait, a reader waits in the queue", || queued(wanted(&[reader(SECOND)]))),
    ("read, a writer asks", || reading(&[join(SECOND)])),
    ("read, a writer waits in the queue, a reader is next", || queued(reading(&[join(SECOND), reader(NEXT)]))),
    ("read, to be held alone is asked for, a reader waits", || upgrading(&[reader(SECOND)])),
    ("read, to be held alone timed out, a writer waits in the queue", upgrading_beside_writer),
    ("held, to be read timed out, a reader waits", downgrading),
];

/// One reader holds, and these have come after it.
fn reading(waiters: &[Join]) -> Rig {
    let mut rig = idle();
    rig.read(FIRST);
    rig.grant(10, 10);
    waiters.iter().for_each(|waiter| _ = rig.feed(Input::Join(waiter.clone())));
    rig
}

fn reading_for_long() -> Rig {
    let mut rig = reading(&[reader(NEXT)]);
    rig.pass(millis(30));
    rig
}

/// One reader has held for a while when these come.
fn after_long(waiters: &[Join]) -> Rig {
    let mut rig = reading(&[]);
    rig.pass(millis(30));
    waiters.iter().for_each(|waiter| _ = rig.feed(Input::Join(waiter.clone())));
    rig
}

/// One reader holds and others wait elsewhere when these come.
fn wanted(waiters: &[Join]) -> Rig {
    let mut rig = reading(&[]);
    rig.want();
    waiters.iter().for_each(|waiter| _ = rig.feed(Input::Join(waiter.clone())));
    rig
}

fn queued(mut rig: Rig) -> Rig {
    rig.queue_after(8);
    rig
}

/// A reader wants to be alone, and these have come after that.
fn upgrading(waiters: &[Join]) -> Rig {
    let mut rig = reading(&[]);
    rig.upgrade(FIRST);
    waiters.iter().for_each(|waiter| _ = rig.feed(Input::Join(waiter.clone())));
    rig
}

fn upgrading_beside_writer() -> Rig {
    let mut rig = queued(reading(&[join(SECOND)]));
    rig.upgrade(FIRST);
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig
}

fn downgrading() -> Rig {
    let mut rig = held();
    rig.downgrade(FIRST);
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig.read(SECOND);
    rig
}

/// Where the name is used as a semaphore of limit 4.
pub(super) const SEMAPHORE: &[(&str, Drive)] = &[
    ("two ask", two_ask),
    ("one asks, and everybody left", || {
        let mut rig = asking_for_a_permit();
        rig.leave(FIRST);
        rig
    }),
    ("one waits in the queue", one_queues),
    ("one waits, a larger request before it failed", behind_a_larger_one),
    ("one holds, one waits in the queue", || {
        let mut rig = one_holds();
        rig.join(SECOND);
        rig.queue_after(10);
        rig
    }),
    ("two hold", two_hold),
    ("one holds, and gives back a permit", giving_back),
];

/// Tokens up to [`FLOOR`] were handed out before.
fn semaphore() -> Rig {
    let mut rig = Rig::with_mode(all_modes(), Mode::permits(1, 4).unwrap());
    rig.join(FIRST);
    rig.grant(FLOOR, FLOOR);
    rig.leave(FIRST);
    rig.release(Ok(Released::Released));
    rig
}

fn asking_for_a_permit() -> Rig {
    let mut rig = semaphore();
    rig.join(FIRST);
    rig
}

fn two_ask() -> Rig {
    let mut rig = asking_for_a_permit();
    rig.join(SECOND);
    rig
}

fn one_queues() -> Rig {
    let mut rig = asking_for_a_permit();
    rig.queue_after(8);
    rig
}

fn many(turn: u8) -> Join {
    Join { terms: Terms { mode: Mode::permits(3, 4).unwrap(), ..join(turn).terms }, ..join(turn) }
}

/// The first waiter wants three permits, and the store could not be reached.
fn behind_a_larger_one() -> Rig {
    let mut rig = semaphore();
    rig.feed(Input::Join(many(FIRST)));
    rig.join(SECOND);
    rig.about(3).fail(ErrorKind::Unreachable, Effect::None);
    rig.about(4).queue_after(8);
    rig
}

fn one_holds() -> Rig {
    let mut rig = asking_for_a_permit();
    rig.grant_slots(FLOOR + 1, [1]);
    rig
}

fn two_hold() -> Rig {
    let mut rig = one_holds();
    rig.join(SECOND);
    rig.grant_slots(FLOOR + 2, [3]);
    rig
}

fn giving_back() -> Rig {
    let mut rig = semaphore();
    rig.feed(Input::Join(many(FIRST)));
    rig.grant(FLOOR + 1, FLOOR + 3);
    rig.replace(FIRST, "60s");
    rig
}

fn other_ttl(turn: u8) -> Join {
    Join { terms: Terms::exclusive(ttl("10s")), ..join(turn) }
}

/// A station that has admitted [`FLOOR`] before.
fn rig(ordering: RequestOrder) -> Rig {
    let mut policy = told_in_order();
    policy.store.ordering = ordering;
    rig_at(policy)
}

fn rig_at(policy: Policy) -> Rig {
    let mut rig = Rig::new(policy);
    rig.join(FIRST);
    rig.grant(FLOOR, FLOOR);
    rig
}

fn releasing(ordering: RequestOrder) -> Rig {
    let mut rig = rig(ordering);
    rig.pass(millis(1));
    rig.leave(FIRST);
    rig
}

fn release_failed() -> Rig {
    let mut rig = releasing(RequestOrder::Unordered);
    rig.release(Err(error(ErrorKind::Timeout, Effect::Unknown)));
    rig
}

/// At a store without a queue, the first waiter's claim was not answered.
fn unanswered(patience: Patience) -> Rig {
    let mut policy = told_in_order();
    policy.store.waiting = Waiting::Poll;
    let mut rig = rig_at(policy);
    rig.leave(FIRST);
    rig.release(Ok(Released::Released));
    rig.feed(Input::Join(Join { patience, ..join(FIRST) }));
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig
}

/// Four waiters left after unanswered claims, and the last release is in flight.
fn four_owed() -> Rig {
    let mut rig = idle();
    for turn in 4..8 {
        rig.feed(Input::Join(Join { patience: Patience::Never, ..join(turn) }));
        rig.fail(ErrorKind::Timeout, Effect::Unknown);
    }
    rig
}

fn idle() -> Rig {
    let mut rig = releasing(RequestOrder::InOrder);
    rig.release(Ok(Released::Released));
    rig
}

fn asking() -> Rig {
    let mut rig = idle();
    rig.join(FIRST);
    rig
}

fn asking_for_nobody() -> Rig {
    let mut rig = asking();
    rig.leave(FIRST);
    rig
}

/// The waiter that the claim was for has left.
fn asking_for_another() -> Rig {
    let mut rig = asking();
    rig.feed(Input::Join(other_ttl(SECOND)));
    rig.leave(FIRST);
    rig
}

/// In the queue behind a foreign holder, and asking again.
fn asking_behind_foreign() -> Rig {
    let mut rig = asking();
    let (remaining, valid_for) = (None, Duration::from_secs(10));
    rig.answer(Ok(Answer::Queued { position: 1, remaining, valid_for, holder: Holder::Foreign, drawn: None }));
    rig.wake();
    rig
}

/// In the queue, and asking again so late that a transfer would count from too long ago.
fn asking_late() -> Rig {
    let mut rig = waiting_in_queue();
    rig.pass(millis(8_000));
    rig.feed(Input::Tick);
    rig
}

fn waiting_outside() -> Rig {
    let mut rig = asking();
    rig.answer(Ok(Answer::Busy { remaining: None, holder: somebody(8, 8), drawn: None }));
    rig
}

fn waiting_in_queue() -> Rig {
    let mut rig = asking();
    rig.queue();
    rig
}

fn waiting_after_timeout() -> Rig {
    let mut rig = waiting_in_queue();
    rig.wake();
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig
}

fn waiting_after_error() -> Rig {
    let mut rig = asking();
    rig.fail(ErrorKind::Unreachable, Effect::None);
    rig
}

fn waiting_after_silence() -> Rig {
    let mut rig = asking();
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig
}

fn held() -> Rig {
    let mut rig = asking();
    rig.grant(11, 12);
    rig
}

fn held_with(waiters: &[Join]) -> Rig {
    let mut rig = held();
    for waiter in waiters {
        rig.feed(Input::Join(waiter.clone()));
    }
    rig
}

/// The second of two tokens is in use, and another waiter is in the queue.
fn held_to_the_end() -> Rig {
    let mut rig = held_with(&[join(NEXT), join(SECOND)]);
    rig.leave(FIRST);
    rig
}

/// Whether a claim from the queue is still in flight when the lock is handed over.
enum ClaimThen {
    Answered,
    InFlight,
}

fn held_by_transfer(claim: ClaimThen) -> Rig {
    let mut rig = waiting_in_queue();
    match claim {
        ClaimThen::Answered => rig.pass(millis(1)),
        ClaimThen::InFlight => _ = rig.wake(),
    }
    rig.hand_over(11, 12);
    rig
}

fn replacing() -> Rig {
    let mut rig = held_with(&[join(SECOND)]);
    rig.replace(FIRST, "60s");
    rig
}

fn replacing_again() -> Rig {
    let mut rig = replacing();
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig
}

fn replacing_the_lost() -> Rig {
    let mut rig = replacing_again();
    rig.renewal(rig.now, Ok(Renewed::NotHeld));
    rig.wake();
    rig
}

fn replacing_later() -> Rig {
    let mut rig = held_by_transfer(ClaimThen::InFlight);
    rig.replace(FIRST, "60s");
    rig
}

fn closed() -> Rig {
    let mut rig = held();
    rig.feed(Input::Close);
    rig
}
