//! Curator's own tests of its locks pass while clients of ours want the same locks.
#![expect(clippy::print_stdout, reason = "a report for a terminal")]

mod compete;
mod suites;

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use compete::{Rivals, Tally};
use suites::{SUITES, Wanted};
use test_support::bounds::wait_for;

/// The directory that `cargo xtask curator` builds Curator's tests in.
const PLACE: &str = "LEASEHOLD_TEST_CURATOR";
/// Longer than any of the tests lasts.
const TEST: Duration = Duration::from_secs(240);

/// The process that runs Curator's tests.
struct Java {
    process: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Java {
    fn start(place: &Path) -> Self {
        let mut command = Command::new("java");
        let classes = [place.join("classes"), place.join("jars/*")].map(|path| path.display().to_string());
        command.args(["-cp", &classes.join(":"), "Rivals"]);
        for suite in &SUITES {
            command.arg(suite.class);
            command.args(suite.excluded.iter().map(|(method, _)| format!("-{}#{method}", suite.class)));
        }
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, said) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (line, lines) = channel();
        thread::spawn(move || BufReader::new(said).lines().map_while(Result::ok).try_for_each(|read| line.send(read)));
        Self { process, input, lines }
    }

    /// What it says next; `None` at its end.
    fn said(&self) -> Option<String> {
        match self.lines.recv_timeout(TEST) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("a test of Curator hangs"),
        }
    }

    fn goes_on(&mut self) {
        self.input.write_all(b"go\n").unwrap();
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// What became of the tests.
#[derive(Debug, Default)]
struct Report {
    passed: u32,
    excluded: usize,
    /// Those that Curator has disabled.
    skipped: u32,
    failures: Vec<String>,
    ours: Tally,
}

impl Report {
    /// Competes during each test.
    fn of(java: &mut Java) -> Self {
        let (mut report, mut rivals) = (Self::default(), None);
        while let Some(line) = java.said() {
            let mut words = line.splitn(3, ' ');
            let [what, test, more] = [(); 3].map(|()| words.next().unwrap_or_default());
            match what {
                "begin" => {
                    rivals = Some(Rivals::begin(&Wanted::during(test), more));
                    java.goes_on();
                }
                "end" => {
                    report.hears_of_ours(test, rivals.take().expect("it began").end());
                    java.goes_on();
                }
                "passed" => report.passed += 1,
                "excluded" => report.excluded += 1,
                "skipped" => report.skipped += 1,
                _ => report.failures.push(line),
            }
        }
        report
    }

    fn hears_of_ours(&mut self, test: &str, tally: Result<Tally, String>) {
        println!("{test}: {tally:?}");
        match tally {
            Ok(tally) => self.ours += tally,
            Err(error) => self.failures.push(format!("ours during {test}: {error}")),
        }
    }
}

#[test]
#[ignore = "it needs Curator's tests, which are downloaded; `cargo xtask curator` runs it"]
fn curators_own_tests_pass_while_ours_want_the_same_locks() {
    let place = env::var_os(PLACE).expect("`cargo xtask curator` downloads Curator's tests and says where they are");
    let mut java = Java::start(Path::new(&place));
    let report = Report::of(&mut java);
    let status = wait_for("Java ends", || java.process.try_wait().unwrap());
    assert!(status.success(), "{status}");
    println!("{report:#?}");
    assert_eq!(report.failures, [""; 0]);
    assert_eq!(
        report.excluded,
        SUITES.iter().map(|suite| suite.excluded.len()).sum::<usize>(),
        "some are there no more"
    );
    assert!(report.passed > 30, "{} tests", report.passed);
    assert!(report.ours.grants > 1000 && report.ours.behind_curator > 100, "{:?}", report.ours);
}
