//! Every state and every input, as one table that people have reviewed.
//!
//! The table lies beside this file as `table.txt` and, for readers, in `docs/machine.md`. Where the machine changes,
//! run the tests with `LEASEHOLD_BLESS=1` and review the difference.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::super::{ActionId, Input, Join, Reply};
use super::rig::{Rig, error, join, millis, owner, somebody, told_in_order, ttl};
use crate::{
    Answer, Effect, ErrorKind, Event, Holder, Lease, Patience, Policy, Released, Renewed, RequestOrder, Terms, Waiting,
};

/// The waiter that asks first, and the one behind it.
const FIRST: u8 = 1;
const SECOND: u8 = 2;
/// The waiter that an input brings.
const NEW: u8 = 3;
/// A turn, or an owner, that the station does not know.
const STRANGER: u8 = 99;
/// The tokens up to this one were handed out here before.
const FLOOR: u64 = 9;

/// A way to drive a fresh station into a state.
type Drive = fn() -> Rig;

const STATES: [(&str, Drive); 22] = [
    ("idle", idle),
    ("idle, release under way", || releasing(RequestOrder::InOrder)),
    ("idle, release under way, store without order", || releasing(RequestOrder::Unordered)),
    ("idle, release of a lease failed once, store without order", release_failed),
    ("idle, release of an unanswered claim under way, store without queue", || unanswered(Patience::Never)),
    ("idle, four releases owed", four_owed),
    ("asking", asking),
    ("asking, everybody left", asking_for_nobody),
    ("asking again, the holder was foreign", asking_behind_foreign),
    ("asking again, after most of a place", asking_late),
    ("waiting outside", waiting_outside),
    ("waiting in the queue", waiting_in_queue),
    ("waiting in the queue, last claim timed out", waiting_after_timeout),
    ("waiting after an error", waiting_after_error),
    ("waiting outside, last claim timed out", waiting_after_silence),
    ("waiting outside, last claim timed out, store without queue", || unanswered(Patience::Forever)),
    ("held", held),
    ("held, a waiter fits", || held_with(join(SECOND))),
    ("held, a waiter has another ttl", || held_with(Join { terms: Terms::exclusive(ttl("10s")), ..join(SECOND) })),
    ("held by transfer", || held_by_transfer(ClaimThen::Answered)),
    ("held by transfer, claim under way", || held_by_transfer(ClaimThen::UnderWay)),
    ("closed", closed),
];

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

/// At a store without a queue the first waiter's claim went unanswered.
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

/// Four went away when their claims were not answered, and the last release is under way.
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

/// In the queue behind something foreign, and asking again.
fn asking_behind_foreign() -> Rig {
    let mut rig = asking();
    let (remaining, valid_for) = (None, Duration::from_secs(10));
    rig.answer(Ok(Answer::Queued { position: 1, remaining, valid_for, holder: Holder::Foreign }));
    rig.wake();
    rig
}

/// In the queue, and asking again so late that what is handed over counts from too long ago.
fn asking_late() -> Rig {
    let mut rig = waiting_in_queue();
    rig.pass(millis(8_000));
    rig.feed(Input::Tick);
    rig
}

