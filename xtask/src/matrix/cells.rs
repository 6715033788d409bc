//! What was seen in cells of the matrix.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// All cells that were played, by setting and fault.
#[derive(Debug, Default)]
pub(super) struct Cells(BTreeMap<(String, String), Seen>);

/// What was seen in all runs of a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Seen {
    setting: String,
    fault: String,
    /// Absent in the line of a single run.
    #[serde(default = "one")]
    runs: u64,
    /// How often the fault took effect, and how often it had to.
    fired: u64,
    wanted: u64,
    turns: u64,
    seconds: u64,
    problems: u64,
    /// For how long nobody had the busiest lock at most, and for how long locks had more than one holder.
    pause_ms: u64,
    double_ms: u64,
}

fn one() -> u64 {
    1
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.fired += other.fired;
        self.wanted += other.wanted;
        self.turns += other.turns;
        self.seconds += other.seconds;
        self.problems += other.problems;
        self.pause_ms = self.pause_ms.max(other.pause_ms);
        self.double_ms += other.double_ms;
    }

    fn is_fine(&self) -> bool {
        self.problems == 0 && self.fired >= self.wanted
    }

    fn verdict(&self) -> String {
        match (self.problems, Duration::from_millis(self.double_ms)) {
            (0, _) if !self.is_fine() => "too few faults".to_owned(),
            (0, Duration::ZERO) => "one holder".to_owned(),
            (0, doubly) => format!("more than one holder for {doubly:.1?}, as an assumption was broken"),
            (problems, Duration::ZERO) => format!("{problems} problems"),
            (problems, doubly) => format!("{problems} problems, more than one holder for {doubly:.1?}"),
        }
    }
}

impl Cells {
    /// Reads a line for each run, or for each cell.
    pub(super) fn parse(lines: &str) -> Result<Self> {
        let mut cells = Self::default();
        for line in lines.lines() {
            cells.add_one(serde_json::from_str(line).with_context(|| format!("not a run of a cell: {line}"))?);
        }
        Ok(cells)
    }

    pub(super) fn add(&mut self, other: Self) {
        other.0.into_values().for_each(|seen| self.add_one(seen));
    }

    fn add_one(&mut self, seen: Seen) {
        let cell = (seen.setting.clone(), seen.fault.clone());
        self.0.entry(cell).and_modify(|all| all.add(&seen)).or_insert(seen);
    }

    /// A line for each cell, to be read again.
    pub(super) fn lines(&self) -> Result<String> {
        let lines: Vec<_> = self.0.values().map(serde_json::to_string).collect::<Result<_, _>>()?;
        Ok(lines.join("\n") + "\n")
    }

    /// A row for each cell, for a terminal.
    pub(super) fn table(&self, in_colours: bool) -> Result<String> {
        let mut text = String::new();
        for ((setting, fault), seen) in &self.0 {
            let colour = if seen.is_fine() { AnsiColor::Green } else { AnsiColor::Red };
            let style = if in_colours { colour.on_default() } else { Style::new() };
            let pause = Duration::from_millis(seen.pause_ms);
            let (runs, fired, verdict) = (seen.runs, seen.fired, seen.verdict());
            writeln!(
                text,
                "{setting:<11}{fault:<13}{runs:>4} runs{fired:>6} faults  {style}{verdict}{style:#}, free for {pause:.1?} at most"
            )?;
        }
        Ok(text)
    }

    /// What the book says of them: sums, and how often each fault took effect in each setting.
    pub(super) fn section(&self) -> String {
        let sum = |of: fn(&Seen) -> u64| self.0.values().map(of).sum::<u64>();
        let fail_overs: u64 = self.0.values().filter(|seen| seen.fault == "fail-over").map(|seen| seen.fired).sum();
        let (minutes, runs, fired) = (sum(|seen| seen.seconds) / 60, sum(|seen| seen.runs), sum(|seen| seen.fired));
        let (turns, problems) = (sum(|seen| seen.turns), sum(|seen| seen.problems));
        let settings: BTreeSet<_> = self.0.keys().map(|(setting, _)| setting).collect();
        let faults: BTreeSet<_> = self.0.keys().map(|(_, fault)| fault).collect();
        let row = |first: &str, cells: Vec<String>| format!("| {first} | {} |\n", cells.join(" | "));
        let mut text = format!(
            "Recorded so far: {} h {} min in {runs} runs, with {turns} turns and {fired} faults, {fail_overs} of them fail-overs. \
             Problems: {problems}. The table counts the faults that took effect.\n\n",
            minutes / 60,
            minutes % 60
        );
        text += &row("fault", settings.iter().map(|setting| format!("`{setting}`")).collect());
        text += &row("---", vec!["---:".to_owned(); settings.len()]);
        for fault in faults {
            let cell = |setting: &&String| match self.0.get(&((*setting).clone(), fault.clone())) {
                None => "–".to_owned(),
                Some(seen) if seen.is_fine() => seen.fired.to_string(),
                Some(seen) => format!("**{}, {}**", seen.fired, seen.verdict()),
            };
            text += &row(fault, settings.iter().map(cell).collect());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(setting: &str, fired: u64, problems: u64, doubly: u64) -> String {
        format!(
            r#"{{"setting":"{setting}","fault":"fail-over","fired":{fired},"wanted":20,"turns":300,"seconds":90,"problems":{problems},"double_ms":{doubly},"pause_ms":1500}}"#
        )
    }

    #[test]
    fn runs_of_a_cell_are_added_up() {
        let lines = [run("redis", 20, 0, 0), run("redis", 23, 0, 0), run("etcd", 20, 0, 0)].join("\n");
        let cells = Cells::parse(&lines).unwrap();
        let table = cells.table(false).unwrap();
        assert_eq!(table.lines().count(), 2, "{table}");
        assert!(
            table.contains("redis      fail-over       2 runs    43 faults  one holder, free for 1.5s at most"),
            "{table}"
        );
        let mut twice = Cells::parse(&cells.lines().unwrap()).unwrap();
        twice.add(cells);
        let section = twice.section();
        assert!(
            section.starts_with("Recorded so far: 0 h 9 min in 6 runs, with 1800 turns and 126 faults"),
            "{section}"
        );
        assert!(
            section.ends_with("| fault | `etcd` | `redis` |\n| --- | ---: | ---: |\n| fail-over | 40 | 86 |\n"),
            "{section}"
        );
    }

    #[test]
    fn what_is_wrong_is_said_in_red() {
        let [red, green] = [AnsiColor::Red, AnsiColor::Green].map(|colour| colour.on_default().to_string());
        for (line, said) in [
            (run("redis", 19, 0, 0), format!("{red}too few faults")),
            (run("redis", 20, 2, 0), format!("{red}2 problems")),
            (run("redis", 20, 2, 700), format!("{red}2 problems, more than one holder for 700.0ms")),
            (run("redis", 20, 0, 700), format!("{green}more than one holder for 700.0ms, as an assumption was broken")),
        ] {
            let table = Cells::parse(&line).unwrap().table(true).unwrap();
            assert!(table.contains(&said), "{table}");
        }
        assert!(Cells::parse("{").is_err());
    }
}
