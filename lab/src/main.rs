//! The laboratory: shows what goes wrong without each part of a lock. `cargo xtask lab SCENE` runs it.
//!
//! Each scene has a folder, and its `mod.rs` says in which order to read it: `account`, `cache`. `shared` has what they share, and
//! `args` the command line.

mod account;
mod args;
mod cache;
mod shared;

use std::io::{Write, stderr};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Parser;

use self::account::process;
use self::args::{Lab, Scene};
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
        Scene::Worker => process::main(),
    };
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(anstream::AutoStream::auto(stderr()), "{ERROR}lab:{ERROR:#} {}", failure.message);
            failure.exit.into()
        }
    }
}
