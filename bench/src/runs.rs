//! One run of one subject in one scenario.

use std::path::Path;
use std::time::Duration;
use std::{slice, thread};

use anyhow::{Context, Result, bail};
use bench_measure::{Ending, Names, Plan, Runtime, Subject, Turn, Work, now};
use tempfile::TempDir;

use crate::costs::{client_costs, costs, of_pairs};
use crate::figures::{Figure, Figures, median};
use crate::hand_over::{HandOvers, Line};
use crate::kind::Kind;
use crate::process::{Process, Programs};
use crate::scale::Scale;
use crate::scenario::Scenario;
use crate::server::{ScriptRun, Server, Stats};

/// The ttl of all scenarios but one.
pub(crate) const TTL: Duration = Duration::from_secs(10);
/// The URL of a store within the process.
pub(crate) const IN_PROCESS: &str = "memory:";
/// The ttl of a holder that dies.
const TTL_OF_THE_DEAD: Duration = Duration::from_secs(2);
/// The lock that somebody dies with: the first that a holder holds.
const LOCK_OF_THE_DEAD: &str = "bench:0";
/// How many processes wait for a dead holder's lock, and with how many tasks each.
const HEIRS: (u32, u32) = (2, 4);
/// How long memory is left to settle.
const SETTLE: Duration = Duration::from_millis(200);

/// What all runs of a scenario use.
pub(crate) struct Ground<'a> {
    /// One, or the nodes of a quorum.
    pub(crate) servers: Vec<Server>,
    pub(crate) programs: &'a Programs,
    pub(crate) scale: Scale,
    pub(crate) folder: TempDir,
}

