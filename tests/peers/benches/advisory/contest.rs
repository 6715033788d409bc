//! What is measured: all in each round, one after the other, so that what disturbs one disturbs its neighbours.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use bench_measure::{Ending, Plan, Runtime, Subject, Turn, Work};
use tempfile::TempDir;
use test_support::PostgresServer;

use crate::figures::Figures;
use crate::locks::THEIRS;
use crate::process::Process;
use crate::table::{Row, table};

/// How often each is measured.
const ROUNDS: usize = 7;
const WARM_UP: Duration = Duration::from_millis(200);
const SPAN: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(10);
/// How many wait for one lock, in all processes together.
const WAITERS: u32 = 8;

/// What is done in a run.
#[derive(Clone, Copy)]
enum Kind {
    /// So many tasks acquire and release, each its own lock.
    Pairs(u32),
    /// Waiters for one lock, in so many processes.
    HandOvers(u32),
}

struct Scenario {
    title: &'static str,
    kind: Kind,
    /// Whom of ours to measure.
    ours: &'static [Subject],
}

const SCENARIOS: [Scenario; 4] = [
    Scenario { title: "one task, a free lock", kind: Kind::Pairs(1), ours: &[Subject::Leasehold] },
    Scenario { title: "8 tasks, a free lock each", kind: Kind::Pairs(8), ours: &[Subject::Leasehold] },
    Scenario {
        title: "8 waiters for one lock, one process",
        kind: Kind::HandOvers(1),
        ours: &[Subject::Leasehold, Subject::Chain0],
    },
    Scenario {
        title: "8 waiters for one lock, two processes",
        kind: Kind::HandOvers(2),
        ours: &[Subject::Leasehold, Subject::Chain0],
    },
];

/// Measures all, and returns the table.
pub(crate) fn all() -> Result<String> {
    let ground = Ground { server: PostgresServer::start(), folder: TempDir::new()? };
    let version = ground.server.psql("SHOW server_version");
    // A busy machine, above all a busy disk, slows down what writes to it.
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or_default();
    let rows: Vec<Vec<Row>> = SCENARIOS.iter().map(|scenario| ground.rows(scenario)).collect::<Result<_>>()?;
    let method = format!(
        "PostgreSQL {version}, fsync on, loopback, load {load} before; {SPAN:?} in each of {ROUNDS} rounds; medians."
    );
    Ok(format!("{method}\n\n{}", table(rows.iter().flatten())))
}

/// What all runs use.
struct Ground {
    server: PostgresServer,
    folder: TempDir,
}

impl Ground {
    /// A row for each of ours.
    fn rows(&self, scenario: &Scenario) -> Result<Vec<Row>> {
        let mut subjects: Vec<Subject> = scenario.ours.iter().copied().chain([THEIRS]).collect();
        let mut rounds: Vec<(Subject, Vec<Figures>)> = subjects.iter().map(|subject| (*subject, Vec::new())).collect();
        for _ in 0..ROUNDS {
            for subject in &subjects {
                let figures = self.run(scenario.kind, *subject)?;
                rounds.iter_mut().filter(|(of, _)| of == subject).for_each(|(_, all)| all.push(figures.clone()));
            }
            subjects.rotate_left(1);
        }
        let theirs = rounds.pop().map(|(_, theirs)| theirs).unwrap_or_default();
        let row = |(subject, ours): (_, Vec<_>)| Row::of(scenario.title, title(subject), &ours, &theirs);
        Ok(rounds.into_iter().map(row).collect())
    }

    fn run(&self, kind: Kind, subject: Subject) -> Result<Figures> {
        match kind {
            Kind::Pairs(tasks) => {
                let work = Work::Pairs { tasks, ending: Ending::Awaited, warm_up: WARM_UP, span: SPAN };
                let mut process = Process::start(&self.plan(subject, work))?;
                process.warm()?;
                process.go_on()?;
                Figures::of_pairs(&process.report()?)
            }
            Kind::HandOvers(processes) => self.hand_overs(processes, subject),
        }
    }

    fn hand_overs(&self, processes: u32, subject: Subject) -> Result<Figures> {
        let files: Vec<_> = (0..processes).map(|number| self.folder.path().join(number.to_string())).collect();
        let waiters = WAITERS / processes;
        let work = |turns| Work::Contend { waiters, warm_up: WARM_UP, span: SPAN, turns };
        let started = files.iter().map(|file| Process::start(&self.plan(subject, work(file.clone()))));
        let mut started: Vec<_> = started.collect::<Result<_>>()?;
        started.iter_mut().try_for_each(Process::warm)?;
        started.iter_mut().try_for_each(Process::go_on)?;
        let reports: Vec<_> = started.iter_mut().map(Process::report).collect::<Result<_>>()?;
        let turns: Vec<_> = files.iter().map(|file| Turn::read_all(file)).collect::<Result<_>>()?;
        Figures::of_turns(&reports, &turns)
    }

    fn plan(&self, subject: Subject, work: Work) -> Plan {
        Plan { subject, servers: vec![self.server.url()], ttl: TTL, runtime: Runtime::CurrentThread, work }
    }
}

fn title(subject: Subject) -> &'static str {
    if subject == Subject::Chain0 { "leasehold, chain 0" } else { "leasehold" }
}
