//! Playing many seeds: whatever a seed decides, every rule holds.
//!
//! `LEASEHOLD_SEEDS=n` plays that many seeds, `LEASEHOLD_SEED=n` only that one. A failure shows what happened before
//! it.

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lock_sim::{Fault, Report, Rule, Tally};

/// How much is shown of what happened before a rule was broken.
const LINES: usize = 200;

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

/// Plays a seed. If a rule is broken or the machine panics, prints how to play it again.
fn checked(half: &str, seed: u64, play: impl Fn(u64) -> Report, tell: impl Fn(u64) -> Report) -> Report {
    let again = format!("LEASEHOLD_SEED={seed} cargo test -p lock-sim --test it {half}");
    let Ok(report) = catch_unwind(AssertUnwindSafe(|| play(seed))) else { panic!("play it again: {again}") };
    if let Some(broken) = &report.broken {
        let diary = tell(seed).diary;
        panic!("{}\n{broken}\nplay it again: {again}", diary[diary.len().saturating_sub(LINES)..].join("\n"));
    }
    report
}

/// Plays this many seeds by default. Each of the faults has to fire.
pub(crate) fn play_all(
    half: &str,
    usual: u64,
    faults: &[Fault],
    play: impl Fn(u64) -> Report,
    tell: impl Fn(u64) -> Report,
) {
    if let Some(seed) = number("LEASEHOLD_SEED") {
        checked(half, seed, play, tell);
        return;
    }
    let seeds = number("LEASEHOLD_SEEDS").unwrap_or(usual);
    let mut tally = Tally::default();
    for seed in 0..seeds {
        tally.add(&checked(half, seed, &play, &tell).tally);
    }
    for fault in faults {
        assert!(tally.of(*fault) > 0 || seeds < usual, "{fault:?} never happened in {seeds} runs");
    }
}

/// The first rule that is found broken within this many seeds.
#[track_caller]
pub(crate) fn found(within: u64, play: impl Fn(u64) -> Report) -> Rule {
    let mut broken = (0..within).filter_map(|seed| play(seed).broken);
    broken.next().unwrap_or_else(|| panic!("it was not found within {within} seeds")).rule
}

/// The same seed does the same in every detail.
#[track_caller]
pub(crate) fn decides_everything(tell: impl Fn(u64) -> Report) {
    for seed in [1, 2, 3] {
        let (one, other) = (tell(seed), tell(seed));
        assert_eq!((one.digest, one.steps), (other.digest, other.steps), "seed {seed}");
        assert_ne!(one.digest, tell(seed + 1).digest);
    }
}
