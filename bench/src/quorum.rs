//! One run of one subject at the nodes of a quorum.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use bench_measure::{Ending, Report, Runtime, Subject, Turn, Work, now};
use leasehold::redlock::{Purpose, RedlockConfig, blocking};

use crate::child::ours::url;
use crate::costs::{costs, of_pairs};
use crate::figures::{Figure, Figures};
use crate::kind::Fault;
use crate::runs::Ground;
use crate::scale::Scale;
use crate::scenario::NODES;

/// How long a step of the founding may take.
const FOUND_WITHIN: Duration = Duration::from_secs(10);
/// The commands of a pair that needs one round: an acquire and a release at each node. A further one is an acknowledgement.
const ONE_ROUND: f64 = 2.0 * NODES as f64;
/// How many acknowledgements a second round asks for at least: of all but a minority that drew the token already.
const ACKNOWLEDGEMENTS_MIN: f64 = (NODES / 2 + 1) as f64;
/// The node that breaks.
const BROKEN: usize = 0;

impl Ground<'_> {
    /// Tasks that have the nodes for themselves.
    pub(crate) fn quorum(&mut self, subject: Subject, tasks: u32) -> Result<Figures> {
        self.found()?;
        let figures = self.pairs(&self.plan(subject, Runtime::CurrentThread, self.free_locks(tasks)))?;
        Ok(with_rounds(subject, figures))
    }

    /// One task, while another leasehold process takes other locks. Costs and rounds are those of both processes.
    pub(crate) fn beside(&mut self, subject: Subject) -> Result<Figures> {
        self.found()?;
        let work = self.one_lock("neighbour", self.scale.span);
        let mut neighbour = self.start(&self.plan(Subject::Leasehold, Runtime::CurrentThread, work))?;
        let mut measured = self.start(&self.plan(subject, Runtime::CurrentThread, self.free_locks(1)))?;
        let before = self.stats()?;
        neighbour.go_on()?;
        measured.go_on()?;
        let (report, other) = (measured.report()?, neighbour.report()?);
        let after = self.stats()?;
        let done = (report.done + other.done) as f64;
        let costs = costs(subject, done, &[report.clone(), other], [&before, &after]);
        Ok(with_rounds(subject, of_pairs(&report, costs)))
    }

    /// One task, before and after a node breaks.
    pub(crate) fn broken(&mut self, subject: Subject, fault: Fault) -> Result<Figures> {
        self.found()?;
        let Scale { span, broken_for, .. } = self.scale;
        let work = self.one_lock("turns", span + broken_for);
        let mut process = self.start(&self.plan(subject, Runtime::CurrentThread, work))?;
        process.go_on()?;
        thread::sleep(span);
        let broken_at = now();
        self.servers[BROKEN].break_down(fault);
        let report = process.report();
        self.servers[BROKEN].restart();
        let turns = Turn::read_all(&self.folder.path().join("turns"))?;
        Ok(around(&turns, broken_at)?.with(Figure::Failed, report?.failed as f64))
    }

    /// Declares the nodes, which have just forgotten everything, a new deployment.
    fn found(&self) -> Result<()> {
        let config = RedlockConfig::from_url(&url(&self.urls()))?;
        blocking::open(&config)?.pass(Purpose::Init, FOUND_WITHIN)?;
        Ok(())
    }

    fn free_locks(&self, tasks: u32) -> Work {
        let Scale { warm_up, span, .. } = self.scale;
        Work::Pairs { tasks, ending: Ending::Awaited, warm_up, span }
    }

    /// One task with a lock that [`free_locks`](Self::free_locks) has not; its turns are written down.
    fn one_lock(&self, turns: &str, span: Duration) -> Work {
        Work::Contend { waiters: 1, warm_up: self.scale.warm_up, span, turns: self.folder.path().join(turns) }
    }
}

/// Adds how many acquires needed one round, at least, where only our own were counted.
fn with_rounds(subject: Subject, figures: Figures) -> Figures {
    match figures.get(Figure::Commands) {
        Some(commands) if subject == Subject::Leasehold => {
            let second = ((commands - ONE_ROUND) / ACKNOWLEDGEMENTS_MIN).clamp(0.0, 1.0);
            figures.with(Figure::OneRound, 100.0 * (1.0 - second))
        }
        Some(_) | None => figures,
    }
}

/// What pairs took after a moment, the one that it fell into among them, and beside those before.
fn around(turns: &[Turn], broken_at: u64) -> Result<Figures> {
    let [mut healthy, mut broken] = [Report::default(), Report::default()];
    let split = turns.partition_point(|turn| turn.acquired < broken_at);
    let times = |turns: &[Turn]| turns.windows(2).map(|pair| pair[1].acquired - pair[0].acquired).collect();
    healthy.set_times(times(&turns[..split]));
    broken.set_times(times(turns.get(split.saturating_sub(1)..).unwrap_or_default()));
    (broken.done > 0).then_some(()).context("nothing was acquired any more")?;
    Ok(Figures::default()
        .with(Figure::P50, broken.p50 as f64 / 1e3)
        .with(Figure::ToHealthy, broken.p50 as f64 / healthy.p50 as f64)
        .with(Figure::Longest, broken.max as f64 / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_told_apart_by_when_the_node_broke() {
        let turn = |millis: u64| Turn { waiter: 0, acquired: millis * 1_000_000, released: millis * 1_000_000 };
        let turns = [0, 10, 20, 30, 75, 90, 105].map(turn);
        let figures = around(&turns, 31_000_000).unwrap();
        let all = [Figure::P50, Figure::ToHealthy, Figure::Longest].map(|figure| figures.get(figure).unwrap());
        assert_eq!(all, [15_000.0, 1.5, 45.0]);
        assert!(around(&turns[..4], 31_000_000).is_err() && around(&[], 0).is_err());
    }

    #[test]
    fn a_second_round_is_told_by_its_acknowledgements() {
        let share = |subject, commands| {
            with_rounds(subject, Figures::default().with(Figure::Commands, commands)).get(Figure::OneRound)
        };
        assert_eq!(share(Subject::Leasehold, 10.0), Some(100.0));
        assert_eq!(share(Subject::Leasehold, 10.75), Some(75.0));
        assert_eq!([share(Subject::Leasehold, 9.9), share(Subject::Leasehold, 14.0)], [Some(100.0), Some(0.0)]);
        assert_eq!(share(Subject::Rslock, 10.0), None);
    }
}
