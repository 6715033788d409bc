//! What an advisory lock of PostgreSQL costs and does, beside leasehold: rows where either one is ahead, in one form.
//!
//! The advisory lock is that of sqlx, on connections that stay open: its fastest use. leasehold writes each grant to disk.
//!
//! Reading order: `contest` (how fast) · `locks` (theirs) · `trouble` (what they do). `beside` has what comparisons share.

#[path = "../beside/mod.rs"]
mod beside;
mod contest;
mod locks;
#[path = "../../tests/advisory/scenes/mod.rs"]
mod scenes;
mod trouble;

use std::env;

use anyhow::Result;
use bench_measure::{Plan, run};

use crate::beside::BY_CARGO;
use crate::beside::ours::Ours;
use crate::beside::scenario::THEIRS;
use crate::locks::Theirs;

fn main() -> Result<()> {
    match env::args().nth(1).filter(|argument| argument != BY_CARGO) {
        Some(plan) => measure(&Plan::from_argument(Some(plan))?),
        None => print(),
    }
}

/// The part of a measured process.
fn measure(plan: &Plan) -> Result<()> {
    if plan.subject == THEIRS { run(plan, Theirs::connect(plan)) } else { run(plan, Ours::connect(plan)) }
}

fn print() -> Result<()> {
    println!("{}", contest::all()?);
    println!("{}", trouble::all()?);
    Ok(())
}
