//! One setting under one fault.

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};
use std::{env, thread};

use fastrand::Rng;
use serde::Serialize;
use stress::cast::{HOT, TTL};
use stress::crew::{Crew, Link};
use stress::double::{doubly_held, longest_pause};
use stress::history::now;
use stress::part::Facade;
use stress::run::{await_workers, calm_down, ground, judge};
use stress::storm::Wire;

use crate::deployments::Deployment;
use crate::fault::{Fault, LASTS};
use crate::setting::Setting;

const WORKER: &str = env!("CARGO_BIN_EXE_stress-worker");
const CREW: [Facade; 4] = [Facade::Async, Facade::Blocking, Facade::Async, Facade::Blocking];

/// How often the fault has to take effect in a cell.
const ENOUGH: u64 = 20;
/// How long it strikes at most.
const STRIKES_WITHIN: Duration = Duration::from_secs(300);
/// The pause between two strikes.
const PAUSE: Duration = Duration::from_millis(300);
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
    println!("{} under {fault:?}", setting.name);
    let (begun, ground) = (Instant::now(), ground(WORKER));
    let mut rng = Rng::with_seed(ground.seed);
    let mut deployment = (setting.start)();
    let mut crew = Crew::start(ground, CREW.map(|facade| deployment.post(facade)).into());
    await_workers(&crew);
    let from = now();
    let mut fired = 0;
    while fired < ENOUGH && begun.elapsed() < STRIKES_WITHIN {
        fired += u64::from(strike(&mut *deployment, &mut crew, fault, &mut rng));
        thread::sleep(PAUSE);
    }
    // Without a queue, all seats get a turn only if locks are free at times.
    crew.ease();
    let problems = calm_down(&mut crew, &[]);
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

/// Injects a fault, ends it, and returns whether it took effect.
fn strike(deployment: &mut dyn Deployment, crew: &mut Crew, fault: Fault, rng: &mut Rng) -> bool {
    let worker = rng.usize(..crew.workers.len());
    let links = crew.links(worker);
    match fault {
        Fault::Cut if links.is_empty() => return deployment.cut(),
        Fault::Cut => return crew.cut(&links) > 0,
        Fault::Delay => return break_network(crew, &links, test_support::Fault::Delay(TTL / 5)),
        Fault::HalfOpen => return break_network(crew, &links, Wire::DropReplies.fault()),
        Fault::Full => return deployment.fill(),
        Fault::KillClient => crew.replace(worker),
        Fault::StopClient => {
            crew.workers[worker].freeze();
            thread::sleep(PAST_TTL);
            crew.workers[worker].thaw();
        }
        Fault::KillServer => deployment.kill(rng),
        Fault::StopServer => deployment.stop(rng),
        Fault::FailOver => deployment.fail_over(),
    }
    true
}

fn break_network(crew: &Crew, links: &[Link], fault: test_support::Fault) -> bool {
    crew.begin_fault(links, fault);
    thread::sleep(LASTS);
    crew.end_fault(links, fault) > 0
}
