//! Every state and every input, as reviewed tables: of the quest, of the tenure, of one that readers share, of an adopted one, and
//! of a semaphore.
//!
//! They are beside this file as `quest.txt`, `tenure.txt`, `reading.txt`, `adopted.txt` and `semaphore.txt` and, for readers of the documentation, in
//! `docs/machine.md`. After a change of the
//! machine, run the tests with `LEASEHOLD_BLESS=1` and review the difference.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::inputs::INPUTS;
use super::rig::millis;
use super::states::{ADOPTED, Drive, QUEST, READING, SEMAPHORE, TENURE};

/// One of the tables.
struct Table {
    title: &'static str,
    file: &'static str,
    states: &'static [(&'static str, Drive)],
}

const TABLES: [Table; 5] = [
    Table { title: "The quest", file: "src/station/tests/quest.txt", states: QUEST },
    Table { title: "The tenure", file: "src/station/tests/tenure.txt", states: TENURE },
    Table { title: "The shared tenure", file: "src/station/tests/reading.txt", states: READING },
    Table { title: "An adopted lease", file: "src/station/tests/adopted.txt", states: ADOPTED },
    Table { title: "The semaphore", file: "src/station/tests/semaphore.txt", states: SEMAPHORE },
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
        let mut text = format!("{}: {}\n", self.name, self.state);
        for Row { input, outputs, next } in &self.rows {
            let outputs = if outputs.is_empty() { "nothing".to_owned() } else { outputs.join("; ") };
            writeln!(text, "    {input} -> {outputs} => {next}").unwrap();
        }
        writeln!(text, "    no effect: {}", self.without_effect.join(" · ")).unwrap();
        text
    }

    fn as_markdown(&self) -> String {
        let mut text = format!("\n### {}\n\n`{}`\n\n", self.name, self.state);
        writeln!(text, "| Input | Outputs | Next state |\n|---|---|---|").unwrap();
        for Row { input, outputs, next } in &self.rows {
            let outputs = if outputs.is_empty() { "none".to_owned() } else { outputs.join("<br>") };
            writeln!(text, "| {input} | {outputs} | {next} |").unwrap();
        }
        text
    }
}

impl Table {
    fn write(&self, section: impl Fn(&Section) -> String) -> String {
        self.states.iter().map(|state| section(&Section::of(*state))).collect()
    }
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
    for table in TABLES {
        assert_same(table.file, &table.write(Section::as_text));
    }
}

#[test]
fn the_documentation_shows_the_same_tables() {
    const MARK: &str = "<!-- The rest of this page is written by the tests of lock-core. -->\n";
    let page = "../../docs/machine.md";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = std::fs::read_to_string(path).expect("docs/machine.md is there");
    let (by_hand, _) = text.split_once(MARK).expect("docs/machine.md has the mark where the tables begin");
    let chapter = |table: &Table| format!("\n## {}\n{}", table.title, table.write(Section::as_markdown));
    assert_same(page, &format!("{by_hand}{MARK}{}", TABLES.iter().map(chapter).collect::<String>()));
}
