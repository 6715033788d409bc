//! One run of one side, in processes of its own.

use std::time::Duration;

use anyhow::Result;
use bench_measure::{Ending, Plan, Runtime, Subject, Turn, Work};
use tempfile::TempDir;

use super::figures::Figures;
use super::process::Process;
use super::scenario::Kind;

/// How long a process works before anything counts.
pub(crate) const WARM_UP: Duration = Duration::from_millis(200);
/// How long a run lasts.
pub(crate) const SPAN: Duration = Duration::from_secs(1);

/// What all runs use.
pub(crate) struct Ground {
    url: String,
    ttl: Duration,
    folder: TempDir,
}

impl Ground {
    /// At this server, with leases of this length.
    pub(crate) fn at(url: String, ttl: Duration) -> Result<Self> {
        Ok(Self { url, ttl, folder: TempDir::new()? })
    }

    /// Runs it once.
    pub(crate) fn run(&self, kind: Kind, subject: Subject) -> Result<Figures> {
        match kind {
            Kind::Pairs(tasks) => {
                let work = Work::Pairs { tasks, ending: Ending::Awaited, warm_up: WARM_UP, span: SPAN };
                let mut process = Process::start(&self.plan(subject, work))?;
                process.warm()?;
                process.go_on()?;
                Figures::of_pairs(&process.report()?)
            }
            Kind::HandOvers { waiters, processes } => self.hand_overs([waiters / processes, processes], subject),
        }
    }

    fn hand_overs(&self, [waiters, processes]: [u32; 2], subject: Subject) -> Result<Figures> {
        let files: Vec<_> = (0..processes).map(|number| self.folder.path().join(number.to_string())).collect();
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
        Plan { subject, servers: vec![self.url.clone()], ttl: self.ttl, runtime: Runtime::CurrentThread, work }
    }
}
