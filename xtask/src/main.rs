//! The chores of this workspace: `cargo xtask COMMAND`.
#![expect(clippy::print_stderr, reason = "a tool for a terminal")]

mod bench;
mod ci;
mod services;
mod step;
mod test;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test   run all tests, getting the servers that they need
  bench  how fast leasehold is; --help tells what can be asked for
  ci     what lands has to pass: test, then format, lints, docs, feature builds, house rules
  tidy   check the house rules alone: who may depend on whom, versions, the README";

fn main() -> ExitCode {
    let command = std::env::args().nth(1);
    let outcome = match command.as_deref() {
        Some("test") => test::run(),
        Some("bench") => bench::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("ci") => ci::run(),
        Some("tidy") => tidy::run(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(64);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
