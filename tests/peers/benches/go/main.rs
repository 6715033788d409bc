//! What `concurrency.Mutex` of etcd's client for Go costs, beside leasehold: rows where either one is ahead, in one form. What both do in
//! trouble is in the tests of `lock-etcd`.
//!
//! It runs in Go with loops of its own: no measured call crosses from Rust to Go. `cargo xtask go` compiles that program.

#[path = "../beside/mod.rs"]
mod beside;
mod contest;
mod theirs;
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

/// The part of a measured process. Theirs are in Go.
fn measure(plan: &Plan) -> Result<()> {
    run(plan, Ours::connect(plan))
}

fn print() -> Result<()> {
    println!("{}", contest::all()?);
    Ok(())
}
