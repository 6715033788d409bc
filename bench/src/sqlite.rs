//! One run of one subject with a SQLite file.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use bench_measure::{Ending, Names, Plan, Runtime, Subject, Work};

use crate::figures::{Figure, Figures};
use crate::runs::{Ground, TTL};
use crate::scale::Scale;

/// The lock that one process holds and another waits for: the first that a holder holds.
const LOCK: &str = "bench:0";

impl Ground<'_> {
    /// Tasks or threads of one process; if there are many, also what they reach compared with one of them.
    pub(crate) fn sqlite_pairs(&mut self, subject: Subject, tasks: u32, runtime: Runtime) -> Result<Figures> {
        let figures = self.pairs_in_a_file(subject, tasks, runtime)?;
        if tasks == 1 || subject != Subject::Leasehold {
            return Ok(figures);
        }
        let one = self.pairs_in_a_file(subject, 1, runtime)?;
        let rates = figures.get(Figure::Rate).zip(one.get(Figure::Rate));
        Ok(rates.map_or(figures.clone(), |(many, one)| figures.with(Figure::ToOne, many / one)))
    }

    /// The processor time of a waiter, without what it takes to begin.
    pub(crate) fn sqlite_wait(&mut self, subject: Subject) -> Result<Figures> {
        let file = self.file("wait")?;
        let plan = |work| in_file(&file, subject, Runtime::CurrentThread, work);
        let _holder = self.holder(&plan(Work::Hold { locks: 1, span: Duration::MAX }))?;
        let mut waiter = self.start(&plan(Work::Wait { waiters: 1, names: Names::One(LOCK.to_owned()) }))?;
        waiter.go_on()?;
        waiter.halted()?;
        let before = waiter.processor()?;
        thread::sleep(self.scale.watched_for);
        let spent = waiter.processor()?.saturating_sub(before);
        let share = 100.0 * spent.as_secs_f64() / self.scale.watched_for.as_secs_f64();
        Ok(Figures::default().with(Figure::WaiterShare, share))
    }

    fn pairs_in_a_file(&self, subject: Subject, tasks: u32, runtime: Runtime) -> Result<Figures> {
        let Scale { warm_up, span, .. } = self.scale;
        let work = Work::Pairs { tasks, ending: Ending::Awaited, warm_up, span };
        self.pairs_alone(&in_file(&self.file("pairs")?, subject, runtime, work))
    }

    /// The URL of a file that does not exist yet.
    fn file(&self, name: &str) -> Result<String> {
        let folder = tempfile::tempdir_in(self.folder.path())?.keep();
        Ok(format!("sqlite:{}", folder.join(name).display()))
    }
}

fn in_file(url: &str, subject: Subject, runtime: Runtime, work: Work) -> Plan {
    Plan { subject, servers: vec![url.to_owned()], ttl: TTL, runtime, work }
}
