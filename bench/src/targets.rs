//! The targets of the library, and whether it meets them.

use bench_measure::Subject;
use serde::Serialize;

use crate::compared::{title, to};
use crate::figures::Figure;
use crate::measured::Measured;

use Bound::{AtLeast, AtMost};
use Figure::{
    AfterExpiry, AskAgainGrowth, ClientLease, ClientShare, ClientTime, ClientWaiter, Commands, Failed, Fairness,
    HandOverGrowth, JoinGrowth, LeaveAtOnceGrowth, Longest, OneRound, Outage, P50, Rate, ReadBeginsGrowth,
    ReadEndsGrowth, ReadRenewalGrowth, ScriptTail, ServerShare, ServerTime, SlowestScript, ToHealthy, ToOne, ToPair,
    WaiterShare,
};
use Subject::{Bare, ByHand, Chain0, Leasehold, Permit, Pool, Read, SixteenthHeld};

/// A target and what was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    /// What has to be reached, as text.
    pub(crate) what: String,
    /// Nothing where the scenarios that it needs were not run.
    pub(crate) measured: Option<f64>,
    pub(crate) bound: Bound,
    pub(crate) met: Option<bool>,
}

/// What a measured value may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    fn allows(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }
}

/// What has to be measured of a subject in a scenario.
struct Target {
    scenario: &'static str,
    subject: Subject,
    figure: Figure,
    /// The subject that it is divided by in each round, where it is not taken as it is.
    base: Option<Subject>,
    bound: Bound,
}

impl Target {
    /// A figure as it is.
    const fn of(scenario: &'static str, subject: Subject, figure: Figure, bound: Bound) -> Self {
        Self { scenario, subject, figure, base: None, bound }
    }

    /// A figure divided by that of another subject.
    const fn to(scenario: &'static str, subject: Subject, figure: Figure, base: Subject, bound: Bound) -> Self {
        Self { scenario, subject, figure, base: Some(base), bound }
    }

    fn what(&self) -> String {
        let Self { scenario, subject, figure, base, .. } = self;
        let of = if *subject == Leasehold { String::new() } else { format!(", {}", title(*subject)) };
        let base = base.map_or_else(String::new, |base| format!(", {}", to(base)));
        format!("{scenario}: {}{of}{base}", figure.head())
    }

    fn measured(&self, scenarios: &[Measured]) -> Option<f64> {
        let measured = scenarios.iter().find(|measured| measured.scenario.name == self.scenario)?;
        match self.base {
            Some(base) => measured.ratio(self.subject, self.figure, base).map(|ratio| ratio.median),
            None => measured.subject(self.subject)?.figures.get(self.figure),
        }
    }
}

