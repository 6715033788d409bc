//! The `leasehold` command: distributed locks for shell scripts and interactive use.
//!
//! Reading order: `args` (what can be asked for) · `exit` (how it can end) · `run` (a command under a lock) · `listing`
//! (who holds what) · `breaking` (ends a lease) · `watching` (what happens to locks) · `dashboard` (a live page) · `limit` (of a semaphore) · `doctor` (whether a store can be relied on) · `setup` (the SQL of tables), `redis` (one server), `redlock` (a quorum's nodes), `base` (the tokens of ZooKeeper and etcd) · `store`, `secret`, `locks`, `quorum` (where the locks are) · `hold` (one
//! that is held, of any kind) · `holders` (what they are called) · `job` (what a run leaves behind) · `log` (what happens to them) · `screen`, `table`, `visible`, `report` (how it is shown).

mod args;
mod base;
mod breaking;
mod command_end;
mod dashboard;
mod defaults;
mod doctor;
mod durations;
mod exit;
mod held;
mod hold;
mod holders;
mod job;
mod limit;
mod listing;
mod lock_request;
mod locks;
mod log;
mod man;
mod poller;
mod quorum;
mod redis;
mod redlock;
mod report;
mod run;
mod schedule;
mod screen;
mod secret;
mod setup;
mod store;
mod table;
mod visible;
mod watching;

use std::ffi::OsString;
use std::io::{Write, stderr};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use self::args::line::{self, Mistake};
use self::args::{Aside, Cli, Command};
use self::exit::{Exit, Failure};
use self::run::{Task, front, guard, signals, start};
use self::screen::beside;
use self::visible::unhidden;

fn main() -> ExitCode {
    let line: Vec<OsString> = std::env::args_os().collect();
    // Internal helper processes, not meant for users.
    let exit = match line.get(1).and_then(|role| role.to_str()) {
        Some(guard::ROLE) => helper(&line[1..], guard::main),
        Some(start::ROLE) => helper(&line[1..], start::main),
        Some(front::ROLE) => match line::parse(&front::line_of_worker(&line)) {
            Ok(cli) => behind(&line, &cli),
            Err(mistake) => mistaken(&mistake, &line, None),
        },
        Some(_) | None => match line::parse(&line) {
            Ok(cli) => dispatch(&cli).unwrap_or_else(|failure| failed(&failure, &line)),
            Err(mistake) => mistaken(&mistake, &line, Some(&line)),
        },
    };
    if let Some(signal) = exit.signal() {
        signals::die_by(signal);
    }
    exit.into()
}

fn helper<A: Parser>(line: &[OsString], run: impl FnOnce(&A) -> Exit) -> Exit {
    match A::try_parse_from(line) {
        Ok(args) => run(&args),
        Err(error) => mistaken(&Mistake::Line(error), line, None),
    }
}

/// Reports why a command line is not carried out. `users` is the line if a user has written it: it may ask for JSON or a report file.
fn mistaken(mistake: &Mistake, line: &[OsString], users: Option<&[OsString]>) -> Exit {
    let failure = match mistake {
        Mistake::Line(error) if !error.use_stderr() => {
            // Help and version. If standard output is closed, nothing can be reported.
            let _ = error.print();
            return Exit::Done;
        }
        Mistake::Line(error) => Failure::new(Exit::Usage, error.render().to_string()),
        Mistake::Defaults(failure) => failure.clone(),
    };
    if let Some(path) = users.and_then(line::report_file) {
        report::report_failure(&path, &failure);
    }
    match mistake {
        Mistake::Line(error) if !users.is_some_and(line::asks_for_json) => {
            let text = beside(0, &unhidden(&error.render().ansi().to_string()), &stderr());
            let _ = write!(anstream::stderr(), "{text}");
            failure.exit
        }
        Mistake::Line(_) | Mistake::Defaults(_) => failed(&failure, line),
    }
}

/// Reports a failure in the form that a command line asks for.
fn failed(failure: &Failure, line: &[OsString]) -> Exit {
    if line::asks_for_json(line) {
        report::say_failure_as_json(failure);
    } else {
        report::say_error(&failure.message);
    }
    failure.exit
}

/// The worker behind a front on a terminal.
fn behind(line: &[OsString], cli: &Cli) -> Exit {
    let front = line.get(2).and_then(|pid| pid.to_str()?.parse().ok());
    match (front, &cli.command) {
        (Some(front), Command::Run(args)) => run::run_behind(front, Task::Run(args)),
        (Some(front), Command::Elect(args)) => run::run_behind(front, Task::Elect(args)),
        _ => Exit::Usage,
    }
}

fn dispatch(cli: &Cli) -> Result<Exit, Failure> {
    match &cli.command {
        Command::Run(args) => Ok(run::run(Task::Run(args))),
        Command::Elect(args) => Ok(run::run(Task::Elect(args))),
        Command::Ls(args) => listing::ls(args),
        Command::Show(args) => listing::show(args),
        Command::Doctor(args) => doctor::doctor(args),
        Command::Watch(args) => watching::watch(args),
        Command::Dashboard(args) => dashboard::dashboard(args),
        Command::Break(args) => breaking::break_lease(args),
        Command::Limit(args) => limit::limit(args),
        Command::Aside(task) => aside(task),
    }
}

fn aside(task: &Aside) -> Result<Exit, Failure> {
    match task {
        Aside::Mysql(task) => setup::mysql(task),
        Aside::Postgres(task) => setup::postgres(task),
        Aside::Redis(task) => redis::run(task),
        Aside::Redlock(task) => redlock::run(task),
        Aside::Zookeeper(task) => base::zookeeper(task),
        Aside::Etcd(task) => base::etcd(task),
        Aside::Man { out } => man::man(out.as_deref()),
        Aside::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "leasehold", &mut script);
            report::print(String::from_utf8_lossy(&script).trim_end())
        }
    }
}
