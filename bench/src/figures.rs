//! What is measured, and what many rounds of it say together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Figure {
    /// The median of a pair or a hand-over, in microseconds.
    P50,
    /// What a hundredth of them took longer than.
    P99,
    /// The longest.
    Max,
    /// The median of a hand-over, to that of an uncontended pair that was measured at once after it.
    ToPair,
    /// Pairs or hand-overs in a second.
    Rate,
    /// Commands of clients for one of them.
    Commands,
    /// Processor time of the server for one of them, in microseconds.
    ServerTime,
    /// Processor time of the clients for one of them, in microseconds.
    ClientTime,
    /// What a script took in 999 of 1,000 cases at most, in microseconds.
    ScriptTail,
    /// Pairs in a second, to those of one task that were measured at once after them.
    ToOne,
    /// Turns of the waiter that had the fewest, for one of the waiter that had the most.
    Fairness,
    /// Turns that began before another one had ended.
    Overlaps,
    /// What failed.
    Failed,
    /// Leases renewed in a second.
    Renewals,
    /// Of one core of the server, in percent.
    ServerShare,
    /// Of one core of the client, in percent.
    ClientShare,
    /// Leases in one script.
    Batch,
    /// The median time of a script, in microseconds.
    Script,
    /// The slowest script, in microseconds.
    SlowestScript,
    /// Memory of the client for one lease, in bytes.
    ClientLease,
    /// Memory of the server for one lease, in bytes.
    ServerLease,
    /// Memory of the client for one waiter, its task included, in bytes.
    ClientWaiter,
    /// Memory of the server for one waiter, in bytes.
    ServerWaiter,
    /// Processor time of a process that waits for one lock, in percent of a core.
    WaiterShare,
    /// From the expiry of a dead holder's lease to the next holder, in milliseconds.
    AfterExpiry,
    /// The median script of a waiter that asks again, at the longest queue, in microseconds; of the next three, likewise.
    AskAgain,
    /// The same, to the one at the shortest queue; of a length between, if that is more.
    AskAgainGrowth,
    /// Of a waiter that joins.
    Join,
    /// The same, to the one at the shortest queue.
    JoinGrowth,
    /// Of a waiter that leaves with all others.
    LeaveAtOnce,
    /// The same, to the one at the shortest queue.
    LeaveAtOnceGrowth,
    /// Of a release that hands over.
    HandOver,
    /// The same, to the one at the shortest queue.
    HandOverGrowth,
    /// The median script of a reader that begins beside the most others, in microseconds; of the next two, likewise.
    ReadBegins,
    /// The same, to the one beside the fewest; of a number between, if that is more.
    ReadBeginsGrowth,
    /// Of a reader's renewal.
    ReadRenewal,
    /// The same, to the one beside the fewest.
    ReadRenewalGrowth,
    /// Of a reader that ends.
    ReadEnds,
    /// The same, to the one beside the fewest.
    ReadEndsGrowth,
    /// Of the acquires at a quorum, those that needed one round of requests only, at least, in percent.
    OneRound,
    /// The median of a pair while a node is broken, to that before.
    ToHealthy,
    /// The longest pair while a node is broken, in milliseconds.
    Longest,
    /// From the end of a server to the next answer, in seconds.
    Outage,
    /// The longest of those.
    LongestOutage,
}

/// How rounds are summed up.
enum Summary {
    Median,
    Highest,
}

