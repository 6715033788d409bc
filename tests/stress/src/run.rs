//! How each test begins and ends.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::mem::discriminant;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::cast::TTL;
use crate::check::{Loss, Rules, exclusion};
use crate::crew::{Crew, Ground};
use crate::fair::{Calm, starved};
use crate::history::{Event, What, now};
use crate::hold::Hold;
use crate::problem::{Problem, refusals};
use crate::register::lost_updates;
use crate::turn::turns;

/// How long nothing is broken before the end, at least ...
const CALM: Duration = Duration::from_secs(2);
/// ... and how long a waiter may then be without a turn, if all had this many turns on average meanwhile.
const PATIENCE: Duration = Duration::from_secs(15);
const ROUNDS: usize = 12;
/// How long everything may take that happens now and then.
const LATEST: Duration = Duration::from_secs(120);
/// How many problems of each kind are shown.
const SHOWN: usize = 5;

/// What workers of both facades do in each run, by the words of the tally.
const DEEDS: [&str; 8] = [
    "TimedOut",
    "turn",
    "reading",
    "permits",
    "changed to turn",
    "changed to reading",
    "changed to permits",
    "Detached",
];

/// A new run with the requested or a random seed, which is printed.
pub fn ground(program: &'static str) -> Ground {
    let seed = number("LEASEHOLD_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("LEASEHOLD_SEED={seed}");
    // Removed at the end if the run succeeded.
    Ground { program, directory: test_support::temp_dir().keep(), environment: Vec::new(), seed }
}

/// How long faults are injected: this long, unless the environment says otherwise.
pub fn storm(usual: Duration) -> Duration {
    number("LEASEHOLD_STRESS_SECONDS").map_or(usual, Duration::from_secs)
}

/// The number in a variable of the environment.
pub fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

/// How long to look for an overlap. Chosen: a process that is stopped, for two seconds each time, holds the lock one time in seven.
const OVERLAP_WITHIN: Duration = Duration::from_secs(150);

/// Waits until every worker had a turn.
pub fn await_workers(crew: &Crew) {
    let everybody = crew.workers.len();
    await_true(|| {
        crew.histories().iter().filter(|(name, history)| !turns(name, history).is_empty()).count() == everybody
    });
}

/// Waits until every seat had a turn.
fn await_turns(crew: &Crew, since: u64) {
    await_true(|| {
        let turns = crew.turns();
        let had_one = |seat: &String| turns.iter().any(|turn| turn.from >= since && turn.who == *seat);
        crew.seats().iter().all(had_one)
    });
}

/// Waits until something is so.
///
/// # Panics
/// If it takes longer than half a minute.
pub fn await_that(what: &str, is_so: impl FnMut() -> bool) {
    assert!(await_within(2 * PATIENCE, is_so), "in vain: {what}");
}

/// Waits until everything that a worker can do was done in both facades. A reader upgrades only while it is alone, which may take until the
/// storm is over.
///
/// # Panics
/// If that takes longer than two minutes.
pub fn await_deeds(crew: &Crew) {
    let all_done = await_within(LATEST, || undone(crew).is_empty());
    assert!(all_done, "in vain: {:?}; there was {:?}", undone(crew), tally(crew));
}

/// Waits, but not for long: the checker reports who had no turn.
fn await_true(is_so: impl FnMut() -> bool) {
    await_within(LATEST / 2, is_so);
}

/// Waits for a grant of this lock after this moment. Returns whether there was one within half a minute.
pub fn is_granted_again(crew: &Crew, lock: &str, after: u64) -> bool {
    let is_grant = |event: &Event| event.at > after && event.lock == lock && matches!(event.what, What::Has(_));
    await_within(2 * PATIENCE, || crew.histories().iter().any(|(_, history)| history.iter().any(is_grant)))
}

/// Whether it is so within this time.
fn await_within(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(50));
    }
    true
}

