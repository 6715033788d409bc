//! `cargo xtask ci`: what every change must pass before it is merged, and with `--full` what the night adds.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::{
    api, book, chaos, curator, deny, drivers, features, fetch, model, mysql, porcupine, release, sim, step, test, tidy,
};

const USAGE: &str = "\
usage: cargo xtask ci [--full]

  --full  also what a change can hardly break: every case on every variant of a store, the browser, other drivers and libraries, all sets
          of features, long simulations, and real processes under constant failures";

/// A part of the checks.
type Step = (&'static str, fn() -> Result<()>);

/// What can fail because of a change: tests first, as a user would run them, and the cheapest checks last.
const CHANGE: [Step; 10] = [
    ("fetch the crates", fetch::run),
    ("tests", test::run),
    ("simulator", sim::some),
    ("format", format),
    ("lints", lints),
    ("documentation", documentation),
    ("public API", || api::run(&[])),
    ("features", features::run),
    ("house rules", tidy::run),
    ("README", tidy::readme),
];

/// What the night runs: the same and more, with the long forms of tests, simulator and features.
const NIGHT: [Step; 21] = [
    ("fetch the crates", fetch::run),
    ("all tests", test::all),
    ("tests on MySQL", mysql::run),
    ("Curator's own tests", curator::run),
    ("simulator", sim::many),
    ("models", || model::run(&[])),
    ("chaos", || chaos::run(&["--minutes".into(), "10".into()])),
    ("Porcupine", porcupine::run),
    ("chaos matrix", || chaos::run(&["--matrix".into(), "--minutes".into(), "10".into()])),
    ("format", format),
    ("lints", lints),
    ("documentation", documentation),
    ("public API", || api::run(&[])),
    ("all features", features::all),
    ("dependencies", || deny::run(&[])),
    ("peers", test::peers),
    ("drivers", drivers::run),
    ("book", book::run),
    ("packages", || release::run(&["--dry-run".into()])),
    ("house rules", tidy::run),
    ("README", tidy::readme),
];

/// Runs the steps until one fails, and says how long each took.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let steps: &[Step] = match arguments {
        [] => &CHANGE,
        [option] if option == "--full" => &NIGHT,
        _ => bail!("{USAGE}"),
    };
    let (begin, mut table) = (Instant::now(), String::new());
    let outcome = steps.iter().try_for_each(|(name, step)| {
        let start = Instant::now();
        let outcome = step();
        let mark = if outcome.is_ok() { "" } else { "  failed" };
        table += &format!("  {name:<18}{:>5} s{mark}\n", start.elapsed().as_secs());
        outcome
    });
    eprintln!("==> seconds of each step:\n{table}  {:<18}{:>5} s", "all", begin.elapsed().as_secs());
    outcome
}

fn format() -> Result<()> {
    step::cargo(&["fmt", "--all", "--check"])
}

fn lints() -> Result<()> {
    step::cargo(&["clippy", "--workspace", "--all-features", "--all-targets", "--", "-D", "warnings"])
}

fn documentation() -> Result<()> {
    step::cargo_with(("RUSTDOCFLAGS", "-D warnings"), &["doc", "--workspace", "--all-features", "--no-deps"])
}
