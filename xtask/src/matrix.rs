//! `cargo xtask chaos --matrix`: plays cells of the matrix of settings and faults, and shows what was seen.

use std::env;
use std::fs;
use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result};

use self::cells::Cells;
use crate::plan::Plan;
use crate::{services, step};

mod cells;

/// The number of a day's first cell is so many above that of the day before: about as many as ten minutes play.
const CELLS_A_DAY: u64 = 12;
const DAY: u64 = 24 * 60 * 60;
/// The variable with the number of the first cell.
const FROM: &str = "LEASEHOLD_MATRIX_FROM";
/// What recorded runs have seen so far: a line of JSON for each cell.
const RECORD: &str = "docs/fault-matrix.jsonl";
/// The page that shows it, and where.
const PAGE: &str = "docs/book/src/how-it-is-tested.md";
const MARKS: [&str; 2] = ["<!-- fault matrix -->", "<!-- end of fault matrix -->"];

/// Plays cells for the plan's minutes, other ones each day, and shows them.
pub(crate) fn run(plan: &Plan) -> Result<()> {
    let (played, _) = play(plan)?;
    played
}

/// The same, and adds them to those in the book.
pub(crate) fn run_and_record(plan: &Plan) -> Result<()> {
    let (played, seen) = play(plan)?;
    let [record, page] = [RECORD, PAGE].map(|file| step::root().join(file));
    let mut all = Cells::parse(&fs::read_to_string(&record).with_context(|| RECORD)?)?;
    all.add(seen);
    fs::write(record, all.lines()?)?;
    let shown = replaced(&fs::read_to_string(&page)?, &all.section()).context(PAGE)?;
    fs::write(page, shown)?;
    played
}

/// Whether all went well, and what was seen.
fn play(plan: &Plan) -> Result<(Result<()>, Cells)> {
    services::for_tests()?;
    let runs = step::target().join("chaos-matrix.jsonl");
    remove(&runs)?;
    let today = SystemTime::UNIX_EPOCH.elapsed()?.as_secs() / DAY;
    let mut command =
        step::command(&["test", "--package", "stress", "--test", "matrix", "--", "--nocapture", "--ignored"]);
    plan.tell(&mut command, plan.minutes * 60);
    command.env("LEASEHOLD_MATRIX", &runs);
    if env::var_os(FROM).is_none() {
        command.env(FROM, (today * CELLS_A_DAY).to_string());
    }
    let played = step::run(command);
    // There is none if no cell was played to its end.
    let lines = fs::read_to_string(&runs).unwrap_or_default();
    let (seen, mut out) = (Cells::parse(&lines)?, io::stdout());
    out.write_all(seen.table(out.is_terminal())?.as_bytes())?;
    Ok((played, seen))
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A page with this between its marks.
fn replaced(page: &str, section: &str) -> Result<String> {
    let [begin, end] = MARKS;
    let (before, rest) = page.split_once(begin).with_context(|| format!("there is no line {begin}"))?;
    let (_, after) = rest.split_once(end).with_context(|| format!("there is no line {end}"))?;
    Ok(format!("{before}{begin}\n\n{section}\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_what_is_recorded() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let record = Cells::parse(&fs::read_to_string(root.join(RECORD)).unwrap()).unwrap();
        let page = fs::read_to_string(root.join(PAGE)).unwrap();
        assert_eq!(replaced(&page, &record.section()).unwrap(), page);
        assert!(replaced("a page", "a section").is_err());
    }
}
