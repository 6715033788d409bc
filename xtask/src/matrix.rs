//! `cargo xtask chaos --matrix`: plays cells of the matrix of settings and faults, and shows what was seen in all that were played so far.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, IsTerminal as _, Write};
use std::time::{Duration, SystemTime};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};
use serde_json::Value;

use crate::plan::Plan;
use crate::{services, step};

/// The number of a day's first cell is so many above that of the day before: about as many as ten minutes play.
const CELLS_A_DAY: u64 = 12;
const DAY: u64 = 24 * 60 * 60;

/// Plays cells for the plan's minutes, other ones each day.
pub(crate) fn run(plan: &Plan) -> Result<()> {
    services::for_tests()?;
    let record = step::target().join("chaos-matrix.jsonl");
    let today = SystemTime::UNIX_EPOCH.elapsed()?.as_secs() / DAY;
    let mut command =
        step::command(&["test", "--package", "stress", "--test", "matrix", "--", "--nocapture", "--ignored"]);
    plan.tell(&mut command, plan.minutes * 60);
    command.env("LEASEHOLD_MATRIX", &record).env("LEASEHOLD_MATRIX_FROM", (today * CELLS_A_DAY).to_string());
    let played = step::run(command);
    let cells = fs::read_to_string(&record).with_context(|| format!("cannot read {}", record.display()))?;
    let mut out = io::stdout();
    out.write_all(table(&cells, out.is_terminal())?.as_bytes())?;
    played
}

/// What was seen in all runs of a cell.
#[derive(Debug, Default)]
struct Seen {
    runs: u64,
    fired: u64,
    /// How often the fault had to take effect.
    wanted: u64,
    problems: u64,
    longest_pause: Duration,
    doubly: Duration,
}

impl Seen {
    fn is_fine(&self) -> bool {
        self.problems == 0 && self.fired >= self.wanted
    }

    fn verdict(&self) -> String {
        match (self.problems, self.doubly) {
            (0, _) if self.is_fine() => "one holder".to_owned(),
            (0, _) => "too few faults".to_owned(),
            (problems, Duration::ZERO) => format!("{problems} problems"),
            (_, doubly) => format!("more than one holder for {doubly:.1?}"),
        }
    }
}

/// A row for each cell that was played, of a line for each run.
fn table(lines: &str, in_colours: bool) -> Result<String> {
    let mut cells: BTreeMap<(String, String), Seen> = BTreeMap::new();
    for line in lines.lines() {
        let run: Value = serde_json::from_str(line).with_context(|| format!("not a run of a cell: {line}"))?;
        let word = |key: &str| run[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| run[key].as_u64().unwrap_or_default();
        let seen = cells.entry((word("setting"), word("fault"))).or_default();
        seen.runs += 1;
        seen.fired += number("fired");
        seen.wanted += number("wanted");
        seen.problems += number("problems");
        seen.longest_pause = seen.longest_pause.max(Duration::from_millis(number("pause_ms")));
        seen.doubly += Duration::from_millis(number("double_ms"));
    }
    let mut text = String::new();
    for ((setting, fault), seen) in cells {
        let colour = if seen.is_fine() { AnsiColor::Green } else { AnsiColor::Red };
        let style = if in_colours { colour.on_default() } else { Style::new() };
        let (runs, fired, verdict, pause) = (seen.runs, seen.fired, seen.verdict(), seen.longest_pause);
        writeln!(
            text,
            "{setting:<11}{fault:<13}{runs:>4} runs{fired:>6} faults  {style}{verdict}{style:#}, free for {pause:.1?} at most"
        )?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(setting: &str, fired: u64, problems: u64, doubly: u64) -> String {
        format!(
            r#"{{"setting":"{setting}","fault":"kill-server","fired":{fired},"wanted":20,"problems":{problems},"double_ms":{doubly},"pause_ms":1500}}"#
        )
    }

    #[test]
    fn runs_of_a_cell_are_added_up() {
        let lines = [line("redis", 20, 0, 0), line("redis", 23, 0, 0), line("etcd", 20, 0, 0)].join("\n");
        let table = table(&lines, false).unwrap();
        assert_eq!(table.lines().count(), 2, "{table}");
        assert!(
            table.contains("redis      kill-server     2 runs    43 faults  one holder, free for 1.5s at most"),
            "{table}"
        );
    }

    #[test]
    fn what_is_wrong_is_said_in_red() {
        let red = AnsiColor::Red.on_default().to_string();
        for (line, said) in [
            (line("redis", 19, 0, 0), "too few faults"),
            (line("redis", 20, 2, 0), "2 problems"),
            (line("redis", 20, 2, 700), "more than one holder for 700.0ms"),
        ] {
            let table = table(&line, true).unwrap();
            assert!(table.contains(&format!("{red}{said}")), "{table}");
        }
        assert!(table("{", false).is_err());
    }
}
