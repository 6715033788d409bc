//! What was measured, whole.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::measured::{Measured, Saved};
use crate::scenario::Scenario;
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

/// What is read of a run that was written down.
#[derive(Deserialize)]
struct SavedRun {
    machine: Machine,
    method: String,
    scenarios: Vec<Saved>,
    failures: Vec<String>,
}

impl Results {
    pub(crate) fn new(machine: Machine, method: String, scenarios: Vec<Measured>, failures: Vec<String>) -> Self {
        let targets = targets::judge(&scenarios);
        Self { machine, method, scenarios, targets, failures }
    }

    /// Those of some scenarios, if there are any.
    pub(crate) fn of(&self, wanted: impl Fn(&Scenario) -> bool) -> Option<Self> {
        let scenarios: Vec<_> = self.scenarios.iter().filter(|measured| wanted(measured.scenario)).cloned().collect();
        let of = |scenarios| Self::new(self.machine.clone(), self.method.clone(), scenarios, self.failures.clone());
        (!scenarios.is_empty()).then(|| of(scenarios))
    }

    /// Reads a run that was written down.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let read = || -> Result<Self> {
            let SavedRun { machine, method, scenarios, failures } = serde_json::from_str(&fs::read_to_string(path)?)?;
            let scenarios = scenarios.into_iter().map(Measured::try_from).collect::<Result<_>>()?;
            Ok(Self::new(machine, method, scenarios, failures))
        };
        read().with_context(|| path.display().to_string())
    }

    /// Writes the run down.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, serde_json::to_string_pretty(self)?).with_context(|| path.display().to_string())
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
