//! The `leasehold` command: distributed locks for shell scripts and for people.
//!
//! Reading order: `args` (what can be asked for) · `exit` (how it can end) · `run` (a command under a lock) · `look`
//! (who holds what) · `redlock` (a quorum's nodes) · `store`, `locks`, `quorum` (where the locks are).

mod args;
mod demo;
mod exit;
mod held;
mod locks;
mod look;
mod quorum;
mod redlock;
mod report;
mod run;
mod store;
mod table;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use self::args::{Cli, Command};
use self::demo::paused;
use self::exit::Exit;
use self::run::{front, guard, start};

fn main() -> ExitCode {
    let line: Vec<OsString> = std::env::args_os().collect();
    // Our own helper processes; no part of what users are offered.
    let exit = match line.get(1).and_then(|role| role.to_str()) {
        Some(guard::ROLE) => helper(&line[1..], guard::main),
        Some(start::ROLE) => helper(&line[1..], start::main),
        Some(front::ROLE) => match args::parse(&front::line_of_worker(&line)) {
            Ok(cli) => behind(&line, &cli),
            Err(error) => misunderstood(&error, false),
        },
        Some(paused::ROLE) => helper(&line[1..], paused::main),
        Some(_) | None => match args::parse(&line) {
            Ok(cli) => dispatch(&cli),
            Err(error) => misunderstood(&error, args::asks_for_json(&line)),
        },
    };
    exit.into()
}

fn helper<A: Parser>(line: &[OsString], run: impl FnOnce(&A) -> Exit) -> Exit {
    match A::try_parse_from(line) {
        Ok(args) => run(&args),
        Err(error) => misunderstood(&error, false),
    }
}

fn misunderstood(error: &clap::Error, json: bool) -> Exit {
    let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
    if json && error.use_stderr() {
        report::say_failure_as_json(&error.render().to_string(), exit);
        return exit;
    }
    // Help and version come this way too, to standard output; nobody is left to tell if that is gone.
    let _ = error.print();
    if lacks_command(error) {
        report::say_error(NAME_FORGOTTEN);
    }
    exit
}

const NAME_FORGOTTEN: &str = "the first argument is the name of the lock, and the command follows it; \
                              for example: leasehold run nightly-report -- ./report.sh";

/// People who put a lock in front of a command are apt to forget its name.
fn lacks_command(error: &clap::Error) -> bool {
    let missing = error.kind() == clap::error::ErrorKind::MissingRequiredArgument;
    missing && error.to_string().contains("<COMMAND>")
}

/// What the front on a terminal has its worker do.
fn behind(line: &[OsString], cli: &Cli) -> Exit {
    let front = line.get(2).and_then(|pid| pid.to_str()?.parse().ok());
    match (front, &cli.command) {
        (Some(front), Command::Run(args)) => run::run_behind(front, args),
        _ => Exit::Usage,
    }
}

fn dispatch(cli: &Cli) -> Exit {
    let outcome = match &cli.command {
        Command::Run(args) => Ok(run::run(args)),
        Command::Ls(args) => look::ls(args),
        Command::Show(args) => look::show(args),
        Command::Redlock(args) => redlock::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "leasehold", &mut script);
            report::print(String::from_utf8_lossy(&script).trim_end())
        }
    };
    outcome.unwrap_or_else(|failure| {
        if cli.command.json() {
            report::say_failure_as_json(&failure.message, failure.exit);
        } else {
            report::say_error(&failure.message);
        }
        failure.exit
    })
}