fn waiting_outside() -> Rig {
    let mut rig = asking();
    rig.answer(Ok(Answer::Busy { remaining: None, holder: somebody(8, 8) }));
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

fn held_with(waiter: Join) -> Rig {
    let mut rig = held();
    rig.feed(Input::Join(waiter));
    rig
}

/// Whether a claim from the queue is still under way when the lock is handed over.
enum ClaimThen {
    Answered,
    UnderWay,
}

fn held_by_transfer(claim: ClaimThen) -> Rig {
    let mut rig = waiting_in_queue();
    match claim {
        ClaimThen::Answered => rig.pass(millis(1)),
        ClaimThen::UnderWay => _ = rig.wake(),
    }
    rig.hand_over(11, 12);
    rig
}

fn closed() -> Rig {
    let mut rig = held();
    rig.feed(Input::Close);
    rig
}

/// An input, and what it does to a station that it is fed to.
type Feed = fn(&mut Rig) -> Vec<String>;

/// Validity in which nothing can be done: most of it has passed when the answer is there.
const LITTLE: Duration = Duration::from_millis(4);

const INPUTS: [(&str, Feed); 44] = [
    ("join", |rig| rig.join(NEW)),
    ("join, impatient", |rig| rig.feed(Input::Join(Join { patience: Patience::Never, ..join(NEW) }))),
    ("join, wait is over", |rig| {
        let patience = Patience::Until(rig.now);
        rig.feed(Input::Join(Join { patience, ..join(NEW) }))
    }),
    ("join, other ttl", |rig| rig.feed(Input::Join(Join { terms: Terms::exclusive(ttl("20s")), ..join(NEW) }))),
    ("leave: first", |rig| rig.leave(FIRST)),
    ("leave: second", |rig| rig.leave(SECOND)),
    ("leave: unknown turn", |rig| rig.leave(STRANGER)),
    ("granted", |rig| rig.grant(11, 12)),
    ("granted, little left", |rig| {
        let lease = rig.lease(11, 12);
        rig.answer(Ok(Answer::Granted { lease, valid_for: LITTLE }))
    }),
    ("granted, other tokens", |rig| rig.grant(21, 22)),
    ("granted to another owner", |rig| {
        let lease = Lease { owner: owner(STRANGER), ..rig.lease(11, 12) };
        rig.answer(Ok(Answer::Granted { lease, valid_for: Duration::from_secs(30) }))
    }),
    ("granted, another ttl", |rig| {
        let lease = Lease { terms: Terms::exclusive(ttl("20s")), ..rig.lease(11, 12) };
        rig.answer(Ok(Answer::Granted { lease, valid_for: Duration::from_secs(20) }))
    }),
    ("granted, not above the floor", |rig| rig.grant(FLOOR, FLOOR + 1)),
    ("queued", Rig::queue),
    ("queued, lease ends soon", |rig| {
        let (remaining, valid_for) = (Some(millis(500)), Duration::from_secs(10));
        rig.answer(Ok(Answer::Queued { position: 3, remaining, valid_for, holder: somebody(8, 8) }))
    }),
    ("queued behind something foreign", |rig| {
        let (remaining, valid_for) = (None, Duration::from_secs(10));
        rig.answer(Ok(Answer::Queued { position: 1, remaining, valid_for, holder: Holder::Foreign }))
    }),
    ("queued far behind something foreign", |rig| {
        let (remaining, valid_for) = (None, Duration::from_secs(10));
        rig.answer(Ok(Answer::Queued { position: 200, remaining, valid_for, holder: Holder::Foreign }))
    }),
    ("busy", |rig| rig.answer(Ok(Answer::Busy { remaining: None, holder: somebody(8, 8) }))),
    ("busy, foreign", |rig| rig.answer(Ok(Answer::Busy { remaining: None, holder: Holder::Foreign }))),
    ("claim failed, may pass, no effect", |rig| rig.fail(ErrorKind::Unreachable, Effect::None)),
    ("claim failed, may pass, effect unknown", |rig| rig.fail(ErrorKind::Timeout, Effect::Unknown)),
    ("claim failed for good", |rig| rig.fail(ErrorKind::Denied, Effect::None)),
    ("answer to an old claim", |rig| {
        let (lease, valid_for) = (rig.lease(11, 12), Duration::from_secs(30));
        let old = ActionId(rig.claim_id().0 - 1);
        rig.feed(Input::Reply(old, Reply::Acquire(Ok(Answer::Granted { lease, valid_for }))))
    }),
    ("released", |rig| rig.release(Ok(Released::Released))),
    ("release failed, may pass", |rig| rig.release(Err(error(ErrorKind::Unreachable, Effect::None)))),
    ("release failed for good", |rig| rig.release(Err(error(ErrorKind::Denied, Effect::None)))),
    ("renewed", |rig| rig.renewal(rig.now, Ok(Renewed::Renewed { valid_for: Duration::from_secs(30) }))),
    ("not held", |rig| rig.renewal(rig.now, Ok(Renewed::NotHeld))),
    ("renewal failed", |rig| rig.renewal(rig.now, Err(error(ErrorKind::Timeout, Effect::Unknown)))),
    ("not held, of another owner", |rig| {
        rig.feed(Input::Renewal { owner: owner(STRANGER), asked_at: rig.now, answer: Ok(Renewed::NotHeld) })
    }),
    ("event: granted to us", |rig| rig.hand_over(11, 12)),
    ("event: granted to us, twice", |rig| [rig.hand_over(11, 12), rig.hand_over(11, 12)].concat()),
    ("event: granted to us, not above the floor", |rig| rig.hand_over(FLOOR, FLOOR + 1)),
    ("event: granted to us, then queued", |rig| [rig.hand_over(11, 12), rig.queue()].concat()),
    ("event: granted to us, then queued behind a later one", |rig| {
        let (holder, valid_for) = (somebody(15, 15), Duration::from_secs(10));
        let later = Answer::Queued { position: 1, remaining: None, valid_for, holder };
        [rig.hand_over(11, 12), rig.answer(Ok(later))].concat()
    }),
    ("event: granted to us, then queued behind something foreign", |rig| {
        let (holder, valid_for) = (Holder::Foreign, Duration::from_secs(10));
        let foreign = Answer::Queued { position: 1, remaining: None, valid_for, holder };
        [rig.hand_over(11, 12), rig.answer(Ok(foreign))].concat()
    }),
    ("event: granted to a stranger", |rig| {
        let lease = Lease { owner: owner(STRANGER), ..rig.lease(11, 12) };
        rig.feed(Input::Event(Event::Granted { lease, valid_for: Duration::from_secs(10) }))
    }),
    ("event: freed", |rig| rig.feed(Input::Event(Event::Freed { name: "a".parse().unwrap() }))),
    ("event: another lock freed", |rig| rig.feed(Input::Event(Event::Freed { name: "b".parse().unwrap() }))),
    ("event: recheck all", |rig| rig.feed(Input::Event(Event::RecheckAll))),
    ("tick, nothing due", |rig| rig.feed(Input::Tick)),
    ("tick at the wake-up", |rig| if rig.station.next_wake().is_some() { rig.wake() } else { rig.feed(Input::Tick) }),
    ("tick, an hour late", |rig| {
        rig.pass(Duration::from_secs(3600));
        rig.feed(Input::Tick)
    }),
    ("close", |rig| rig.feed(Input::Close)),
];

struct Row {
    state: &'static str,
    input: &'static str,
    outputs: String,
    next: String,
    /// Whether nothing came out and nothing changed.
    nothing: bool,
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (state, drive) in STATES {
        for (input, feed) in INPUTS {
            let mut rig = drive();
            rig.pass(millis(1));
            let before = rig.state();
            let said = feed(&mut rig);
            let next = rig.state();
            let nothing = said.is_empty() && next == before;
            let outputs = if said.is_empty() { "nothing".to_owned() } else { said.join("; ") };
            rows.push(Row { state, input, outputs, next, nothing });
        }
    }
    rows
}

fn as_text(rows: &[Row]) -> String {
    let mut text = String::new();
    for Row { state, input, outputs, next, .. } in rows {
        writeln!(text, "{state} + {input} -> {outputs} => {next}").unwrap();
    }
    text
}

fn as_markdown(rows: &[Row]) -> String {
    let mut text = String::new();
    for of_state in rows.chunk_by(|one, other| one.state == other.state) {
        let mut rig = STATES.iter().find(|(state, _)| *state == of_state[0].state).unwrap().1();
        rig.pass(millis(1));
        writeln!(text, "\n### {}\n\n`{}`\n", of_state[0].state, rig.state()).unwrap();
        writeln!(text, "| Input | Outputs | Next state |\n|---|---|---|").unwrap();
        for Row { input, outputs, next, .. } in of_state.iter().filter(|row| !row.nothing) {
            writeln!(text, "| {input} | {} | {next} |", outputs.replace("; ", "<br>")).unwrap();
        }
        let without_effect: Vec<_> = of_state.iter().filter(|row| row.nothing).map(|row| row.input).collect();
        if !without_effect.is_empty() {
            writeln!(text, "\nNothing comes of: {}.", without_effect.join(" · ")).unwrap();
        }
    }
    text
}

/// Compares with the checked-in text, or rewrites that where `LEASEHOLD_BLESS` is set.
fn assert_same(path: &str, found: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if expected == found {
        return;
    }
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    let differing = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    let (expected, found) = differing.unwrap_or(("(another number of lines)", ""));
    panic!(
        "{} is out of date; the first line that differs:\n  there: {expected}\n  now:   {found}\n\
         If the change is meant, run the tests again with LEASEHOLD_BLESS=1 and review the difference.",
        path.display()
    );
}

#[test]
fn every_state_and_input_is_reviewed() {
    assert_same("src/station/tests/table.txt", &as_text(&rows()));
}

#[test]
fn the_documentation_shows_the_same_table() {
    const MARK: &str = "<!-- The rest of this page is written by the tests of lock-core. -->\n";
    let page = "../../docs/machine.md";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = std::fs::read_to_string(path).expect("docs/machine.md is there");
    let (by_hand, _) = text.split_once(MARK).expect("docs/machine.md has the mark where the table begins");
    assert_same(page, &format!("{by_hand}{MARK}{}", as_markdown(&rows())));
}
