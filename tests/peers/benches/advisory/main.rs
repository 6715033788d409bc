//! What an advisory lock of PostgreSQL costs and does, beside leasehold: rows where either one is ahead, in one form.
//!
//! The advisory lock is that of sqlx, on connections that stay open: its fastest use. leasehold writes each grant to disk.
//!
//! Reading order: `contest` (what is measured) · `locks` (by whom) · `process` (where) · `figures` (what is made of it) · `table` · `trouble`.

mod contest;
mod figures;
mod locks;
mod process;
#[path = "../../tests/advisory/scenes/mod.rs"]
mod scenes;
mod table;
mod trouble;

use std::env;

use anyhow::Result;
use bench_measure::{Plan, run};

use crate::locks::{Ours, THEIRS, Theirs};

/// What cargo adds to the arguments of a bench.
const BY_CARGO: &str = "--bench";

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
