//! `leasehold man`: manual pages.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::{Exit, Failure};
use crate::report::print;

/// Writes a page for each command to a directory, or prints that of `leasehold`.
pub(crate) fn man(out: Option<&Path>) -> Result<Exit, Failure> {
    match out {
        Some(directory) => write(directory),
        None => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
            rendered.map_err(|error| Failure::system("cannot make the page", error))?;
            print(String::from_utf8_lossy(&page).trim_end())
        }
    }
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
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed)?;
    print(&format!(
        "wrote the manual pages to {}; read one with: man {}/leasehold-run.1",
        directory.display(),
        directory.display()
    ))
}
