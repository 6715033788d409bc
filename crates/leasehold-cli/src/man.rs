//! `leasehold man`: manual pages.

use std::path::Path;

use clap::{Command, CommandFactory};

use crate::args::Cli;
use crate::exit::{Exit, Failure};
use crate::report::print;

/// Writes a page for each command to a directory, or prints that of `leasehold`.
pub(crate) fn man(out: Option<&Path>) -> Result<Exit, Failure> {
    match out {
        Some(directory) => write(directory),
        None => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(commands()).render(&mut page);
            rendered.map_err(|error| Failure::system("cannot make the page", error))?;
            print(String::from_utf8_lossy(&page).trim_end())
        }
    }
}

/// The commands, each with its usage as its help has it: in the one that is made for a page, options have no values.
fn commands() -> Command {
    let mut commands = Cli::command().disable_help_subcommand(true);
    commands.build();
    with_usage(commands)
}

fn with_usage(mut command: Command) -> Command {
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    command.override_usage(usage).mut_subcommands(with_usage)
}

fn write(directory: &Path) -> Result<Exit, Failure> {
    let failed = |error| {
        let message = format!(
            "cannot write manual pages to {}: {error}; name a directory that can be written to",
            directory.display()
        );
        Failure::new(Exit::Config, message)
    };
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(commands(), directory).map_err(failed)?;
    print(&format!(
        "wrote the manual pages to {}; read one with: man {}/leasehold-run.1",
        directory.display(),
        directory.display()
    ))
}
