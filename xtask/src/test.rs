//! `cargo xtask test`: all tests that a change can break.

use std::mem;
use std::thread;

use anyhow::Result;

use crate::{curator, go, porcupine, services, step};

/// How many tests run at once for each core. Most of them wait: for a lease to end, or for a server.
const TESTS_PER_CORE: usize = 5;

/// How long each test with random input reads, in seconds: for each change, and each night.
const FUZZ_SECONDS: [&str; 2] = ["1", "20"];

/// All programs run, even after one has failed, so that one run shows every test that fails.
const TEST: [&str; 2] = ["test", "--no-fail-fast"];

/// Runs the tests of the workspace.
pub(crate) fn run() -> Result<()> {
    services::for_tests()?;
    tests(FUZZ_SECONDS[0], &[])
}

/// Runs them with those that are ignored otherwise.
pub(crate) fn all() -> Result<()> {
    services::all()?;
    // The default features include no store. A build of their own for a few tests takes a minute of processor time.
    let without_stores = || step::cargo(&[&TEST[..], &["--package", "leasehold", "--lib"]].concat());
    // Commands of their own download what these need.
    let ignored = ["--", "--include-ignored", "--skip", curator::TEST, "--skip", go::TESTS, "--skip", porcupine::TESTS];
    [tests(FUZZ_SECONDS[1], &ignored), without_stores()].into_iter().collect()
}

/// Runs the tests beside other lock libraries.
pub(crate) fn peers() -> Result<()> {
    step::cargo(&[&TEST[..], &["--manifest-path", "tests/peers/Cargo.toml"]].concat())
}

fn tests(fuzz_seconds: &str, arguments: &[&str]) -> Result<()> {
    let every = ["--workspace", "--all-features"];
    step::cargo(&[&["test", "--no-run"], &every[..]].concat())?;
    let mut command = step::command(&[&TEST[..], &every[..], arguments].concat());
    command.env("RUST_TEST_THREADS", (TESTS_PER_CORE * thread::available_parallelism()?.get()).to_string());
    command.env("LEASEHOLD_FUZZ_SECONDS", fuzz_seconds);
    let mut failures = Failures::default();
    let outcome = step::run_reading(command, |line| failures.read(line));
    eprint!("{}", failures.said);
    outcome
}

/// Collects the output of programs that failed, to repeat it at the end of the run.
#[derive(Default)]
struct Failures {
    said: String,
    program: String,
}

impl Failures {
    /// Reads a line of what cargo and the programs print. Cargo says that a program failed after its output, even if it crashed.
    fn read(&mut self, line: &str) {
        if ["Running ", "Doc-tests "].iter().any(|start| line.trim_start().starts_with(start)) {
            self.program.clear();
        }
        if !line.ends_with(" ... ok") && !line.is_empty() {
            self.program += line;
            self.program.push('\n');
        }
        if line.starts_with("error: ") {
            self.said += &mem::take(&mut self.program);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_programs_that_failed_is_collected() {
        let mut failures = Failures::default();
        let program = |name: &str| format!("     Running {name}");
        let crashed = [&program("b"), "test c ... FAILED", "it broke", "error: test failed, to rerun pass `--test b`"];
        let ended = [&program("a"), "test a ... ok", "what a test says", "test result: ok."];
        ended.into_iter().chain(crashed).chain(ended).for_each(|line| failures.read(line));
        assert_eq!(failures.said, crashed.join("\n") + "\n");
    }
}