impl Ground<'_> {
    /// Runs a subject once.
    pub(crate) fn run(&mut self, scenario: &Scenario, subject: Subject) -> Result<Figures> {
        self.servers.iter_mut().try_for_each(Server::clear)?;
        match scenario.kind {
            Kind::Pairs { tasks, runtime, ending } => {
                let Scale { warm_up, span, .. } = self.scale;
                self.pairs(&self.plan(subject, runtime, Work::Pairs { tasks, ending, warm_up, span }))
            }
            Kind::Read | Kind::Permit => {
                let Scale { warm_up, span, .. } = self.scale;
                let work = Work::Pairs { tasks: 1, ending: Ending::Awaited, warm_up, span };
                self.pairs(&self.plan(subject, Runtime::CurrentThread, work))
            }
            Kind::Held { tasks, runtime } => self.held(subject, tasks, runtime),
            Kind::Contend { waiters, processes } => {
                let figures = self.contend(subject, waiters, processes, Runtime::CurrentThread)?;
                if subject == Subject::Chain0 { self.beside_a_pair(subject, figures) } else { Ok(figures) }
            }
            Kind::Permits { waiters, processes } => {
                let figures = self.contend(subject, waiters, processes, Runtime::CurrentThread)?;
                self.beside_a_pair(subject, figures)
            }
            Kind::Pool(runtime) => self.contend(subject, 2, 2, runtime),
            Kind::Replicated { tasks } => self.replicated(subject, tasks),
            Kind::FailOver => bail!("its subjects run side by side"),
            Kind::Hold => self.hold(subject),
            Kind::Memory => self.memory(subject),
            Kind::Crash => self.crash(subject),
            Kind::Queue => self.queue(),
            Kind::Readers => self.readers(),
            Kind::Quorum { tasks } => self.quorum(subject, tasks),
            Kind::Beside => self.beside(subject),
            Kind::Broken(fault) => self.broken(subject, fault),
            Kind::DatabasePairs { database, tasks, runtime } => self.database_pairs(database, subject, tasks, runtime),
            Kind::DatabaseContend { database, waiters } => self.database_contend(database, subject, waiters),
            Kind::DatabaseWait { database } => self.database_wait(database, subject),
            Kind::Reads => self.reads(subject),
        }
    }

    pub(crate) fn plan(&self, subject: Subject, runtime: Runtime, work: Work) -> Plan {
        Plan { subject, servers: self.urls(), ttl: TTL, runtime, work }
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.servers.iter().map(Server::url).collect()
    }

    /// Of all servers together.
    pub(crate) fn stats(&mut self) -> Result<Stats> {
        self.servers.iter_mut().map(Server::stats).sum()
    }

    /// Starts a process and waits for its first halt.
    pub(crate) fn start(&self, plan: &Plan) -> Result<Process> {
        let mut process = self.programs.start(plan)?;
        process.halted()?;
        Ok(process)
    }

    pub(crate) fn pairs(&mut self, plan: &Plan) -> Result<Figures> {
        let mut process = self.start(plan)?;
        let before = self.stats()?;
        process.go_on()?;
        let report = process.report()?;
        let after = self.stats()?;
        Ok(of_pairs(&report, costs(plan.subject, report.done as f64, slice::from_ref(&report), [&before, &after])))
    }

    /// The same, where no server takes part.
    pub(crate) fn pairs_alone(&self, plan: &Plan) -> Result<Figures> {
        let mut process = self.start(plan)?;
        process.go_on()?;
        let report = process.report()?;
        Ok(of_pairs(&report, client_costs(report.done as f64, slice::from_ref(&report))))
    }

    fn reads(&self, subject: Subject) -> Result<Figures> {
        let Scale { warm_up, span, .. } = self.scale;
        let work = Work::Pairs { tasks: 1, ending: Ending::Awaited, warm_up, span };
        let plan = self.plan(subject, Runtime::CurrentThread, work);
        self.pairs_alone(&Plan { servers: vec![IN_PROCESS.to_owned()], ..plan })
    }

    /// Tasks that try, while another process holds one lock of each, or none does.
    fn held(&mut self, subject: Subject, tasks: u32, runtime: Runtime) -> Result<Figures> {
        let work = Work::Hold { locks: tasks, span: Duration::MAX };
        let holder = self.plan(Subject::Leasehold, Runtime::CurrentThread, work);
        let _holder = (subject == Subject::SixteenthHeld).then(|| self.holder(&holder)).transpose()?;
        let Scale { warm_up, span, .. } = self.scale;
        self.pairs(&self.plan(subject, runtime, Work::Tries { tasks, warm_up, span }))
    }

    /// Starts a process that holds locks until it is killed.
    pub(crate) fn holder(&self, plan: &Plan) -> Result<Process> {
        let mut holder = self.start(plan)?;
        holder.go_on()?;
        holder.halted()?;
        Ok(holder)
    }

    fn contend(&mut self, subject: Subject, waiters: u32, processes: u32, runtime: Runtime) -> Result<Figures> {
        let servers = self.urls();
        self.contend_at(servers, subject, waiters, processes, runtime)
    }

    pub(crate) fn contend_at(
        &mut self,
        servers: Vec<String>,
        subject: Subject,
        waiters: u32,
        processes: u32,
        runtime: Runtime,
    ) -> Result<Figures> {
        let Scale { warm_up, span, .. } = self.scale;
        let folder = self.folder.path().to_owned();
        let file = |process: u32| folder.join(format!("turns-{process}"));
        let work = |turns| Work::Contend { waiters: waiters / processes, warm_up, span, turns };
        let start = |process| {
            let servers = servers.clone();
            self.programs.start(&Plan { servers, ..self.plan(subject, runtime, work(file(process))) })
        };
        let mut running = (0..processes).map(start).collect::<Result<Vec<_>>>()?;
        running.iter_mut().try_for_each(Process::halted)?;
        let before = self.stats()?;
        running.iter_mut().try_for_each(Process::go_on)?;
        let reports = running.iter_mut().map(Process::report).collect::<Result<Vec<_>>>()?;
        let after = self.stats()?;
        let lines = (0..processes).map(|process| read(process, &file(process))).collect::<Result<Vec<_>>>()?;
        let begun = || reports.iter().map(|report| report.begun);
        let end = begun().min().unwrap_or(0) + span.as_nanos() as u64;
        let hand_overs = HandOvers::of(lines, &(begun().max().unwrap_or(0)..end));
        Ok(hand_overs.figures(costs(subject, hand_overs.count() as f64, &reports, [&before, &after])))
    }

    /// Measures an uncontended pair of the same library at once after the hand-overs, while the machine is as busy.
    fn beside_a_pair(&mut self, subject: Subject, hand_overs: Figures) -> Result<Figures> {
        let Scale { warm_up, span, .. } = self.scale;
        let work = Work::Pairs { tasks: 1, ending: Ending::Awaited, warm_up, span };
        let pair = self.pairs(&self.plan(subject, Runtime::CurrentThread, work))?;
        let times = hand_overs.get(Figure::P50).zip(pair.get(Figure::P50));
        Ok(times.map_or(hand_overs.clone(), |(hand_over, pair)| hand_overs.with(Figure::ToPair, hand_over / pair)))
    }

    fn hold(&mut self, subject: Subject) -> Result<Figures> {
        let Scale { leases, held_for, .. } = self.scale;
        let work = Work::Hold { locks: leases, span: held_for };
        let mut process = self.start(&self.plan(subject, Runtime::CurrentThread, work))?;
        let empty = (process.memory()?, self.stats()?.memory);
        process.go_on()?;
        process.halted()?;
        thread::sleep(SETTLE);
        let full = (process.memory()?, self.stats()?.memory);
        self.servers[0].log_commands()?;
        let before = self.stats()?;
        process.go_on()?;
        let report = process.report()?;
        let after = self.stats()?;
        let scripts = self.servers[0].logged_scripts()?;
        let share = |time: Duration| 100.0 * time.as_secs_f64() / report.elapsed.as_secs_f64();
        let figures = renewals(&scripts, after.sent_since(&before, &[]), report.elapsed)
            .with(Figure::Failed, report.failed as f64)
            .with(Figure::ClientShare, share(report.processor))
            .with(Figure::ServerShare, share(after.processor.saturating_sub(before.processor)))
            .with(Figure::ClientLease, each(full.0, empty.0, leases))
            .with(Figure::ServerLease, each(full.1, empty.1, leases));
        Ok(figures)
    }

    fn memory(&mut self, subject: Subject) -> Result<Figures> {
        let waiters = self.scale.waiters;
        let work = Work::Hold { locks: waiters, span: Duration::MAX };
        let _holder = self.holder(&self.plan(subject, Runtime::CurrentThread, work))?;
        let work = Work::Wait { waiters, names: Names::Each("bench".to_owned()) };
        let mut waiting = self.start(&self.plan(subject, Runtime::CurrentThread, work))?;
        thread::sleep(SETTLE);
        let nobody = (waiting.memory()?, self.stats()?.memory);
        waiting.go_on()?;
        waiting.halted()?;
        let all = (waiting.memory()?, self.stats()?.memory);
        Ok(Figures::default()
            .with(Figure::ClientWaiter, each(all.0, nobody.0, waiters))
            .with(Figure::ServerWaiter, each(all.1, nobody.1, waiters)))
    }

    fn crash(&mut self, subject: Subject) -> Result<Figures> {
        let dying = |work| Plan { ttl: TTL_OF_THE_DEAD, ..self.plan(subject, Runtime::CurrentThread, work) };
        let holder = self.holder(&dying(Work::Hold { locks: 1, span: Duration::MAX }))?;
        let waiting = || {
            let names = Names::One(LOCK_OF_THE_DEAD.to_owned());
            let mut heir = self.start(&dying(Work::Wait { waiters: HEIRS.1, names }))?;
            heir.go_on()?;
            Ok(heir)
        };
        let mut heirs = (0..HEIRS.0).map(|_| waiting()).collect::<Result<Vec<_>>>()?;
        heirs.iter_mut().try_for_each(Process::halted)?;
        heirs.iter_mut().try_for_each(Process::go_on)?;
        holder.kill();
        let remaining = self.servers[0].remaining(LOCK_OF_THE_DEAD)?.context("the holder had lost its lock")?;
        let expiry = now() as f64 / 1e6 + remaining.as_secs_f64() * 1e3;
        let reports = heirs.iter_mut().map(Process::report).collect::<Result<Vec<_>>>()?;
        let first = reports.iter().map(|report| report.first_held).min().context("nobody waited")?;
        Ok(Figures::default().with(Figure::AfterExpiry, first as f64 / 1e6 - expiry))
    }
}

fn renewals(scripts: &[ScriptRun], sent: u64, elapsed: Duration) -> Figures {
    let leases = scripts.iter().map(|script| script.keys).sum::<u64>() as f64;
    let micros: Vec<f64> = scripts.iter().map(|script| script.took.as_secs_f64() * 1e6).collect();
    Figures::default()
        .with(Figure::Renewals, leases / elapsed.as_secs_f64())
        .with(Figure::Commands, sent as f64 / leases)
        .with(Figure::Batch, leases / scripts.len() as f64)
        .with(Figure::SlowestScript, micros.iter().copied().fold(0.0, f64::max))
        .with(Figure::Script, median(micros))
}

/// The share of each of `count` in what came to be in use.
fn each(now: u64, before: u64, count: u32) -> f64 {
    now.saturating_sub(before) as f64 / f64::from(count)
}

fn read(process: u32, path: &Path) -> Result<Vec<Line>> {
    let turns = Turn::read_all(path)?;
    Ok(turns.into_iter().map(|turn| Line { process, turn }).collect())
}
