//! Checks the model: a trace is played against it and against the scripts on a real Redis, and both say the same.
//!
//! `LEASEHOLD_SEED=n` plays another trace.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod real;

use std::env;
use std::time::Duration;

use lock_core::{Claim, Fairness, LockName, Moment, NameKind, Note, Owner, Queueing, Terms, Ttl, Width};
use lock_sim::redis::trace::{Ask, Author, Inbox, Met, Model, Said, Seat, Step, token_of};
use real::Real;
use test_support::RedisServer;

/// How many steps a trace has.
const STEPS: usize = 600;
/// How far the model's idea of the server's clock may be off: a script counts from when it began.
const OFF: [i64; 4] = [0, -1, 1, -2];
/// How much the remaining times may differ by that.
const LIKE: Duration = Duration::from_millis(5);
/// Clients with a listener, and one without a listener any more.
const INBOXES: [Inbox; 2] = [Inbox(1), Inbox(2)];
const DEAF: Inbox = Inbox(3);

fn names() -> Vec<LockName> {
    ["a", "invoice:42"].map(|name| name.parse().unwrap()).into()
}

fn seats() -> Vec<Seat> {
    vec![Seat::Told(INBOXES[0]), Seat::Told(INBOXES[1]), Seat::Told(DEAF), Seat::Silent, Seat::Unwanted]
}

#[test]
fn the_model_says_what_the_scripts_say() {
    let seed = env::var("LEASEHOLD_SEED").map_or(4, |text| text.parse().unwrap());
    let server = RedisServer::start();
    let mut listening = server.connection();
    let mut real = Real::new(server.connection(), &mut listening, &INBOXES);
    let mut model = Model::new(real.now(), real.counter(), &INBOXES);
    let mut author = Author::new(seed, names(), seats());
    for number in 0..STEPS {
        match author.step() {
            Step::Wait(time) => std::thread::sleep(time),
            Step::Dwell(time) => model.dwell(real.dwell(time), time),
            Step::Ask(ask) => {
                let (at, said) = real.ask(&ask);
                model = follow(&model, at, &ask, &said).unwrap_or_else(|other| {
                    panic!("seed {seed}, step {number}: {ask:?}\nRedis: {said:?}\nmodel: {other:?}")
                });
                author.heard(&said);
            }
            Step::ForeignSet(name, value, life) => {
                let (at, set) = real.foreign_set(&name, value, life);
                assert!(
                    foreign_alike(&mut model, at, set, |model, at| model.foreign_set(at, &name, value, life)),
                    "{name}"
                );
            }
            Step::ForeignDelete(name, value) => {
                let (at, deleted) = real.foreign_delete(&name, value);
                assert!(
                    foreign_alike(&mut model, at, deleted, |model, at| model.foreign_delete(at, &name, value)),
                    "{name}"
                );
            }
        }
    }
    let missed: Vec<_> = Met::ALL.into_iter().filter(|met| !author.met().contains(met)).collect();
    assert!(missed.is_empty(), "seed {seed} met no {missed:?}");
}

/// The model after this step, if it says the same; and what it says if not.
fn follow(model: &Model, at: Moment, ask: &Ask, said: &Said) -> Result<Model, Box<Said>> {
    let mut first = None;
    for off in OFF {
        let mut model = model.clone();
        let answer = model.ask(off_by(at, off), ask);
        if answer.is_like(said, LIKE) {
            return Ok(model);
        }
        first.get_or_insert_with(|| Box::new(answer));
    }
    Err(first.unwrap())
}

fn foreign_alike(model: &mut Model, at: Moment, is: bool, does: impl Fn(&mut Model, Moment) -> bool) -> bool {
    let tries = OFF.map(|off| {
        let mut model = model.clone();
        let same = does(&mut model, off_by(at, off)) == is;
        (same, model)
    });
    let Some((_, alike)) = tries.into_iter().find(|(same, _)| *same) else { return false };
    *model = alike;
    true
}

fn off_by(at: Moment, millis: i64) -> Moment {
    let by = Duration::from_millis(millis.unsigned_abs());
    if millis < 0 { at - by } else { at + by }
}

#[test]
fn a_counter_that_was_lost_is_raised_to_the_clock() {
    let server = RedisServer::start();
    let mut listening = server.connection();
    let mut real = Real::new(server.connection(), &mut listening, &INBOXES);
    real.heed_nothing();
    let mut model = Model::new(real.now(), real.counter(), &INBOXES);
    for number in 1..3 {
        let claim = Claim {
            name: format!("lock {number}").parse().unwrap(),
            owner: Owner::from_random([number; 16]),
            terms: Terms::exclusive(Ttl::DEFAULT),
            width: Width::for_waiters(usize::from(number)),
            floor: None,
            note: Note::from_wire("1@here"),
            queueing: Queueing::Wanted,
            replaces: None,
            fairness: Fairness::Fair,
            kind: NameKind::Lock,
        };
        let before = real.now();
        server.command::<()>(&["DEL", "leasehold:counter"]);
        model.lose_counter();
        let (at, said) = real.ask(&Ask::Acquire(claim.clone(), Seat::Silent));
        for said in [&said, &model.ask(at, &Ask::Acquire(claim, Seat::Silent))] {
            assert!(token_of(said).unwrap().get() >= before.as_nanos() / 1000, "{said:?}");
        }
    }
}
