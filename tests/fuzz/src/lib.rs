//! Random input for everything that reads what comes from outside: URLs, configurations, replies of servers, rows, headers.
//!
//! Each test reads for [`SECONDS`], or for as many as `LEASEHOLD_FUZZ_SECONDS` says. A failure prints a seed;
//! `LEASEHOLD_SEED=N cargo test -p fuzz TEST` plays it again. Tests take turns, so that each knows what it allocates.

#![allow(clippy::panic, clippy::print_stderr, reason = "a part of tests")]

pub mod inputs;

use std::alloc::System;
use std::env;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How long each test reads.
pub const SECONDS: u64 = 2;

/// How many inputs one seed gives.
const CASES: u32 = 64;

/// How much one input may have allocated, in bytes, all in all. Inputs have a few kilobytes.
const ALLOCATED_MAX: usize = 4 << 20;

static TURN: Mutex<()> = Mutex::new(());

/// Has `read` read many inputs. It fails if it panics, or says what is wrong, or allocates too much. For programs in which only
/// such tests run.
pub fn fuzz<S: Strategy>(inputs: S, read: impl Fn(S::Value) -> TestCaseResult)
where
    S::Value: Debug,
{
    fuzz_beside_others(inputs, |input| {
        let region = Region::new(MEMORY);
        read(input)?;
        let allocated = region.change().bytes_allocated;
        prop_assert!(allocated <= ALLOCATED_MAX, "it allocated {allocated} bytes");
        Ok(())
    });
}

/// The same beside tests of other kinds: what `read` allocates is not known there.
pub fn fuzz_beside_others<S: Strategy>(inputs: S, read: impl Fn(S::Value) -> TestCaseResult)
where
    S::Value: Debug,
{
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = env::var("LEASEHOLD_SEED").ok().map(|text| number("LEASEHOLD_SEED", &text));
    let seconds = env::var("LEASEHOLD_FUZZ_SECONDS").map_or(SECONDS, |text| number("LEASEHOLD_FUZZ_SECONDS", &text));
    let (start, time) = (Instant::now(), Duration::from_secs(seconds));
    let mut seed = wanted.unwrap_or_else(|| fastrand::u64(..));
    loop {
        one_seed(seed, &inputs, &read);
        if wanted.is_some() || start.elapsed() >= time {
            return;
        }
        seed = seed.wrapping_add(1);
    }
}

fn number(variable: &str, text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}"))
}

fn one_seed<S: Strategy>(seed: u64, inputs: &S, read: &impl Fn(S::Value) -> TestCaseResult)
where
    S::Value: Debug,
{
    let bytes: Vec<u8> = seed.to_le_bytes().into_iter().cycle().take(32).collect();
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let outcome = runner.run(inputs, read);
    if let Err(failure) = outcome {
        panic!("{failure}\nagain with: LEASEHOLD_SEED={seed}");
    }
}

/// What a refusal must be: one short line that can go to a terminal.
pub fn is_presentable(refusal: &str) -> TestCaseResult {
    prop_assert!(!refusal.is_empty() && refusal.len() < 1500, "{} bytes: {refusal}", refusal.len());
    prop_assert!(!refusal.chars().any(char::is_control), "{refusal:?}");
    Ok(())
}
