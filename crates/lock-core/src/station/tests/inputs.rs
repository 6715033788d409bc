//! The inputs to a station that the reviewed tables show.

use std::time::Duration;

use super::super::{ActionId, Input, Join, Reply};
use super::rig::{Rig, error, join, millis, reader, somebody, stranger, ttl};
use super::states::{FIRST, FLOOR, SECOND};
use crate::{
    Answer, Effect, ErrorKind, Fairness, FencingToken, Holder, Lease, Note, OnUnavailable, Patience, Released, Renewed,
    StoreEvent, Terms,
};

/// The waiter that an input adds.
const NEW: u8 = 3;
/// A turn that the station does not know.
const STRANGER: u8 = 99;

/// An input, and what it does to a station that it is fed to.
pub(super) type Feed = fn(&mut Rig) -> Vec<String>;

/// Too short a validity: most of it has passed when the answer arrives.
const LITTLE: Duration = Duration::from_millis(4);

/// Those that are about a lock, and not about a semaphore.
pub(super) const OF_LOCKS: [&str; 4] =
    ["join, reads", "join, reads, impatient", "join, reads, barging", "replace: first, reads"];

pub(super) const INPUTS: [(&str, Feed); 64] = [
    ("join", |rig| rig.join(NEW)),
    ("join, impatient", |rig| rig.feed(Input::Join(Join { patience: Patience::Never, ..join(NEW) }))),
    ("join, wait is over", |rig| {
        let patience = Patience::within(rig.now, Duration::ZERO);
        rig.feed(Input::Join(Join { patience, ..join(NEW) }))
    }),
    ("join for one answer, then busy", |rig| [rig.join_for_one_answer(NEW), rig.be_busy()].concat()),
    ("join for one answer, then claim failed", |rig| {
        [rig.join_for_one_answer(NEW), rig.fail(ErrorKind::Unreachable, Effect::None)].concat()
    }),
    ("join, gives up while the store is away, then claims fail for a second", |rig| {
        let failing = rig.feed(Input::Join(Join { on_unavailable: OnUnavailable::Fail, ..join(NEW) }));
        let first = rig.fail(ErrorKind::Unreachable, Effect::None);
        rig.pass(Duration::from_secs(1));
        let again = rig.feed(Input::Tick);
        [failing, first, again, rig.fail(ErrorKind::Unreachable, Effect::None)].concat()
    }),
    ("join, other ttl", |rig| rig.feed(Input::Join(Join { terms: Terms::exclusive(ttl("20s")), ..join(NEW) }))),
    ("join, reads", |rig| rig.read(NEW)),
    ("join, reads, impatient", |rig| rig.feed(Input::Join(Join { patience: Patience::Never, ..reader(NEW) }))),
    ("join, reads, barging", |rig| rig.feed(Input::Join(Join { fairness: Fairness::Barging, ..reader(NEW) }))),
    ("adopt", |rig| rig.adopt(join(NEW), 8)),
    ("leave: first", |rig| rig.leave(FIRST)),
    ("leave: second", |rig| rig.leave(SECOND)),
    ("cancel: first", |rig| rig.cancel(FIRST)),
    ("cancel: second", |rig| rig.cancel(SECOND)),
    ("leave: unknown turn", |rig| rig.leave(STRANGER)),
    ("leave and keep: first", |rig| rig.leave_and_keep(FIRST)),
    ("detach: first", |rig| rig.detach(FIRST)),
    ("replace: first, longer ttl", |rig| rig.replace(FIRST, "60s")),
    ("replace: first, shorter ttl", |rig| rig.replace(FIRST, "10s")),
    ("replace: first, reads", |rig| rig.downgrade(FIRST)),
    ("replace: second", |rig| rig.replace(SECOND, "60s")),
    ("granted", |rig| rig.grant(11, 12)),
    ("granted, little left", |rig| {
        let lease = rig.lease(11, 12);
        rig.answer(Ok(Answer::Granted { lease, valid_for: LITTLE, wanted: false }))
    }),
    ("granted, other tokens", |rig| rig.grant(21, 22)),
    ("granted to another owner", |rig| {
        let lease = Lease { owner: stranger(), ..rig.lease(11, 12) };
        rig.answer(Ok(Answer::Granted { lease, valid_for: Duration::from_secs(30), wanted: false }))
    }),
    ("granted, another ttl", |rig| {
        let lease = Lease { terms: Terms::exclusive(ttl("20s")), ..rig.lease(11, 12) };
        rig.answer(Ok(Answer::Granted { lease, valid_for: Duration::from_secs(20), wanted: false }))
    }),
    ("granted, not above the floor", |rig| rig.grant(FLOOR, FLOOR + 1)),
    ("queued", Rig::queue),
    ("queued, lease ends soon", |rig| {
        let (remaining, valid_for) = (Some(millis(500)), Duration::from_secs(10));
        rig.answer(Ok(Answer::Queued { position: 3, remaining, valid_for, holder: somebody(8, 8), drawn: None }))
    }),
    ("queued behind something foreign", |rig| {
        let (remaining, valid_for) = (None, Duration::from_secs(10));
        rig.answer(Ok(Answer::Queued { position: 1, remaining, valid_for, holder: Holder::Foreign, drawn: None }))
    }),
    ("queued far behind something foreign", |rig| {
        let (remaining, valid_for) = (None, Duration::from_secs(10));
        rig.answer(Ok(Answer::Queued { position: 200, remaining, valid_for, holder: Holder::Foreign, drawn: None }))
    }),
    ("busy", Rig::be_busy),
    ("busy, foreign", |rig| rig.answer(Ok(Answer::Busy { remaining: None, holder: Holder::Foreign, drawn: None }))),
    ("claim failed, may pass, no effect", |rig| rig.fail(ErrorKind::Unreachable, Effect::None)),
    ("claim failed, may pass, effect unknown", |rig| rig.fail(ErrorKind::Timeout, Effect::Unknown)),
    ("claim failed for good", |rig| rig.fail(ErrorKind::Denied, Effect::None)),
    ("answer to an old claim", |rig| {
        let (lease, valid_for) = (rig.lease(11, 12), Duration::from_secs(30));
        let old = ActionId(rig.claim_id().0 - 1);
        rig.feed(Input::Reply(old, Reply::Acquire(Ok(Answer::Granted { lease, valid_for, wanted: false }))))
    }),
    ("released", |rig| rig.release(Ok(Released::Released))),
    ("release failed, may pass", |rig| rig.release(Err(error(ErrorKind::Unreachable, Effect::None)))),
    ("release failed for good", |rig| rig.release(Err(error(ErrorKind::Denied, Effect::None)))),
    ("renewed", |rig| rig.renewed(false)),
    ("renewed, wanted", |rig| rig.renewed(true)),
    ("not held", |rig| rig.renewal(rig.now, Ok(Renewed::NotHeld))),
    ("revoked", |rig| rig.renewal(rig.now, Ok(Renewed::Revoked { by: Note::from_wire("1@elsewhere") }))),
    ("renewal failed", |rig| rig.renewal(rig.now, Err(error(ErrorKind::Timeout, Effect::Unknown)))),
    ("not held, of another owner", |rig| {
        rig.feed(Input::Renewal { owner: stranger(), asked_at: rig.now, answer: Ok(Renewed::NotHeld) })
    }),
    ("event: granted to us", |rig| rig.hand_over(11, 12)),
    ("event: granted to us, twice", |rig| [rig.hand_over(11, 12), rig.hand_over(11, 12)].concat()),
    ("event: granted to us, not above the floor", |rig| rig.hand_over(FLOOR, FLOOR + 1)),
    ("event: granted to us, then queued", |rig| [rig.hand_over(11, 12), rig.queue()].concat()),
    ("event: granted to us, then queued behind a later one", |rig| {
        let (holder, valid_for) = (somebody(15, 15), Duration::from_secs(10));
        let later = Answer::Queued { position: 1, remaining: None, valid_for, holder, drawn: None };
        [rig.hand_over(11, 12), rig.answer(Ok(later))].concat()
    }),
    ("event: granted to us, then queued behind something foreign", |rig| {
        let (holder, valid_for) = (Holder::Foreign, Duration::from_secs(10));
        let foreign = Answer::Queued { position: 1, remaining: None, valid_for, holder, drawn: None };
        [rig.hand_over(11, 12), rig.answer(Ok(foreign))].concat()
    }),
    ("event: granted to a stranger", |rig| {
        let lease = Lease { owner: stranger(), ..rig.lease(11, 12) };
        rig.feed(Input::Event(StoreEvent::Granted { lease, valid_for: Duration::from_secs(10), wanted: false }))
    }),
    ("event: granted to us, then queued, a later token drawn", |rig| {
        let (position, remaining, valid_for, holder) = (1, None, Duration::from_secs(10), somebody(8, 8));
        let later = Answer::Queued { position, remaining, valid_for, holder, drawn: FencingToken::new(15).ok() };
        [rig.hand_over(11, 12), rig.answer(Ok(later))].concat()
    }),
    ("event: wanted", Rig::want),
    ("event: revoked", |rig| rig.feed(Input::Event(StoreEvent::Revoked { name: "a".parse().unwrap() }))),
    ("event: freed", |rig| rig.feed(Input::Event(StoreEvent::Freed { name: "a".parse().unwrap() }))),
    ("event: another lock freed", |rig| rig.feed(Input::Event(StoreEvent::Freed { name: "b".parse().unwrap() }))),
    ("event: recheck all", |rig| rig.feed(Input::Event(StoreEvent::RecheckAll))),
    ("tick, nothing due", |rig| rig.feed(Input::Tick)),
    ("tick at the wake-up", |rig| if rig.station.next_wake().is_some() { rig.wake() } else { rig.feed(Input::Tick) }),
    ("tick, an hour late", |rig| {
        rig.pass(Duration::from_secs(3600));
        rig.feed(Input::Tick)
    }),
    ("close", |rig| rig.feed(Input::Close)),
];
