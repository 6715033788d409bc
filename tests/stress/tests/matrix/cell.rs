//! One setting under one fault.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};
use std::{env, thread};

use fastrand::Rng;
use serde::Serialize;
use stress::cast::{HOT, TTL};
use stress::check::Loss;
use stress::crew::{Crew, Ground, Link};
use stress::double::{doubly_held, longest_pause};
use stress::history::{Event, What, now};
use stress::part::Facade;
use stress::run::{await_workers, calm_down, ground, is_granted_again, judge};
use stress::storm::Wire;
use test_support::Machine;

use crate::deployments::Deployment;
use crate::fault::{Fault, LASTS};
use crate::setting::Setting;

const WORKER: &str = env!("CARGO_BIN_EXE_stress-worker");
const CREW: [Facade; 4] = [Facade::Async, Facade::Blocking, Facade::Async, Facade::Blocking];

/// How often the fault has to take effect in a cell.
const ENOUGH: u64 = 20;
/// How long it strikes at most.
const STRIKES_WITHIN: Duration = Duration::from_secs(600);
/// The pause between two strikes.
const PAUSE: Duration = Duration::from_millis(300);
/// By how many seconds a clock is ahead at most, or behind.
const STEP_MAX: i64 = 3_600;
/// How long a process is suspended: past its lease.
const PAST_TTL: Duration = TTL.saturating_mul(3).checked_div(2).unwrap();

/// What was seen.
#[derive(Debug, Serialize)]
struct Seen {
    setting: &'static str,
    fault: Fault,
    seed: u64,
    fired: u64,
    wanted: u64,
    turns: usize,
    /// For how long locks had more than one holder.
    double_ms: u128,
    /// The longest time in which nobody had the busiest lock.
    pause_ms: u128,
    /// Writes of lost holders that the register refused.
    refused: u64,
    /// All that should not be, of any kind.
    problems: usize,
    seconds: u64,
}

/// Plays a cell, and reports it.
///
/// # Panics
/// If the fault took effect too rarely, or anything is wrong.
pub(crate) fn play(setting: &Setting, fault: Fault) {
    let (begun, ground, clients) = (Instant::now(), ground(WORKER), Machine::build());
    let ground = Ground { environment: clients.environment(), ..ground };
    let rng = Rng::with_seed(ground.seed);
    let deployment = (setting.start)();
    let crew = Crew::start(ground, CREW.map(|facade| deployment.post(facade)).into());
    await_workers(&crew);
    let mut cell = Cell { deployment, crew, clients, rng, losses: Vec::new() };
    let (from, mut fired, mut is_in_use) = (now(), 0, true);
    while is_in_use && fired < ENOUGH && begun.elapsed() < STRIKES_WITHIN {
        fired += u64::from(cell.strike(fault));
        is_in_use = is_granted_again(&cell.crew, HOT, now());
        thread::sleep(PAUSE);
    }
    let Cell { mut crew, losses, .. } = cell;
    // Without a queue, all seats get a turn only if locks are free at times.
    crew.ease();
    let problems = calm_down(&mut crew, &losses);
    let turns = crew.turns();
    Seen {
        setting: setting.name,
        fault,
        seed: crew.seed(),
        fired,
        wanted: ENOUGH,
        turns: turns.len(),
        double_ms: doubly_held(&turns).as_millis(),
        pause_ms: longest_pause(&turns, HOT, from).as_millis(),
        refused: crew.register.refused(),
        problems: problems.len(),
        seconds: begun.elapsed().as_secs(),
    }
    .report();
    judge(crew, &problems);
    assert!(is_in_use, "no lock was granted after the last fault");
    assert!(fired >= ENOUGH, "{fault:?} took effect only {fired} times in {STRIKES_WITHIN:?}");
}

impl Seen {
    fn report(&self) {
        let line = serde_json::to_string(self).unwrap();
        println!("{line}");
        if let Some(path) = env::var_os("LEASEHOLD_MATRIX") {
            let file = File::options().append(true).create(true).open(path);
            writeln!(file.unwrap(), "{line}").unwrap();
        }
    }
}

/// A cell while it is played.
struct Cell {
    deployment: Box<dyn Deployment>,
    crew: Crew,
    /// The machine of the crew.
    clients: Machine,
    rng: Rng,
    losses: Vec<Loss>,
}

impl Cell {
    /// Injects a fault, ends it, and returns whether it took effect.
    fn strike(&mut self, fault: Fault) -> bool {
        let Self { deployment, crew, clients, rng, losses } = self;
        let worker = rng.usize(..crew.workers.len());
        let links = crew.links(worker);
        match fault {
            Fault::Cut => return crew.cut(&links) > 0,
            Fault::Delay => return break_network(crew, &links, test_support::Fault::Delay(TTL / 5)),
            Fault::HalfOpen => return break_network(crew, &links, Wire::DropReplies.fault()),
            Fault::FullMemory => return deployment.fill_memory(rng),
            Fault::FullDisk => return deployment.fill_disk(rng, clients),
            Fault::StepServer => return deployment.step_clock(rng),
            Fault::Eviction => losses.extend(deployment.evict(rng)),
            Fault::StepClient => {
                clients.step_clock(rng.i64(-STEP_MAX..=STEP_MAX));
                return clients.has(crew.workers[worker].pid());
            }
            Fault::KillClient => crew.replace(worker),
            Fault::StopClient => {
                crew.workers[worker].freeze();
                let held = holds(&crew.history_of(worker));
                thread::sleep(PAST_TTL);
                crew.workers[worker].thaw();
                return held;
            }
            Fault::KillServer => deployment.kill(rng),
            Fault::StopServer => deployment.stop(rng),
            Fault::FailOver => return deployment.fail_over(),
        }
        true
    }
}

/// Whether any seat holds a lock at the end of this history.
fn holds(history: &[Event]) -> bool {
    let seats: BTreeSet<_> = history.iter().map(|event| event.seat).collect();
    let last = |seat| history.iter().rfind(|event| event.seat == seat);
    seats.into_iter().filter_map(last).any(|event| matches!(event.what, What::Has(_) | What::Still))
}

fn break_network(crew: &Crew, links: &[Link], fault: test_support::Fault) -> bool {
    crew.begin_fault(links, fault);
    thread::sleep(LASTS);
    crew.end_fault(links, fault) > 0
}
