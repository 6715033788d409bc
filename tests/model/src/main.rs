//! One exploration, as large as memory allows: `cargo run -p quorum-model --release -- --clients 3 --foreign 2`.

use std::io::{self, Write, stdout};
use std::process::ExitCode;

use clap::Parser;
use quorum_model::{Bounds, Check, Guard, Quorum, Report, Rounds, Rules};

/// Explores every order of events of the quorum protocol, and says which claims hold.
#[derive(Debug, Parser)]
struct Args {
    /// Nodes: 3 or 5
    #[arg(long, default_value_t = 3)]
    nodes: u8,
    /// Clients: 2 to 4 with three nodes, 2 or 3 with five
    #[arg(long, default_value_t = 2)]
    clients: u8,
    /// Grants of other locks
    #[arg(long, default_value_t = 0)]
    foreign: u8,
    /// Nodes that forget everything
    #[arg(long, default_value_t = 0)]
    crashes: u8,
    /// Acquires that arrive twice
    #[arg(long, default_value_t = 0)]
    duplicates: u8,
    /// When a client is handed out
    #[arg(long, value_enum, default_value = "fast")]
    rounds: Rounds,
    /// What a node compares with a token
    #[arg(long, value_enum, default_value = "grant")]
    check: Check,
    /// What a node does that forgot everything
    #[arg(long, value_enum, default_value = "complete")]
    guard: Guard,
}

fn main() -> io::Result<ExitCode> {
    let args = Args::parse();
    let Some(report) = explore(&args) else {
        writeln!(io::stderr(), "there is no model of {} nodes and {} clients", args.nodes, args.clients)?;
        return Ok(ExitCode::FAILURE);
    };
    write!(stdout(), "{report}")?;
    Ok(if report.refuted().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn explore(args: &Args) -> Option<Report> {
    let rules = Rules { rounds: args.rounds, check: args.check, guard: args.guard };
    let bounds = Bounds { foreign: args.foreign, crashes: args.crashes, duplicates: args.duplicates };
    Some(match (args.nodes, args.clients) {
        (3, 2) => Quorum::<3, 2> { rules, bounds }.explore(),
        (3, 3) => Quorum::<3, 3> { rules, bounds }.explore(),
        (3, 4) => Quorum::<3, 4> { rules, bounds }.explore(),
        (5, 2) => Quorum::<5, 2> { rules, bounds }.explore(),
        (5, 3) => Quorum::<5, 3> { rules, bounds }.explore(),
        _ => return None,
    })
}