/// The tests of a server take turns: together they are too much for two cores.
pub fn machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets the workers run undisturbed for a while, ends them, and reports every violation.
pub fn calm_down(crew: &mut Crew, losses: &[Loss]) -> Vec<Problem> {
    let from = now();
    thread::sleep(CALM);
    await_turns(crew, from);
    let calm = Calm { from, until: now(), patience: PATIENCE, rounds: ROUNDS };
    println!("calm: {:.1?}", Duration::from_nanos(calm.until - calm.from));
    let seats = crew.seats();
    let mut problems = crew.end();
    let turns = crew.turns();
    println!("turns: {}", turns.len());
    println!("in the histories: {:?}", tally(crew));
    problems.extend(starved(&turns, &seats, calm));
    problems.extend(crew.histories().iter().flat_map(|(name, history)| refusals(name, history)));
    problems.extend(exclusion(turns, Rules { losses, changes: &[], ttl: TTL }));
    let entries = crew.register.entries();
    println!("in the register: {} writes, {} of them refused", entries.len(), crew.register.refused());
    problems.extend(lost_updates(&entries).into_iter().map(Problem::Lost));
    problems
}

/// Fails if there are problems, and then keeps the histories and the register's attempts for inspection.
pub fn judge(crew: Crew, problems: &[Problem]) {
    let directory = crew.directory().to_owned();
    if problems.is_empty() {
        drop(crew);
        fs::remove_dir_all(directory).ok();
        return;
    }
    let mut entries = String::new();
    for entry in crew.register.entries() {
        writeln!(entries, "{entry}").unwrap();
    }
    fs::write(directory.join("register.txt"), entries).unwrap();
    panic!("{} problems, see {}\n{}", problems.len(), directory.display(), some_of_each(problems).join("\n"));
}

fn some_of_each(problems: &[Problem]) -> Vec<String> {
    let mut texts = Vec::new();
    let kinds: HashSet<_> = problems.iter().map(discriminant).collect();
    for kind in kinds {
        let alike: Vec<_> = problems.iter().filter(|problem| discriminant(*problem) == kind).collect();
        texts.extend(alike.iter().take(SHOWN).map(ToString::to_string));
        texts.extend(alike.len().checked_sub(SHOWN + 1).map(|more| format!("... and {} more like that", more + 1)));
    }
    texts
}

/// How often each event happened, which shows that the run was meaningful.
pub fn tally(crew: &Crew) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (name, history) in crew.histories() {
        let facade = name.split('-').next().unwrap().to_owned();
        let mut holding = BTreeSet::new();
        for event in history {
            let held_before = match &event.what {
                What::Has(_) => !holding.insert(event.seat),
                What::Still | What::Asks(_) | What::Answered(_) => true,
                What::Waits | What::Ended(_) | What::Left(_) => holding.remove(&event.seat),
            };
            let what = match event.what {
                What::Has(hold) => format!("{}{}", if held_before { "changed to " } else { "" }, kind(&hold)),
                What::Waits | What::Still | What::Asks(_) | What::Answered(_) => continue,
                What::Ended(ending) => format!("{ending:?}"),
                What::Left(leaving) => format!("{leaving:?}"),
            };
            *counts.entry(format!("{facade} {what}")).or_default() += 1;
        }
    }
    counts
}

/// Stops the first worker, which does not look whether it holds, past its lease. It goes on as if it still held.
///
/// # Panics
/// If that is not found.
pub fn find_an_overlap(mut crew: Crew) {
    await_workers(&crew);
    let is_found = await_within(OVERLAP_WITHIN, || {
        crew.workers[0].freeze();
        thread::sleep(TTL * 3 / 2);
        crew.workers[0].thaw();
        thread::sleep(TTL / 2);
        let problems = exclusion(crew.turns(), Rules { losses: &[], changes: &[], ttl: TTL });
        problems.iter().any(|problem| matches!(problem, Problem::Overlap(..)))
    });
    assert!(is_found, "in vain: an overlap");
    judge(crew, &[]);
}

/// What no worker of a facade has done yet.
fn undone(crew: &Crew) -> Vec<String> {
    let counts = tally(crew);
    let by_facade = |facade| DEEDS.map(|deed| format!("{facade} {deed}"));
    let all = by_facade("async").into_iter().chain(by_facade("blocking")).chain(["async Cancelled".to_owned()]);
    all.filter(|deed| !counts.contains_key(deed)).collect()
}

fn kind(hold: &Hold) -> &'static str {
    match hold {
        Hold::Write(_) => "turn",
        Hold::Read(_) => "reading",
        Hold::Permits(_) => "permits",
    }
}
