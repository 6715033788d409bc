//! Every setting under every fault that applies: a *cell* is one setting with one fault, which strikes again and again while
//! processes of both facades use its locks. Each cell prints what was seen, and appends it to `LEASEHOLD_MATRIX`, a file for
//! `cargo xtask chaos --matrix`.
//!
//! The seed is printed, and read from `LEASEHOLD_SEED`. `LEASEHOLD_STRESS_SECONDS` is how long cells begin; the first one has the number
//! `LEASEHOLD_MATRIX_FROM`.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test")]

mod cell;
mod deployments;
mod fault;
mod setting;

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use stress::run::{machine, number, storm};

use crate::cell::play;
use crate::fault::Fault;
use crate::setting::{SETTINGS, Setting};

/// How long cells begin, unless the environment says otherwise.
const BEGINS: Duration = Duration::from_secs(60);

/// All cells in an order in which neighbours differ in their setting, so that a short run has many of them.
fn cells() -> Vec<(&'static Setting, Fault)> {
    let of_fault = |fault| SETTINGS.iter().filter(move |setting| setting.has(fault)).map(move |at| (at, fault));
    Fault::ALL.into_iter().flat_map(of_fault).collect()
}

#[test]
#[ignore = "it takes hours; `cargo xtask chaos --matrix` runs a part of it"]
fn every_cell_keeps_its_promises() {
    let (cells, begun, length) = (cells(), Instant::now(), storm(BEGINS));
    let mut wrong = 0;
    let from = usize::try_from(number("LEASEHOLD_MATRIX_FROM").unwrap_or_default()).unwrap();
    for place in from..from + cells.len() {
        let (setting, fault) = cells[place % cells.len()];
        println!("LEASEHOLD_MATRIX_FROM={place}: {} under {fault:?}", setting.name);
        // All cells are played, whatever becomes of one.
        wrong += usize::from(catch_unwind(|| play(setting, fault)).is_err());
        if begun.elapsed() > length {
            break;
        }
    }
    assert_eq!(wrong, 0, "cells that went wrong");
}

#[test]
fn a_cell_counts_its_faults_and_finds_one_holder() {
    let _machine = machine();
    let redis = SETTINGS.iter().find(|setting| setting.name == "redis").unwrap();
    play(redis, Fault::Cut);
}

#[test]
fn each_fault_applies_to_a_setting_and_each_setting_has_faults() {
    let cells = cells();
    assert!(Fault::ALL.iter().all(|fault| cells.iter().any(|(_, other)| other == fault)));
    assert!(SETTINGS.iter().all(|setting| cells.iter().any(|(other, _)| other.name == setting.name)));
}
