//! The real machine: whatever a seed decides, every rule holds.
//!
//! `LEASEHOLD_SEEDS=n` plays so many seeds, `LEASEHOLD_SEED=n` that one alone. A failure shows what happened before it.

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lock_sim::{Fault, Report, Tally, play};

/// How many seeds are played where nothing else is said.
const SEEDS: u64 = 1000;

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

/// Plays a seed; a rule that is broken, or an assertion of the machine's, says how to play it again.
fn checked(seed: u64) -> Report {
    let again = format!("LEASEHOLD_SEED={seed} cargo test -p lock-sim --test it every_rule_holds");
    let Ok(report) = catch_unwind(AssertUnwindSafe(|| play(seed, None))) else { panic!("play it again: {again}") };
    if let Some(broken) = &report.broken {
        panic!("{broken}\n{}\nplay it again: {again}", report.diary.join("\n"));
    }
    report
}

#[test]
fn every_rule_holds_and_every_fault_fires() {
    if let Some(seed) = number("LEASEHOLD_SEED") {
        checked(seed);
        return;
    }
    let seeds = number("LEASEHOLD_SEEDS").unwrap_or(SEEDS);
    let mut tally = Tally::default();
    for seed in 0..seeds {
        tally.add(&checked(seed).tally);
    }
    for fault in Fault::ALL {
        assert!(tally.of(fault) > 0 || seeds < SEEDS, "{fault:?} never happened in {seeds} runs");
    }
}

#[test]
fn a_seed_decides_everything() {
    for seed in [1, 2, 3] {
        let (one, other) = (play(seed, None), play(seed, None));
        assert_eq!((one.digest, one.steps), (other.digest, other.steps), "seed {seed}");
        assert_ne!(one.digest, play(seed + 1, None).digest);
    }
}
