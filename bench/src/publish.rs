//! The files that a run writes into the documentation: pages about performance, figures, and the history of versions.

use std::path::Path;

use anyhow::Result;

use crate::history::History;
use crate::page::{fill_in, write};
use crate::results::Results;
use crate::scenario::Scenario;
use crate::{chart, summary, table};

/// The page for users, below the folder of the documentation.
const FOR_USERS: &str = "book/src/performance.md";
/// The pages for contributors.
const FOR_CONTRIBUTORS: &str = "performance/README.md";
const REPLICAS: &str = "performance/replicas.md";

/// Writes everything that was measured. Scenarios that are run apart have a page of their own.
pub(crate) fn all(docs: &Path, results: &Results, version: &str) -> Result<()> {
    if let Some(apart) = results.of(Scenario::is_apart) {
        fill_in(&docs.join(REPLICAS), &[("tables", table::markdown(&apart))])?;
    }
    results.of(|scenario| !scenario.is_apart()).map_or(Ok(()), |results| usual(docs, &results, version))
}

fn usual(docs: &Path, results: &Results, version: &str) -> Result<()> {
    for (file, drawing) in chart::all(results) {
        write(&docs.join(file), &format!("{drawing}\n"))?;
    }
    fill_in(&docs.join(FOR_USERS), &summary::for_users(results))?;
    fill_in(&docs.join(FOR_CONTRIBUTORS), &summary::for_contributors(results))?;
    History::of(results, version).keep(&docs.join("perf-history"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bench_measure::Subject;

    use super::*;
    use crate::figures::{Figure, Figures};
    use crate::machine::Machine;
    use crate::measured::Measured;

    /// A run of twenty minutes must not end with a page that cannot be filled in.
    #[test]
    fn the_pages_of_this_project_can_be_filled_in() {
        let (docs, copy) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs"), tempfile::tempdir().unwrap());
        let pages = [FOR_USERS, FOR_CONTRIBUTORS, REPLICAS];
        for page in pages {
            write(&copy.path().join(page), &fs::read_to_string(docs.join(page)).unwrap()).unwrap();
        }
        let cost = |time| {
            let time = Figures::default().with(Figure::ServerTime, time).with(Figure::ClientTime, time);
            vec![time.with(Figure::Rate, 1.0)]
        };
        let rounds = vec![(Subject::Bare, cost(10.0)), (Subject::Leasehold, cost(43.21))];
        let measured = ["one-mt", "replicas"].map(|name| Measured::new(Scenario::named(name).unwrap(), rounds.clone()));
        let results = Results::new(Machine::look("7.0".to_owned()), "Once".to_owned(), measured.into(), Vec::new());
        all(copy.path(), &results, "0.0.0-test").unwrap();
        for page in pages {
            let filled_in = fs::read_to_string(copy.path().join(page)).unwrap();
            assert!(["4.32", "43.2"].iter().any(|figure| filled_in.contains(figure)), "{page}");
        }
        assert!(copy.path().join("book/src/figures/bench-cost.svg").exists());
        assert!(copy.path().join("perf-history/0.0.0-test.json").exists());
    }
}
