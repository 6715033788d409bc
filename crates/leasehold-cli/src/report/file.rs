//! The file of `--report`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::visible::line_of_json;

/// The file of `--report`: empty until the end.
#[derive(Debug)]
pub(super) struct ReportFile {
    path: PathBuf,
    file: File,
}

impl ReportFile {
    /// Creates or empties the file.
    ///
    /// # Errors
    /// Those of the configuration, if it cannot be written.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| {
            let message = format!("cannot write the report to {}: {error}; name another file", path.display());
            Failure::new(Exit::Config, message)
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes the outcome. If that fails, there is no file: one that is empty or cut short could be taken for a report.
    ///
    /// # Errors
    /// What to warn of, if it cannot be written.
    pub(super) fn fill(mut self, report: &impl Serialize) -> Result<(), String> {
        let written = line_of_json(report).map_err(Into::into).and_then(|line| writeln!(self.file, "{line}"));
        written.map_err(|error: io::Error| {
            if self.path.is_file() {
                _ = fs::remove_file(&self.path);
            }
            format!("cannot write the report to {}: {error}", self.path.display())
        })
    }
}
