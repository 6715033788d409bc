//! The ratios of each version: one small file for each, and a table of all.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{Cell, CellAlignment};
use serde::{Deserialize, Serialize};

use crate::compared::to;
use crate::figures::Figure;
use crate::measured::Measured;
use crate::page::write;
use crate::results::Results;
use crate::table::{markdown_table, shown};

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

    /// A table of all versions in a folder, the newest last.
    pub(crate) fn table(folder: &Path) -> Result<String> {
        let mut versions = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "json") {
                versions.push(Self::read(&path).with_context(|| path.display().to_string())?);
            }
        }
        versions.sort_by(|one, other| one.when.cmp(&other.when));
        let runs = versions.iter().map(|version| format!("- **{}**: {}\n", version.version, version.machine));
        Ok(format!("{}\n{}", runs.collect::<String>(), side_by_side(&versions)))
    }

    /// As JSON with one value on each line, so that two runs can be compared line by line.
    fn lines(&self) -> Result<String> {
        let without = serde_json::to_string(&Self { values: Vec::new(), ..self.clone() })?;
        let values = self.values.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        Ok(without.replace("\"values\":[]", &format!("\"values\":[\n{}\n]", values.join(",\n"))) + "\n")
    }

    fn read(path: &Path) -> Result<Self> {
        Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
    }

    fn value(&self, what: &str) -> Option<f64> {
        self.values.iter().find(|entry| entry.what == what).map(|entry| entry.value)
    }
}

/// The rows are those of the newest version, and then what only older ones have.
fn side_by_side(versions: &[History]) -> String {
    let mut rows: Vec<&str> = Vec::new();
    for entry in versions.iter().rev().flat_map(|version| &version.values) {
        if !rows.contains(&entry.what.as_str()) {
            rows.push(&entry.what);
        }
    }
    let mut table = markdown_table();
    table.set_header([""].into_iter().chain(versions.iter().map(|version| version.version.as_str())));
    for what in rows {
        let value = |version: &History| version.value(what).map_or_else(|| "-".to_owned(), shown);
        let cells = versions.iter().map(|version| Cell::new(value(version)).set_alignment(CellAlignment::Right));
        table.add_row([Cell::new(what)].into_iter().chain(cells));
    }
    table.trim_fmt()
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

    fn version(name: &str, when: &str, values: &[(&str, f64)]) -> History {
        let values = values.iter().map(|(what, value)| Entry { what: (*what).to_owned(), value: *value }).collect();
        History { version: name.to_owned(), when: when.to_owned(), machine: "here".to_owned(), values }
    }

    #[test]
    fn versions_stand_side_by_side_in_the_order_of_their_runs() {
        let folder = tempfile::tempdir().unwrap();
        let newer = version("0.2.0", "2026-11-22", &[("one: p50 µs, to bare", 1.1), ("new", 2.0)]);
        let older = version("before 0.2", "2026-11-01", &[("gone", 3.0), ("one: p50 µs, to bare", 1.25)]);
        newer.keep(folder.path()).unwrap();
        older.keep(folder.path()).unwrap();
        assert_eq!(History::read(&folder.path().join("before-0.2.json")).unwrap(), older);
        assert_eq!(
            History::table(folder.path()).unwrap(),
            "- **before 0.2**: here\n\
             - **0.2.0**: here\n\n\
             |                      | before 0.2 | 0.2.0 |\n\
             |----------------------|------------|-------|\n\
             | one: p50 µs, to bare |       1.25 |  1.10 |\n\
             | new                  |          - |  2.00 |\n\
             | gone                 |       3.00 |     - |"
        );
    }
}
