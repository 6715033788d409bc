//! From what processes report to figures.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use bench_measure::{Report, Turn};

/// The figures of one run, or their medians over all rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// How long half of the pairs or hand-overs took at most, in microseconds.
    pub(crate) p50: f64,
    /// The same for 99 in 100.
    pub(crate) p99: f64,
    /// How many there were in a second.
    pub(crate) rate: f64,
    /// Turns of the waiter with the fewest, as a share of those of the one with the most.
    pub(crate) fairness: Option<f64>,
}

impl Figures {
    /// The figures of pairs.
    pub(crate) fn of_pairs(report: &Report) -> Result<Self> {
        ensure!(report.failed == 0, "{} pairs failed", report.failed);
        Ok(Self::of_times(report, report.elapsed.as_secs_f64()))
    }

    fn of_times(report: &Report, seconds: f64) -> Self {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let rate = report.done as f64 / seconds;
        Self { p50: micros(report.p50), p99: micros(report.p99), rate, fairness: None }
    }

    /// The figures of hand-overs. As in the bench, with several processes only those between processes are timed, and all are counted; what
    /// happened before or after all processes were at it is left out.
    pub(crate) fn of_turns(reports: &[Report], turns: &[Vec<Turn>]) -> Result<Self> {
        ensure!(reports.iter().all(|report| report.failed == 0), "an acquire or a release failed");
        let begun = reports.iter().map(|report| report.begun).max().unwrap_or(0);
        let ended = reports.iter().map(|report| report.begun + report.elapsed.as_nanos() as u64).min().unwrap_or(0);
        let mut lines: Vec<_> =
            (0..).zip(turns).flat_map(|(process, turns)| turns.iter().map(move |turn| Line(process, *turn))).collect();
        lines.retain(|line| (begun..ended).contains(&line.1.acquired));
        lines.sort_unstable_by_key(|line| line.1.acquired);
        let overlaps = lines.windows(2).filter(|pair| pair[1].1.acquired < pair[0].1.released).count();
        ensure!(overlaps == 0, "{overlaps} times, two held the lock at once");
        let seconds = ended.saturating_sub(begun) as f64 / 1e9;
        let (times, count) = hand_overs(&lines, turns.len());
        let mut report = Report::default();
        report.set_times(times);
        let rate = count as f64 / seconds;
        Ok(Self { rate, fairness: fairness(&lines), ..Self::of_times(&report, seconds) })
    }

    /// The medians of all rounds.
    pub(crate) fn medians(rounds: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| median(rounds.iter().map(figure));
        let fairness = rounds.iter().filter_map(|round| round.fairness).collect::<Vec<_>>();
        Self {
            p50: of(|round| round.p50),
            p99: of(|round| round.p99),
            rate: of(|round| round.rate),
            fairness: (!fairness.is_empty()).then(|| median(fairness)),
        }
    }
}

/// A turn, and the number of its process.
#[derive(Clone, Copy)]
struct Line(usize, Turn);

/// How long hand-overs took, and how many there were.
fn hand_overs(lines: &[Line], processes: usize) -> (Vec<u64>, usize) {
    let of_another_waiter = |pair: &&[Line]| (pair[0].0, pair[0].1.waiter) != (pair[1].0, pair[1].1.waiter);
    let handed: Vec<_> = lines.windows(2).filter(of_another_waiter).collect();
    let timed = handed.iter().filter(|pair| processes == 1 || pair[0].0 != pair[1].0);
    (timed.map(|pair| pair[1].1.acquired - pair[0].1.released).collect(), handed.len())
}

fn fairness(lines: &[Line]) -> Option<f64> {
    let mut turns: BTreeMap<_, u32> = BTreeMap::new();
    for Line(process, turn) in lines {
        *turns.entry((process, turn.waiter)).or_default() += 1;
    }
    let (least, most) = (turns.values().min()?, turns.values().max()?);
    Some(f64::from(*least) / f64::from(*most))
}

/// The one in the middle.
pub(crate) fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = figures.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}
