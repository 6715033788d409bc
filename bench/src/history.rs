//! The ratios of each version: one small file for each.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::compared::to;
use crate::figures::Figure;
use crate::measured::Measured;
use crate::page::write;
use crate::results::Results;

/// What one version reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct History {
    version: String,
    /// When it was measured, in UTC.
    when: String,
    /// The machine that it was measured on.
    machine: String,
    values: Vec<Entry>,
}

/// One ratio, or one value that has a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    what: String,
    value: f64,
}

impl History {
    /// The ratios of this library in a run, and whatever has a target.
    pub(crate) fn of(results: &Results, version: &str) -> Self {
        let mut values: Vec<Entry> = results.scenarios.iter().flat_map(ratios).collect();
        for verdict in &results.targets {
            let known = values.iter().any(|entry| entry.what == verdict.what);
            if let Some(value) = verdict.measured.filter(|_| !known) {
                values.push(Entry { what: verdict.what.clone(), value: rounded(value) });
            }
        }
        let machine = results.machine.line();
        Self { version: version.to_owned(), when: results.machine.when.clone(), machine, values }
    }

    /// Writes it into a folder, and replaces the file of the same version.
    pub(crate) fn keep(&self, folder: &Path) -> Result<()> {
        let name = self.version.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
        write(&folder.join(format!("{name}.json")), &self.lines()?)
    }

    /// As JSON with one value on each line, so that two runs can be compared line by line.
    fn lines(&self) -> Result<String> {
        let without = serde_json::to_string(&Self { values: Vec::new(), ..self.clone() })?;
        let values = self.values.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        Ok(without.replace("\"values\":[]", &format!("\"values\":[\n{}\n]", values.join(",\n"))) + "\n")
    }
}

fn ratios(measured: &Measured) -> Vec<Entry> {
    let (scenario, Some(ours)) = (measured.scenario, measured.ours()) else { return Vec::new() };
    let ratio = |figure: Figure| {
        let what = format!("{}: {}, {}", scenario.name, figure.head(), to(scenario.base()));
        Some(Entry { what, value: rounded(ours.to_base.get(figure)?) })
    };
    let compared = ours.subject != scenario.base();
    scenario
        .columns()
        .iter()
        .filter(|figure| compared && figure.has_ratios())
        .filter_map(|figure| ratio(*figure))
        .collect()
}

/// More digits than a reader needs would only make files differ.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_value_on_each_line() {
        let values = [("one: p50 µs, to bare", 1.1), ("new", 2.0)]
            .map(|(what, value)| Entry { what: what.to_owned(), value })
            .to_vec();
        let [version, when, machine] = ["before 0.2", "2026-11-01", "here"].map(str::to_owned);
        let (folder, history) = (tempfile::tempdir().unwrap(), History { version, when, machine, values });
        history.keep(folder.path()).unwrap();
        let file = std::fs::read_to_string(folder.path().join("before-0.2.json")).unwrap();
        assert_eq!(serde_json::from_str::<History>(&file).unwrap(), history);
        assert_eq!(file.lines().count(), 4, "{file}");
    }
}
