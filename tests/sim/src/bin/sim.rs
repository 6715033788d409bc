//! Plays many seeds: `cargo run --release -p lock-sim --bin sim -- --seeds 20000`.
#![expect(clippy::print_stderr, reason = "a tool for a terminal")]

use std::env;
use std::io::{IsTerminal, stderr};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use lock_sim::{Fault, Report, Tally, leased, memory, quorum, redis, replicated, session};

const USAGE: &str = "\
usage: sim [--seeds N] [--first S] [--half NAME] [--mistake NAME]

  --seeds N   how many seeds are played, 1000 where nothing is said
  --first S   the first of them, 0 where nothing is said
  --half H    only with one Redis (redis), a store in memory (memory), a store whose entries end with a session (session) or
              with a lease each (leased), a Redis with replicas (replicated), one fail-over of it (failovers), or one during hand-overs (hand-overs), a quorum (quorum),
              or only the plots of a quorum (plots)
  --mistake M with one rule of the quorum, or of the Redis with replicas, turned off; tells which seeds find out

LEASEHOLD_SEED=S plays only that one, and prints what happened in it.";

/// One kind of play.
struct Half {
    name: &'static str,
    play: fn(u64) -> Report,
    tell: fn(u64) -> Report,
    /// All of these must happen.
    faults: &'static [&'static [Fault]],
}

const HALVES: [Half; 9] = [
    Half {
        name: "redis",
        play: |seed| redis::play(seed, None),
        tell: |seed| redis::tell(seed, None),
        faults: &[&Fault::WITH_ONE_REDIS],
    },
    Half {
        name: "memory",
        play: |seed| memory::play(seed, None),
        tell: |seed| memory::tell(seed, None),
        faults: &[&Fault::WITH_ONE_REDIS, &Fault::OF_ALL_KINDS],
    },
    Half {
        name: "session",
        play: |seed| session::play(seed, None),
        tell: |seed| session::tell(seed, None),
        faults: &[&Fault::WITH_SESSIONS],
    },
    Half {
        name: "leased",
        play: |seed| leased::play(seed, None),
        tell: |seed| leased::tell(seed, None),
        faults: &[&Fault::WITH_LEASES],
    },
    Half {
        name: "replicated",
        play: |seed| replicated::play(seed, None),
        tell: |seed| replicated::tell(seed, None),
        faults: &[&Fault::WITH_REPLICAS],
    },
    Half {
        name: "failovers",
        play: |seed| replicated::play_failover(seed, None),
        tell: |seed| replicated::tell_failover(seed, None),
        faults: &[&Fault::IN_A_FAILOVER],
    },
    Half {
        name: "hand-overs",
        play: |seed| replicated::play_hand_overs(seed, None),
        tell: |seed| replicated::tell_hand_overs(seed, None),
        faults: &[&Fault::IN_HAND_OVERS],
    },
    Half {
        name: "quorum",
        play: |seed| quorum::play(seed, None),
        tell: |seed| quorum::tell(seed, None),
        faults: &[&Fault::WITH_A_QUORUM],
    },
    Half {
        name: "plots",
        play: |seed| quorum::play_plot(seed, None),
        tell: |seed| quorum::tell_plot(seed, None),
        faults: &[&Fault::IN_A_PLOT],
    },
];

/// How much of the diary of a failed run is shown, unless that run was asked for.
const LINES: usize = 100;

#[derive(Debug)]
struct Options {
    seeds: u64,
    first: u64,
    half: Option<String>,
    mistake: Option<String>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self { seeds: 1000, first: 0, half: None, mistake: None };
        while let Some(argument) = arguments.next() {
            let value = arguments.next()?;
            match argument.as_str() {
                "--seeds" => options.seeds = value.parse().ok()?,
                "--first" => options.first = value.parse().ok()?,
                "--half" => options.half = Some(value).filter(|value| HALVES.iter().any(|half| half.name == value)),
                "--mistake" => options.mistake = Some(value),
                _ => return None,
            }
            if argument == "--half" && options.half.is_none() {
                return None;
            }
        }
        Some(options)
    }
}

type Play = Box<dyn Fn(u64) -> Report>;

