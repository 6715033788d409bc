//! `cargo xtask bench`: how fast leasehold is, compared with its raw client and with another library.
//!
//! Absolute times depend on the machine. What carries over are the ratios to two raw loops over the same kind of
//! connection: the minimum for a lock, and our own scripts without our library. All subjects of a scenario run in turn,
//! each in its own process, in an order that is drawn again in every round.
//!
//! Reading order: `args` · `scenario`, `kind`, `compared` (what is measured), `scale` (how much) · `rounds`, `awake` (in which order) · `runs`, `steps`,
//! `queue`, `readers`, `quorum`, `database`, `replicas`, `fail_over` (one run) · `process`, `server` (both sides of it), `child` (what the processes do) · `hand_over`, `costs`,
//! `figures`, `ratio` (what it says) · `results`, `measured`, `targets`, `table`, `chart`, `summary`, `history`,
//! `page`, `publish` (how it is shown).
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_arithmetic,
    reason = "figures for display: nothing depends on their last digit"
)]

mod args;
mod awake;
mod chart;
mod child;
mod compared;
mod costs;
mod database;
mod fail_over;
mod figures;
mod hand_over;
mod history;
mod kind;
mod machine;
mod measured;
mod page;
mod process;
mod publish;
mod queue;
mod quorum;
mod ratio;
mod readers;
mod replicas;
mod results;
mod rounds;
mod runs;
mod scale;
mod scenario;
mod server;
mod steps;
mod summary;
mod table;
mod targets;

use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use self::args::Args;
use self::results::Results;
use self::rounds::Rounds;

fn main() -> ExitCode {
    let mut line = std::env::args().skip(1);
    let outcome = match line.next() {
        Some(role) if role == process::ROLE => child::main(line.next()),
        Some(role) if role == awake::ROLE => awake::spin(),
        Some(_) | None => bench(&Args::parse()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, nothing can be reported.
            let _ = writeln!(stderr(), "bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn bench(args: &Args) -> Result<()> {
    let results = match &args.from {
        Some(path) => Results::read(path)?,
        None => Rounds::new(args)?.run()?,
    };
    let mut out = stdout().lock();
    writeln!(out, "{}", table::text(&results))?;
    if let Some(path) = &args.json {
        results.write(path)?;
    }
    if let Some(docs) = &args.page {
        publish::all(docs, &results, &args.version_name)?;
    }
    results.complete()
}