/// All targets but that of overlaps, which is one for all scenarios.
const TARGETS: [Target; 99] = [
    // One task: a third more than the least that a lock costs.
    Target::to("one", Leasehold, ServerTime, Bare, AtMost(1.25)),
    Target::to("one", Leasehold, ClientTime, Bare, AtMost(1.3)),
    Target::to("one", Leasehold, P50, Bare, AtMost(1.2)),
    Target::to("one-mt", Leasehold, ServerTime, Bare, AtMost(1.25)),
    Target::to("one-mt", Leasehold, ClientTime, Bare, AtMost(1.3)),
    Target::to("one-mt", Leasehold, P50, Bare, AtMost(1.2)),
    Target::to("dropped", Leasehold, P50, Bare, AtMost(0.8)),
    Target::to("dropped-mt", Leasehold, P50, Bare, AtMost(0.8)),
    // Many tasks, with scripts for many.
    Target::to("tasks-64", Leasehold, ServerTime, Bare, AtMost(1.2)),
    Target::to("tasks-64", Leasehold, Rate, Bare, AtLeast(0.9)),
    Target::of("tasks-64", Leasehold, ScriptTail, AtMost(1000.0)),
    Target::to("tasks-64-mt", Leasehold, ServerTime, Bare, AtMost(1.2)),
    Target::to("tasks-64-mt", Leasehold, Rate, Bare, AtLeast(0.9)),
    Target::to("tasks-1000", Leasehold, ServerTime, Bare, AtMost(1.2)),
    Target::to("tasks-1000", Leasehold, Rate, Bare, AtLeast(0.6)),
    Target::of("tasks-1000", Leasehold, ScriptTail, AtMost(1000.0)),
    Target::to("tasks-1000-mt", Leasehold, ServerTime, Bare, AtMost(1.2)),
    Target::to("tasks-1000-mt", Leasehold, Rate, Bare, AtLeast(0.6)),
    Target::to("held", SixteenthHeld, ServerTime, Leasehold, AtMost(1.5)),
    Target::to("held", SixteenthHeld, P50, Leasehold, AtMost(1.5)),
    Target::to("held-mt", SixteenthHeld, ServerTime, Leasehold, AtMost(1.5)),
    Target::to("held-mt", SixteenthHeld, P50, Leasehold, AtMost(1.5)),
    // Plain threads.
    Target::to("blocking", Leasehold, ClientTime, Bare, AtMost(1.1)),
    Target::to("blocking", Leasehold, P50, Bare, AtMost(1.1)),
    Target::to("blocking-64", Leasehold, Rate, Bare, AtLeast(0.8)),
    // Readers and permits, which store more than a lock does.
    Target::to("read", Read, ServerTime, Leasehold, AtMost(1.4)),
    Target::to("read", Read, P50, Leasehold, AtMost(1.4)),
    Target::to("permit", Permit, ServerTime, Leasehold, AtMost(1.4)),
    Target::to("permit", Permit, P50, Leasehold, AtMost(1.4)),
    Target::of("permits-8", Permit, Commands, AtMost(2.2)),
    Target::of("permits-8", Permit, Fairness, AtLeast(0.98)),
    Target::of("readers", ByHand, ReadBeginsGrowth, AtMost(1.5)),
    Target::of("readers", ByHand, ReadRenewalGrowth, AtMost(1.5)),
    Target::of("readers", ByHand, ReadEndsGrowth, AtMost(1.5)),
    // One lock that is wanted by many.
    Target::of("waiters-8", Chain0, ToPair, AtMost(1.3)),
    Target::of("waiters-8", Chain0, Commands, AtMost(2.2)),
    Target::of("waiters-8", Chain0, Fairness, AtLeast(0.98)),
    Target::of("waiters-8", Leasehold, Commands, AtMost(0.3)),
    Target::to("waiters-8", Leasehold, Rate, Chain0, AtLeast(5.0)),
    Target::of("waiters-64", Chain0, ToPair, AtMost(1.3)),
    Target::of("waiters-64", Chain0, Commands, AtMost(2.2)),
    Target::of("waiters-64", Chain0, Fairness, AtLeast(0.98)),
    Target::of("waiters-64", Leasehold, Commands, AtMost(0.3)),
    Target::to("waiters-64", Leasehold, Rate, Chain0, AtLeast(5.0)),
    Target::of("split-8", Chain0, ToPair, AtMost(1.3)),
    Target::of("split-8", Chain0, Commands, AtMost(2.2)),
    Target::of("split-8", Chain0, Fairness, AtLeast(0.98)),
    Target::of("split-64", Chain0, ToPair, AtMost(1.3)),
    Target::of("split-64", Chain0, Commands, AtMost(2.2)),
    Target::of("split-64", Chain0, Fairness, AtLeast(0.98)),
    Target::to("pool", Pool, P50, Leasehold, AtMost(1.2)),
    Target::to("pool-blocking", Pool, P50, Leasehold, AtMost(1.2)),
    // Leases that are kept, waiters, and a holder that dies.
    Target::of("hold", Leasehold, ClientShare, AtMost(1.0)),
    Target::of("hold", Leasehold, ServerShare, AtMost(1.2)),
    Target::of("hold", Leasehold, ClientLease, AtMost(1024.0)),
    Target::of("hold", Leasehold, SlowestScript, AtMost(1000.0)),
    Target::of("hold", Leasehold, Failed, AtMost(0.0)),
    Target::of("memory", Leasehold, ClientWaiter, AtMost(3000.0)),
    Target::of("crash", Leasehold, AfterExpiry, AtMost(100.0)),
    // Steps at a long queue.
    Target::of("queue", ByHand, AskAgainGrowth, AtMost(1.5)),
    Target::of("queue", ByHand, JoinGrowth, AtMost(1.5)),
    Target::of("queue", ByHand, LeaveAtOnceGrowth, AtMost(1.5)),
    Target::of("queue", ByHand, HandOverGrowth, AtMost(1.5)),
    // A quorum.
    Target::to("quorum-one", Leasehold, ServerTime, ByHand, AtMost(1.1)),
    Target::to("quorum-one", Leasehold, ClientTime, ByHand, AtMost(1.1)),
    Target::to("quorum-one", Leasehold, P50, ByHand, AtMost(1.1)),
    Target::of("quorum-one", Leasehold, OneRound, AtLeast(95.0)),
    Target::to("quorum-64", Leasehold, ServerTime, ByHand, AtMost(1.1)),
    Target::to("quorum-64", Leasehold, ClientTime, ByHand, AtMost(1.1)),
    Target::to("quorum-64", Leasehold, P50, ByHand, AtMost(1.1)),
    Target::of("quorum-64", Leasehold, OneRound, AtLeast(95.0)),
    Target::of("quorum-beside", Leasehold, OneRound, AtLeast(95.0)),
    Target::of("quorum-killed", Leasehold, ToHealthy, AtMost(1.5)),
    Target::of("quorum-killed", Leasehold, Longest, AtMost(500.0)),
    Target::of("quorum-hung", Leasehold, ToHealthy, AtMost(1.5)),
    Target::of("quorum-hung", Leasehold, Longest, AtMost(500.0)),
    // A SQLite file.
    Target::to("sqlite-one", Leasehold, P50, Bare, AtMost(1.2)),
    Target::to("sqlite-one", Leasehold, ClientTime, Bare, AtMost(1.2)),
    Target::to("sqlite-thread", Leasehold, P50, Bare, AtMost(1.2)),
    Target::to("sqlite-thread", Leasehold, ClientTime, Bare, AtMost(1.2)),
    Target::of("sqlite-64", Leasehold, ToOne, AtLeast(5.0)),
    Target::of("sqlite-wait", Leasehold, WaiterShare, AtMost(0.5)),
    // A server of PostgreSQL.
    Target::to("postgres-one", Leasehold, P50, Bare, AtMost(1.15)),
    Target::to("postgres-thread", Leasehold, P50, Bare, AtMost(1.15)),
    Target::of("postgres-64", Leasehold, ToOne, AtLeast(2.5)),
    Target::to("postgres-waiters-8", Leasehold, Rate, Bare, AtLeast(0.9)),
    Target::to("postgres-waiters-64", Leasehold, Rate, Bare, AtLeast(0.9)),
    // A server of MariaDB, whose waiters poll.
    Target::to("mysql-one", Leasehold, P50, Bare, AtMost(1.25)),
    Target::to("mysql-thread", Leasehold, P50, Bare, AtMost(1.25)),
    Target::to("mysql-waiters-8", Leasehold, Rate, Bare, AtLeast(0.8)),
    Target::to("mysql-waiters-64", Leasehold, Rate, Bare, AtLeast(0.8)),
    // A server of ZooKeeper.
    Target::to("zookeeper-one", Leasehold, P50, Bare, AtMost(1.2)),
    Target::to("zookeeper-waiters-8", Leasehold, Rate, Bare, AtLeast(0.9)),
    Target::to("zookeeper-waiters-64", Leasehold, Rate, Bare, AtLeast(0.9)),
    // A server of etcd.
    Target::to("etcd-one", Leasehold, P50, Bare, AtMost(1.2)),
    Target::to("etcd-waiters-8", Leasehold, Rate, Bare, AtLeast(0.9)),
    Target::to("etcd-waiters-64", Leasehold, Rate, Bare, AtLeast(0.9)),
    // Readers of one process.
    Target::to("reads", Leasehold, P50, Bare, AtMost(10.0)),
    // A primary that is replaced.
    Target::to("failover", Leasehold, Outage, Bare, AtMost(3.0)),
];

