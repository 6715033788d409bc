//! The laboratory: shows what goes wrong without each part of a lock. `cargo xtask lab SCENE` runs it.
//!
//! Each scene has a folder, and its `mod.rs` says in which order to read it: `account`, `cache`. `failures` has the shorter ones, a file
//! for each. `shared` has what they share, and `args` the command line.

mod account;
mod args;
mod cache;
mod failures;
mod shared;

use std::io::{Write, stderr};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Parser;

use self::account::process;
use self::args::{Lab, Scene};
use self::failures::{holder_process, play};
use self::shared::failure::Exit;

const ERROR: Style = AnsiColor::Red.on_default().bold();

fn main() -> ExitCode {
    let lab = match Lab::try_parse() {
        Ok(lab) => lab,
        Err(error) => {
            // If standard output or standard error is closed, nothing can be reported.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    let played = match &lab.scene {
        Scene::Account(args) => account::run(args),
        Scene::Cache(args) => cache::run(args),
        Scene::Failure(failure) => play::run_one(&failure.name, &failure.args),
        Scene::All(args) => play::run_all(args),
        Scene::Worker => process::main(),
        Scene::Holder => holder_process::main(),
    };
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(anstream::AutoStream::auto(stderr()), "{ERROR}lab:{ERROR:#} {}", failure.message);
            failure.exit.into()
        }
    }
}
