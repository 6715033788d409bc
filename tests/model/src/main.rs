//! One exploration, as large as memory allows: `cargo run -p quorum-model --release -- tokens --clients 3 --foreign 2`, or
//! `-- guard --losses 2`.

use std::fmt::Debug;
use std::io::{self, Write, stdout};
use std::process::ExitCode;

use clap::Parser;
use quorum_model::{Bounds, Check, Claimed, Guard, Quorum, Report, Rounds, Rules, guard};

/// Explores every order of events of the quorum protocol, and says which claims hold.
#[derive(Debug, Parser)]
enum Args {
    /// How tokens are drawn and acknowledged
    Tokens(Tokens),
    /// How nodes that forgot are restored: marks, dwells, announcements and moves
    Guard(Guarded),
}

#[derive(Debug, clap::Args)]
struct Tokens {
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
    /// What a node that forgot everything does
    #[arg(long, value_enum, default_value = "complete")]
    guard: Guard,
}

#[derive(Debug, clap::Args)]
struct Guarded {
    /// Which nodes and clients there are
    #[arg(value_enum, default_value = "three")]
    scene: guard::Scene,
    /// The form of the guard
    #[arg(long, value_enum, default_value = "complete")]
    form: guard::Form,
    /// How far time advances
    #[arg(long)]
    ticks: Option<u8>,
    /// Nodes that lose everything
    #[arg(long)]
    losses: Option<u8>,
    /// Nodes that restart with their data
    #[arg(long)]
    restarts: Option<u8>,
    /// Nodes that restart with the data that they had at the beginning
    #[arg(long)]
    rollbacks: Option<u8>,
    /// Nodes whose clock steps forward
    #[arg(long)]
    steps: Option<u8>,
    /// When a clock may step forward
    #[arg(long, value_enum)]
    step: Option<guard::Steps>,
    /// How many of the other nodes a pass may miss
    #[arg(long)]
    silent: Option<u8>,
    /// How many passes there are at a time, 1 or 2
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=2))]
    passes: Option<u8>,
    /// How passes look at the nodes
    #[arg(long, value_enum)]
    looks: Option<guard::Looks>,
}

fn main() -> io::Result<ExitCode> {
    match Args::parse() {
        Args::Tokens(args) => match args.explore() {
            Some(report) => tell(&report),
            None => {
                writeln!(io::stderr(), "there is no model of {} nodes and {} clients", args.nodes, args.clients)?;
                Ok(ExitCode::FAILURE)
            }
        },
        Args::Guard(args) => tell(&args.scene.explore(args.form, args.bounds())),
    }
}

fn tell<C: Claimed, A: Debug>(report: &Report<C, A>) -> io::Result<ExitCode> {
    write!(stdout(), "{report}")?;
    Ok(if report.refuted().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Tokens {
    fn explore(&self) -> Option<Report<quorum_model::Claim, quorum_model::Action>> {
        let rules = Rules { rounds: self.rounds, check: self.check, guard: self.guard };
        let bounds = Bounds { foreign: self.foreign, crashes: self.crashes, duplicates: self.duplicates };
        Some(match (self.nodes, self.clients) {
            (3, 2) => Quorum::<3, 2> { rules, bounds }.explore(),
            (3, 3) => Quorum::<3, 3> { rules, bounds }.explore(),
            (3, 4) => Quorum::<3, 4> { rules, bounds }.explore(),
            (5, 2) => Quorum::<5, 2> { rules, bounds }.explore(),
            (5, 3) => Quorum::<5, 3> { rules, bounds }.explore(),
            _ => return None,
        })
    }
}

impl Guarded {
    /// The scene's settings, except those that are given here.
    fn bounds(&self) -> guard::Bounds {
        let usual = self.scene.bounds();
        guard::Bounds {
            ticks: self.ticks.unwrap_or(usual.ticks),
            losses: self.losses.unwrap_or(usual.losses),
            restarts: self.restarts.unwrap_or(usual.restarts),
            rollbacks: self.rollbacks.unwrap_or(usual.rollbacks),
            steps: (self.steps.unwrap_or(usual.steps.0), self.step.unwrap_or(usual.steps.1)),
            moves: usual.moves,
            silent: self.silent.unwrap_or(usual.silent),
            passes: self.passes.unwrap_or(usual.passes),
            looks: self.looks.unwrap_or(usual.looks),
        }
    }
}