/// Playing and telling with the rule of this name turned off, if there is one.
fn with_mistake(half: Option<&str>, name: &str) -> Option<(Play, Play)> {
    let is_named = |debug: String| debug == name;
    if let Some("replicated" | "failovers" | "hand-overs") = half {
        let mistake = replicated::Mistake::ALL.into_iter().find(|mistake| is_named(format!("{mistake:?}")))?;
        let (play, tell): (fn(_, _) -> _, fn(_, _) -> _) = match half {
            Some("failovers") => (replicated::play_failover, replicated::tell_failover),
            Some("hand-overs") => (replicated::play_hand_overs, replicated::tell_hand_overs),
            Some(_) | None => (replicated::play, replicated::tell),
        };
        return Some((
            Box::new(move |seed| play(seed, Some(mistake))),
            Box::new(move |seed| tell(seed, Some(mistake))),
        ));
    }
    let mistake = quorum::Mistake::ALL.into_iter().find(|mistake| is_named(format!("{mistake:?}")))?;
    let (play, tell): (fn(_, _) -> _, fn(_, _) -> _) = match half {
        Some("plots") => (quorum::play_plot, quorum::tell_plot),
        Some(_) | None => (quorum::play, quorum::tell),
    };
    Some((Box::new(move |seed| play(seed, Some(mistake))), Box::new(move |seed| tell(seed, Some(mistake)))))
}

/// Which seeds find a mistake.
fn find(mistake: &str, options: &Options) -> ExitCode {
    let Some((play, tell)) = with_mistake(options.half.as_deref(), mistake) else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    let mut found = 0_u64;
    for seed in options.first..options.first.saturating_add(options.seeds) {
        let broken = catch_unwind(AssertUnwindSafe(|| play(seed).broken));
        if let Some(told) = broken.map_or(Some("a panic".to_owned()), |broken| broken.map(|one| one.to_string())) {
            found += 1;
            eprintln!("seed {seed}: {told:.200}");
        }
        if options.seeds == 1 {
            eprintln!("{}", tell(seed).diary.join("\n"));
        }
    }
    eprintln!("{mistake}: found by {found} of {} seeds", options.seeds);
    if found > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    let Some(mut options) = Options::parse(env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(64);
    };
    if let Some(mistake) = &options.mistake {
        return find(mistake, &options);
    }
    let alone: Option<u64> = env::var("LEASEHOLD_SEED").ok().and_then(|seed| seed.parse().ok());
    if let Some(seed) = alone {
        (options.first, options.seeds) = (seed, 1);
    }
    let halves = HALVES.iter().filter(|half| options.half.as_ref().is_none_or(|only| only == half.name));
    let failed = halves.filter(|half| !play_all(half, &options, alone.is_some())).count();
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The outcome of many runs.
#[derive(Default)]
struct Sum {
    played: u64,
    steps: u64,
    tally: Tally,
    failed: Option<(u64, String)>,
}

/// Plays all seeds, on all cores. Returns whether every rule held.
fn play_all(half: &Half, options: &Options, tell: bool) -> bool {
    let (began, next, sum) = (Instant::now(), AtomicU64::new(options.first), Mutex::new(Sum::default()));
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, Into::into) {
            scope.spawn(|| play_some(half, options, &next, &sum));
        }
    });
    panic::set_hook(hook);
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    let took = began.elapsed();
    eprintln!("{}: {} seeds, {} steps, {took:.1?}", half.name, sum.played, sum.steps);
    let fired: Vec<_> =
        half.faults.iter().copied().flatten().map(|fault| format!("{fault:?} {}", sum.tally.of(*fault))).collect();
    eprintln!("  {}", fired.join(", "));
    if let Some((seed, told)) = &sum.failed {
        let lines = catch_unwind(|| (half.tell)(*seed).diary).unwrap_or_default();
        let from = if tell { 0 } else { lines.len().saturating_sub(LINES) };
        eprintln!("{}\n{told}", lines[from..].join("\n"));
        eprintln!("seed {seed}; play it again: LEASEHOLD_SEED={seed} cargo xtask sim --half {}", half.name);
    } else if tell {
        eprintln!("{}", (half.tell)(options.first).diary.join("\n"));
    }
    sum.failed.is_none()
}

fn play_some(half: &Half, options: &Options, next: &AtomicU64, sum: &Mutex<Sum>) {
    let end = options.first.saturating_add(options.seeds);
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| (half.play)(seed)));
        let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
        if sum.add(seed, outcome) {
            next.store(end, Ordering::Relaxed);
        }
        if stderr().is_terminal() && sum.played.is_multiple_of(100) {
            eprint!("\r{}: {} of {} seeds \r", half.name, sum.played, options.seeds);
        }
    }
}

impl Sum {
    /// Returns whether that run failed.
    fn add(&mut self, seed: u64, outcome: thread::Result<Report>) -> bool {
        self.played += 1;
        let told = match outcome {
            Ok(report) => {
                self.steps += report.steps;
                self.tally.add(&report.tally);
                report.broken.map(|broken| broken.to_string())
            }
            Err(payload) => {
                let told = payload.downcast_ref::<String>().map(String::as_str);
                let told = told.or_else(|| payload.downcast_ref::<&str>().copied());
                Some(format!("the machine panicked: {}", told.unwrap_or("it did not say why")))
            }
        };
        let failed = told.map(|told| (seed, told));
        let has_failed = failed.is_some();
        self.failed = self.failed.take().or(failed);
        has_failed
    }
}
