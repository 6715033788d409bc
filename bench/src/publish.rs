//! What a run writes into the folder of the documentation: the page about performance, all tables, figures, and history.

use std::path::Path;

use anyhow::Result;

use crate::history::History;
use crate::page::{fill_in, write};
use crate::results::Results;
use crate::{chart, summary, table};

/// Writes everything.
pub(crate) fn all(docs: &Path, results: &Results, version: &str) -> Result<()> {
    for (name, drawing) in chart::all(results) {
        write(&docs.join("figures").join(name), &format!("{drawing}\n"))?;
    }
    fill_in(&docs.join("performance/tables.md"), &[("tables", table::markdown(results))])?;
    fill_in(&docs.join("performance.md"), &summary::parts(results))?;
    let history = docs.join("perf-history");
    History::of(results, version).keep(&history)?;
    fill_in(&history.join("README.md"), &[("versions", History::table(&history)?)])
}