impl Figure {
    /// The head of its column.
    pub(crate) fn head(self) -> &'static str {
        match self {
            Self::P50 => "p50 µs",
            Self::P99 => "p99 µs",
            Self::Max => "max µs",
            Self::ToPair => "to a pair",
            Self::Rate => "rate /s",
            Self::Commands => "commands",
            Self::ServerTime => "server µs",
            Self::ClientTime => "client µs",
            Self::ScriptTail => "p99.9 script µs",
            Self::ToOne => "to one task",
            Self::Fairness => "least/most",
            Self::Overlaps => "overlaps",
            Self::Failed => "failed",
            Self::Renewals => "renewals /s",
            Self::ServerShare => "server core %",
            Self::ClientShare => "client core %",
            Self::Batch => "leases a script",
            Self::Script => "script µs",
            Self::SlowestScript => "slowest µs",
            Self::ClientLease => "client B/lease",
            Self::ServerLease => "server B/lease",
            Self::ClientWaiter => "client B/waiter",
            Self::ServerWaiter => "server B/waiter",
            Self::WaiterShare => "waiter core %",
            Self::AfterExpiry => "after expiry ms",
            Self::AskAgain => "asks again µs",
            Self::Join => "joins µs",
            Self::LeaveAtOnce => "leaves µs",
            Self::HandOver => "hands over µs",
            Self::AskAgainGrowth => "asks again, to 100",
            Self::JoinGrowth => "joins, to 100",
            Self::LeaveAtOnceGrowth => "leaves, to 100",
            Self::HandOverGrowth => "hands over, to 100",
            Self::ReadBegins => "begins µs",
            Self::ReadRenewal => "renews µs",
            Self::ReadEnds => "ends µs",
            Self::ReadBeginsGrowth => "begins, to 10",
            Self::ReadRenewalGrowth => "renews, to 10",
            Self::ReadEndsGrowth => "ends, to 10",
            Self::OneRound => "one round %",
            Self::ToHealthy => "to healthy",
            Self::Longest => "longest ms",
            Self::Outage => "median s",
            Self::LongestOutage => "longest s",
        }
    }

    /// Whether its ratios to the subject that the others are compared with have a column.
    pub(crate) fn has_ratios(self) -> bool {
        matches!(self, Self::ServerTime | Self::ClientTime | Self::P50 | Self::Rate | Self::Outage)
    }

    /// The median, but of what must not happen the worst.
    fn summary(self) -> Summary {
        match self {
            Self::Overlaps | Self::Failed | Self::Longest | Self::LongestOutage => Summary::Highest,
            Self::P50
            | Self::P99
            | Self::Max
            | Self::ToPair
            | Self::Rate
            | Self::Commands
            | Self::ServerTime
            | Self::ClientTime
            | Self::ScriptTail
            | Self::ToOne
            | Self::Fairness
            | Self::Renewals
            | Self::ServerShare
            | Self::ClientShare
            | Self::Batch
            | Self::Script
            | Self::SlowestScript
            | Self::ClientLease
            | Self::ServerLease
            | Self::ClientWaiter
            | Self::ServerWaiter
            | Self::WaiterShare
            | Self::AfterExpiry
            | Self::AskAgain
            | Self::AskAgainGrowth
            | Self::Join
            | Self::JoinGrowth
            | Self::LeaveAtOnce
            | Self::LeaveAtOnceGrowth
            | Self::HandOver
            | Self::HandOverGrowth
            | Self::ReadBegins
            | Self::ReadBeginsGrowth
            | Self::ReadRenewal
            | Self::ReadRenewalGrowth
            | Self::ReadEnds
            | Self::ReadEndsGrowth
            | Self::OneRound
            | Self::ToHealthy
            | Self::Outage => Summary::Median,
        }
    }
}

/// Measured values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Figures(BTreeMap<Figure, f64>);

impl Figures {
    pub(crate) fn get(&self, figure: Figure) -> Option<f64> {
        self.0.get(&figure).copied()
    }

    /// Adds a value; one that is not a number, such as a division by zero, is left out.
    pub(crate) fn with(mut self, figure: Figure, value: f64) -> Self {
        if value.is_finite() {
            self.0.insert(figure, value);
        }
        self
    }

    /// What rounds say together.
    pub(crate) fn of_rounds(rounds: &[Self]) -> Self {
        let mut columns: BTreeMap<Figure, Vec<f64>> = BTreeMap::new();
        for (figure, value) in rounds.iter().flat_map(|round| &round.0) {
            columns.entry(*figure).or_default().push(*value);
        }
        let sum_up = |(figure, values): (Figure, Vec<f64>)| match figure.summary() {
            Summary::Median => (figure, median(values)),
            Summary::Highest => (figure, values.into_iter().fold(0.0, f64::max)),
        };
        Self(columns.into_iter().map(sum_up).collect())
    }

    /// Each value divided by the one of `base`.
    pub(crate) fn ratios_to(&self, base: &Self) -> Self {
        let ratio = |ratios: Self, (figure, value): (&Figure, &f64)| match base.get(*figure) {
            Some(base) => ratios.with(*figure, value / base),
            None => ratios,
        };
        self.0.iter().fold(Self::default(), ratio)
    }
}

/// The middle value, or the mean of both in the middle; nothing has the median 0.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.len() % 2, values.get(middle)) {
        (_, None) => 0.0,
        (1, Some(value)) => *value,
        (_, Some(value)) => f64::midpoint(values[middle - 1], *value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_summed_up_by_their_median_and_failures_by_the_worst() {
        let round = |p50, failed| Figures::default().with(Figure::P50, p50).with(Figure::Failed, failed);
        let rounds = [round(30.0, 1.0), round(10.0, 3.0), round(20.0, 2.0), Figures::default()];
        assert_eq!(Figures::of_rounds(&rounds), round(20.0, 3.0));
        assert_eq!(Figures::of_rounds(&rounds[..2]).get(Figure::P50), Some(20.0));
        assert_eq!(Figures::of_rounds(&[]), Figures::default());
    }

    #[test]
    fn ratios_need_a_base() {
        let ours = Figures::default().with(Figure::P50, 6.0).with(Figure::Rate, 5.0).with(Figure::Failed, 1.0);
        let base = Figures::default().with(Figure::P50, 4.0).with(Figure::Failed, 0.0);
        assert_eq!(ours.ratios_to(&base), Figures::default().with(Figure::P50, 1.5));
    }
}