/// Judges all targets.
pub(crate) fn judge(scenarios: &[Measured]) -> Vec<Verdict> {
    let verdict = |what, measured: Option<f64>, bound: Bound| {
        let met = measured.map(|value| bound.allows(value));
        Verdict { what, measured, bound, met }
    };
    let judged = TARGETS.iter().map(|target| verdict(target.what(), target.measured(scenarios), target.bound));
    let one_holder = verdict("two holders at a time".to_owned(), overlaps(scenarios), AtMost(0.0));
    judged.chain([one_holder]).collect()
}

fn overlaps(scenarios: &[Measured]) -> Option<f64> {
    let ours = |measured: &Measured| {
        [Leasehold, Chain0, Permit, Pool].map(|s| measured.subject(s)?.figures.get(Figure::Overlaps))
    };
    scenarios.iter().flat_map(ours).flatten().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::figures::Figures;
    use crate::scenario::Scenario;

    #[test]
    fn a_target_is_met_missed_or_not_measured() {
        let costs = |server, client| vec![Figures::default().with(ServerTime, server).with(ClientTime, client)];
        let one = Scenario::named("one").unwrap();
        let verdicts = judge(&[Measured::new(one, vec![(Bare, costs(10.0, 10.0)), (Leasehold, costs(12.5, 13.1))])]);
        assert_eq!((verdicts[0].what.as_str(), verdicts[0].met), ("one: server µs, to bare", Some(true)));
        assert_eq!((verdicts[1].what.as_str(), verdicts[1].met), ("one: client µs, to bare", Some(false)));
        assert!(verdicts[2..].iter().all(|verdict| verdict.met.is_none()));
        assert!(AtLeast(5.0).allows(5.0) && !AtLeast(5.0).allows(4.9));
    }

    #[test]
    fn every_target_has_a_name_of_its_own() {
        let names: HashSet<String> = TARGETS.iter().map(Target::what).collect();
        assert_eq!(names.len(), TARGETS.len());
    }

    #[test]
    fn every_target_is_measured_by_its_scenario() {
        for target in &TARGETS {
            let scenario = Scenario::named(target.scenario).unwrap();
            assert!(scenario.columns().contains(&target.figure), "{}", target.what());
            for subject in [Some(target.subject), target.base].into_iter().flatten() {
                assert!(scenario.subjects().contains(&subject), "{}", target.what());
            }
        }
    }
}
