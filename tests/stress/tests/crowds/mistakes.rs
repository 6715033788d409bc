//! Workers with a mistake: each check finds the one that it is for.

use std::thread;

use stress::cast::{BOOK, Cast, Mistake, POOL, TTL};
use stress::check::{Rules, exclusion};
use stress::crew::Crew;
use stress::hold::Hold;
use stress::problem::{Problem, refusals};
use stress::run::{await_that, find_an_overlap, judge};
use stress::turn::Turn;

use crate::{crew, redis};

const RULES: Rules<'_> = Rules { losses: &[], changes: &[], ttl: TTL };

/// What is looked for, and what it is in words.
type Wanted = (&'static str, fn(&Problem) -> bool);

/// Waits until the checks have found all of these.
fn finds(crew: Crew, wanted: &[Wanted]) {
    for (what, is_it) in wanted {
        await_that(what, || exclusion(crew.turns(), RULES).iter().any(is_it));
    }
    judge(crew, &[]);
}

fn reads(turn: &Turn) -> bool {
    matches!(turn.hold, Hold::Read(_))
}

#[test]
fn processes_with_locks_of_their_own_are_found() {
    let server = redis();
    let crew = crew(&server.url(), &[(Cast::Kinds, Mistake::Apart); 2]);
    finds(
        crew,
        &[
            ("two writers", |problem| matches!(problem, Problem::Overlap(one, other) if !reads(one) && !reads(other))),
            (
                "a reader beside a writer",
                |problem| matches!(problem, Problem::Overlap(one, other) if one.lock == BOOK && reads(one) != reads(other)),
            ),
            ("a slot held twice", |problem| matches!(problem, Problem::Overlap(one, _) if one.lock == POOL)),
            ("more permits than there are", |problem| matches!(problem, Problem::TooMany(..))),
        ],
    );
}

#[test]
fn a_process_that_presents_old_tokens_is_found() {
    let server = redis();
    let crew = crew(&server.url(), &[(Cast::Kinds, Mistake::OldTokens), (Cast::Kinds, Mistake::None)]);
    finds(
        crew,
        &[
            ("a writer", |problem| matches!(problem, Problem::Order(_, turn) if matches!(turn.hold, Hold::Write(_)))),
            ("a reader", |problem| matches!(problem, Problem::Order(_, turn) if reads(turn))),
            ("a slot", |problem| matches!(problem, Problem::Order(_, turn) if turn.lock == POOL)),
        ],
    );
}

#[test]
fn a_process_that_uses_slots_that_do_not_exist_is_found() {
    let server = redis();
    let crew = crew(&server.url(), &[(Cast::Kinds, Mistake::WrongSlots)]);
    finds(crew, &[("a slot", |problem| matches!(problem, Problem::NoSuchSlot(_)))]);
}

/// It is stopped past its lease, and its guards know that they are lost, but no signal comes.
#[test]
fn a_process_that_is_not_told_of_its_losses_is_found() {
    let server = redis();
    let mut crew = crew(&server.url(), &[(Cast::Hoarders, Mistake::Deaf)]);
    await_that("all hold", || crate::turns_of(&crew, 0).len() == Cast::Hoarders.wishes().len());
    crew.workers[0].freeze();
    thread::sleep(TTL * 3 / 2);
    crew.workers[0].thaw();
    let told = |crew: &Crew| refusals("w", &crew.history_of(0));
    await_that("it is found", || told(&crew).iter().any(|problem| matches!(problem, Problem::Untold(_))));
    judge(crew, &[]);
}

#[test]
fn a_process_that_does_not_look_whether_it_holds_is_found() {
    let server = redis();
    find_an_overlap(crew(&server.url(), &[(Cast::Writers, Mistake::Believes), (Cast::Writers, Mistake::None)]));
}
