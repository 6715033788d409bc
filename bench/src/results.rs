//! What was measured, whole.

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::machine::Machine;
use crate::measured::Measured;
use crate::targets::{self, Verdict};

/// All results.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    /// How it was measured, as text.
    pub(crate) method: String,
    pub(crate) scenarios: Vec<Measured>,
    pub(crate) targets: Vec<Verdict>,
    /// What went wrong.
    pub(crate) failures: Vec<String>,
}

impl Results {
    pub(crate) fn new(machine: Machine, method: String, scenarios: Vec<Measured>, failures: Vec<String>) -> Self {
        let targets = targets::judge(&scenarios);
        Self { machine, method, scenarios, targets, failures }
    }

    /// Whether all runs did what they should.
    ///
    /// # Errors
    /// If some did not.
    pub(crate) fn complete(&self) -> Result<()> {
        ensure!(self.failures.is_empty(), "{} of the runs failed:\n{}", self.failures.len(), self.failures.join("\n"));
        Ok(())
    }
}
