//! Every state and every input, as reviewed tables: of the attempt, of the held, of one that readers share, of an adopted one, and
//! of a semaphore.
//!
//! They are beside this file as `attempt.txt`, `held.txt`, `reading.txt`, `adopted.txt` and `semaphore.txt`. After a change of the
//! machine, run the tests with `LEASEHOLD_BLESS=1` and review the difference.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::inputs::{INPUTS, OF_LOCKS};
use super::rig::millis;
use super::states::{ADOPTED, ATTEMPT, Drive, HELD, READING, SEMAPHORE};

const TABLES: [(&str, &[(&str, Drive)]); 5] = [
    ("src/station/tests/attempt.txt", ATTEMPT),
    ("src/station/tests/held.txt", HELD),
    ("src/station/tests/reading.txt", READING),
    ("src/station/tests/adopted.txt", ADOPTED),
    ("src/station/tests/semaphore.txt", SEMAPHORE),
];

/// What an input does in a state.
struct Row {
    input: &'static str,
    outputs: Vec<String>,
    next: String,
}

/// A state and what each input does in it.
struct Section {
    name: &'static str,
    state: String,
    rows: Vec<Row>,
    /// The inputs without an output or a change.
    without_effect: Vec<&'static str>,
}

impl Section {
    fn of((name, drive): (&'static str, Drive)) -> Self {
        let before = || {
            let mut rig = drive();
            rig.pass(millis(1));
            rig
        };
        let (state, mut rows, mut without_effect) = (before().state(), Vec::new(), Vec::new());
        for (input, feed) in INPUTS {
            let mut rig = before();
            if rig.is_semaphore() && OF_LOCKS.contains(&input) {
                continue;
            }
            let outputs = feed(&mut rig);
            let next = rig.state();
            if outputs.is_empty() && next == state {
                without_effect.push(input);
            } else {
                rows.push(Row { input, outputs, next });
            }
        }
        Self { name, state, rows, without_effect }
    }

    fn as_text(&self) -> String {
        let mut text = wrapped(&format!("{}: {}", self.name, self.state), "; ") + "\n";
        for Row { input, outputs, next } in &self.rows {
            let outputs = if outputs.is_empty() { "nothing".to_owned() } else { outputs.join("; ") };
            let next = if *next == self.state { "the same" } else { next };
            writeln!(text, "{}", wrapped(&format!("    {input} -> {outputs} => {next}"), "; ")).unwrap();
        }
        writeln!(text, "{}", wrapped(&format!("    no effect: {}", self.without_effect.join(" · ")), " · ")).unwrap();
        text
    }
}

/// Breaks a row before it is wider than a screen, between its parts.
fn wrapped(row: &str, between: &str) -> String {
    const WIDTH: usize = 116;
    let mut lines = vec![String::new()];
    for part in row.split_inclusive(between).flat_map(|part| part.split_inclusive(" => ")) {
        let line = lines.last_mut().unwrap();
        if line.is_empty() || line.chars().count() + part.trim_end().chars().count() <= WIDTH {
            line.push_str(part);
        } else {
            lines.push(format!("        {part}"));
        }
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

/// Compares with the checked-in text, or rewrites it if `LEASEHOLD_BLESS` is set.
fn assert_same(path: &str, found: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if expected == found {
        return;
    }
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    let differing = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    let (expected, found) = differing.unwrap_or(("(another number of lines)", ""));
    panic!(
        "{} is out of date; the first line that differs:\n  there: {expected}\n  now:   {found}\n\
         If the change is meant, run the tests again with LEASEHOLD_BLESS=1 and review the difference.",
        path.display()
    );
}

#[test]
fn every_state_and_input_is_reviewed() {
    for (file, states) in TABLES {
        assert_same(file, &states.iter().map(|state| Section::of(*state).as_text()).collect::<String>());
    }
}
