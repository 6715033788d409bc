//! The targets of the library, and whether it meets them.

use bench_measure::Subject;
use serde::Serialize;

use crate::figures::Figure;
use crate::measured::Measured;

use Bound::{AtLeast, AtMost};
use Subject::{ByHand, Chain0, Leasehold};

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

/// The scenarios of one lock that is wanted by many: in one process, and in two.
const IN_ONE: [&str; 2] = ["waiters-8", "waiters-64"];
const IN_TWO: [&str; 2] = ["split-8", "split-64"];

/// Judges all targets.
pub(crate) fn judge(scenarios: &[Measured]) -> Vec<Verdict> {
    let measured = All(scenarios);
    let mut verdicts = Vec::new();
    let mut judge = |what: String, measured: Option<f64>, bound: Bound| {
        verdicts.push(Verdict { what, measured, bound, met: measured.map(|value| bound.allows(value)) });
    };
    for one in ["one", "one-mt"] {
        let what = |base| format!("{one}: p50 of a pair, to {base}");
        judge(what("our scripts by hand"), measured.to(one, Leasehold, Figure::P50, ByHand), AtMost(1.05));
        judge(what("the bare pair"), measured.to(one, Leasehold, Figure::P50, Subject::Bare), AtMost(1.2));
    }
    for dropped in ["dropped", "dropped-mt"] {
        let ratio = measured.to(dropped, Leasehold, Figure::P50, Subject::Bare);
        judge(format!("{dropped}: p50 of a pair, to the bare pair"), ratio, AtMost(0.8));
    }
    for tasks in ["tasks-64", "tasks-64-mt", "tasks-1000", "tasks-1000-mt"] {
        let ratio = measured.to(tasks, Leasehold, Figure::Rate, ByHand);
        judge(format!("{tasks}: rate, to our scripts by hand"), ratio, AtLeast(1.15));
    }
    let ratio = measured.to("blocking", Leasehold, Figure::P50, ByHand);
    judge("blocking: p50 of a pair, to our scripts by hand".to_owned(), ratio, AtMost(1.1));
    for contended in IN_ONE.into_iter().chain(IN_TWO) {
        let value = |figure| measured.value(contended, Chain0, figure);
        judge(format!("{contended}: p50 of a hand-over, chain 0, to a pair"), value(Figure::ToPair), AtMost(1.3));
        judge(format!("{contended}: commands for a hand-over, chain 0"), value(Figure::Commands), AtMost(2.2));
        judge(format!("{contended}: turns, least to most, chain 0"), value(Figure::Fairness), AtLeast(0.98));
    }
    for contended in IN_ONE {
        let commands = measured.value(contended, Leasehold, Figure::Commands);
        judge(format!("{contended}: commands for a hand-over"), commands, AtMost(0.3));
        let rate = |subject| measured.value(contended, subject, Figure::Rate);
        let ratio = rate(Leasehold).zip(rate(Chain0)).map(|(chain, none)| chain / none);
        judge(format!("{contended}: rate, to chain 0"), ratio, AtLeast(5.0));
    }
    for pool in ["pool", "pool-blocking"] {
        judge(format!("{pool}: p50 of a hand-over, to a client of a URL"), measured.to_url(pool), AtMost(1.2));
    }
    for (what, figure, bound) in [
        ("% of a client core", Figure::ClientShare, 1.0),
        ("% of a server core", Figure::ServerShare, 1.2),
        ("bytes of the client for a lease", Figure::ClientLease, 1024.0),
        ("µs of the slowest renewal script", Figure::SlowestScript, 1000.0),
        ("leases lost", Figure::Failed, 0.0),
    ] {
        judge(format!("hold: {what}"), measured.value("hold", Leasehold, figure), AtMost(bound));
    }
    judge("crash: ms after expiry".to_owned(), measured.value("crash", Leasehold, Figure::AfterExpiry), AtMost(100.0));
    for (step, growth) in [
        ("asks again", Figure::AskAgainGrowth),
        ("joins", Figure::JoinGrowth),
        ("leaves with all others", Figure::LeaveAtOnceGrowth),
        ("hands over", Figure::HandOverGrowth),
    ] {
        let ratio = measured.value("queue", ByHand, growth);
        judge(format!("queue: script of one that {step}, to a queue of 100"), ratio, AtMost(1.5));
    }
    for quorum in ["quorum-one", "quorum-64"] {
        let ratio = measured.to(quorum, Leasehold, Figure::P50, ByHand);
        judge(format!("{quorum}: p50 of a pair, to our scripts by hand"), ratio, AtMost(1.15));
    }
    for quorum in ["quorum-one", "quorum-64", "quorum-beside"] {
        let share = measured.value(quorum, Leasehold, Figure::OneRound);
        judge(format!("{quorum}: % of acquires in one round"), share, AtLeast(95.0));
    }
    for broken in ["quorum-killed", "quorum-hung"] {
        let value = |figure| measured.value(broken, Leasehold, figure);
        judge(format!("{broken}: p50 of a pair, to healthy"), value(Figure::ToHealthy), AtMost(1.5));
        judge(format!("{broken}: ms of the longest pair"), value(Figure::Longest), AtMost(500.0));
    }
    judge("two holders at a time".to_owned(), measured.overlaps(), AtMost(0.0));
    verdicts
}

struct All<'a>(&'a [Measured]);

impl All<'_> {
    fn scenario(&self, name: &str) -> Option<&Measured> {
        self.0.iter().find(|measured| measured.scenario.name == name)
    }

    fn value(&self, scenario: &str, subject: Subject, figure: Figure) -> Option<f64> {
        self.scenario(scenario)?.subject(subject)?.figures.get(figure)
    }

    fn to(&self, scenario: &str, subject: Subject, figure: Figure, base: Subject) -> Option<f64> {
        let measured = self.scenario(scenario)?.subject(subject)?;
        let ratios = if base == Subject::Bare { &measured.to_bare } else { &measured.to_hand };
        ratios.get(figure)
    }

    /// What a hand-over takes over a pool, to what it takes without one.
    fn to_url(&self, scenario: &str) -> Option<f64> {
        let time = |subject| self.value(scenario, subject, Figure::P50);
        Some(time(Subject::Pool)? / time(Leasehold)?)
    }

    fn overlaps(&self) -> Option<f64> {
        let ours =
            |measured: &Measured| [Leasehold, Chain0].map(|s| measured.subject(s)?.figures.get(Figure::Overlaps));
        self.0.iter().flat_map(ours).flatten().reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::scenario::Scenario;

    #[test]
    fn a_target_is_met_missed_or_not_measured() {
        let p50 = |value| vec![Figures::default().with(Figure::P50, value)];
        let one = Scenario::named("one").unwrap();
        let rounds = vec![(Subject::Bare, p50(10.0)), (ByHand, p50(12.0)), (Leasehold, p50(12.1))];
        let verdicts = judge(&[Measured::new(one, rounds)]);
        assert_eq!(verdicts[0].met, Some(true), "{:?}", verdicts[0]);
        assert_eq!(verdicts[1].met, Some(false), "{:?}", verdicts[1]);
        assert!(verdicts[2..].iter().all(|verdict| verdict.met.is_none()));
        assert!(AtLeast(5.0).allows(5.0) && !AtLeast(5.0).allows(4.9));
    }

    #[test]
    fn every_target_names_scenarios_that_exist() {
        for verdict in judge(&[]) {
            let name = verdict.what.split(':').next().unwrap_or_default();
            assert!(Scenario::named(name).is_some() || name == "two holders at a time", "{name}");
        }
    }
}
