//! What Curator's `InterProcessMutex` costs and does at ZooKeeper, beside leasehold: rows where either one is ahead, in one form.
//!
//! Curator runs in Java, as Debian has it, with loops of its own: no measured call crosses from Rust to Java.
//!
//! Reading order: `contest` (how fast) · `theirs` (Curator's runs) · `trouble` (what they do). `beside` has what comparisons share.

#[path = "../beside/mod.rs"]
mod beside;
mod contest;
#[path = "../../tests/curator/scenes.rs"]
mod scenes;
mod theirs;
mod trouble;
#[path = "../beside/turns.rs"]
mod turns;

use std::env;

use anyhow::Result;
use bench_measure::{Plan, run};

use crate::beside::BY_CARGO;
use crate::beside::ours::Ours;

fn main() -> Result<()> {
    match env::args().nth(1).filter(|argument| argument != BY_CARGO) {
        Some(plan) => measure(&Plan::from_argument(Some(plan))?),
        None => print(),
    }
}

/// The part of a measured process. Theirs are in Java.
fn measure(plan: &Plan) -> Result<()> {
    run(plan, Ours::connect(plan))
}

fn print() -> Result<()> {
    println!("{}\n", contest::all()?);
    println!("{}", trouble::all()?);
    Ok(())
}
