//! The project commands of this workspace: `cargo xtask COMMAND`.
#![expect(clippy::print_stderr, reason = "a tool for a terminal")]

mod api;
mod bench;
mod book;
mod calls;
mod chaos;
mod ci;
mod curator;
mod deny;
mod drivers;
mod english;
mod features;
mod fetch;
mod go;
mod lab;
mod matrix;
mod metadata;
mod model;
mod mutants;
mod mysql;
mod package;
mod plan;
mod porcupine;
mod recording;
mod release;
mod schema;
mod services;
mod sim;
mod step;
mod test;
mod tidy;
mod tool;
mod words;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test     install the servers that the tests need, and run the tests for a change
  servers  install the servers and the browser that the tests need
  sim      play many seeds of the simulator: [--seeds N] [--first S] [--half redis|memory|session|leased|replicated|failovers|hand-overs|quorum|plots]
  model    explore every order of events of the quorum's protocol; --help lists the bounds
  chaos    run many processes under constant failures: [--matrix [--record]] --minutes N [--seed S]
  mutants  find changes to a crate's code that its tests do not notice: CRATE [ARGUMENTS]...
  bench    measure how fast leasehold is: [--quick] [--page]; --help lists the options
  lab      play how locks fail: account, cache, one failure by its name, or all; --help lists them
  calls    count what an uncontended acquire and release pass through; needs valgrind
  book     check the links of all pages, and build the book in docs/book into target/book
  recording draw the session of the README as a terminal, docs/book/src/pictures/session.svg
  schema   write the JSON schema of configurations, docs/book/src/configuration.schema.json
  api      compare the public API of each library with docs/api; --bless writes what is so now
  deny     check licences, sources and duplicates of all dependencies; `deny advisories` asks the network
  features check that the crates build with sets of features alone
  drivers  try the fenced statements with sqlx and diesel
  mysql    run the tests of lock-mysql on MySQL; those for a change run on MariaDB
  curator  run Curator's own tests of its locks on ZooKeeper while clients of lock-zookeeper want the same locks
  go       run lock-etcd beside the client of etcd for Go, which needs Go
  porcupine record storms, and have Porcupine check the histories, which needs Go
  package  package and build every crate that can be published; --no-verify only packages
  release  check whether all crates can be published as one version: --dry-run; --publish does it
  ci       check a change before it is merged: test and sim, then format, lints, docs, feature builds, house rules; --full: everything
  tidy     only check the house rules: dependencies, circles, file sizes, versions, words, English, links";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (command, arguments) = (words.next(), words.collect::<Vec<_>>());
    let outcome = match command.as_deref() {
        Some("test") => test::run(),
        Some("features") => features::run(),
        Some("mysql") => mysql::run(),
        Some("curator") => curator::run(),
        Some("go") => go::run(),
        Some("porcupine") => porcupine::run(),
        Some("drivers") => drivers::run(),
        Some("servers") => services::all(),
        Some("sim") => sim::run(&arguments),
        Some("model") => model::run(&arguments),
        Some("chaos") => chaos::run(&arguments),
        Some("mutants") => mutants::run(&arguments),
        Some("bench") => bench::run(&arguments),
        Some("book") => book::run(),
        Some("calls") => calls::run(),
        Some("lab") => lab::run(&arguments),
        Some("recording") => recording::run(),
        Some("schema") => schema::run(),
        Some("api") => api::run(&arguments),
        Some("deny") => deny::run(&arguments),
        Some("release") => release::run(&arguments),
        Some("package") => package::run(&arguments),
        Some("ci") => ci::run(&arguments),
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
