//! From the turns of all waiters to hand-overs: when one waiter released, and when the next one had the lock.

use std::collections::BTreeMap;
use std::ops::Range;

use bench_measure::{Report, Turn};

use crate::figures::{Figure, Figures};

/// A turn and the process that it was in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) process: u32,
    pub(crate) turn: Turn,
}

impl Line {
    fn is_of_another_process(&self, other: &Self) -> bool {
        self.process != other.process
    }

    fn is_of_another_waiter(&self, other: &Self) -> bool {
        self.waiter() != other.waiter()
    }

    fn waiter(&self) -> (u32, u32) {
        (self.process, self.turn.waiter)
    }
}

/// What the turns of one run say.
#[derive(Debug, Default)]
pub(crate) struct HandOvers {
    /// How long each took, in nanoseconds: between processes where there are several, between waiters elsewhere.
    times: Vec<u64>,
    /// Turns of another waiter than the one before.
    count: u64,
    /// Turns that began before the one before them had ended.
    overlaps: u64,
    /// How long all processes were at it, in nanoseconds.
    span: u64,
    /// Turns of each waiter meanwhile.
    turns: Vec<u64>,
}

impl HandOvers {
    /// Puts the turns of all processes in order, and looks at those that began while all of them were at it.
    pub(crate) fn of(processes: Vec<Vec<Line>>, at_it: &Range<u64>) -> Self {
        let timed = if processes.len() > 1 { Line::is_of_another_process } else { Line::is_of_another_waiter };
        let mut lines: Vec<Line> = processes.into_iter().flatten().collect();
        lines.sort_unstable_by_key(|line| line.turn.acquired);
        // Every waiter has a turn at the end at the latest, so nobody is missing here.
        let mut turns: BTreeMap<_, u64> = lines.iter().map(|line| (line.waiter(), 0)).collect();
        lines.retain(|line| at_it.contains(&line.turn.acquired));
        for line in &lines {
            *turns.entry(line.waiter()).or_default() += 1;
        }
        let span = at_it.end.saturating_sub(at_it.start);
        let mut found = Self { span, turns: turns.into_values().collect(), ..Self::default() };
        for pair in lines.windows(2) {
            let [before, after] = [pair[0], pair[1]];
            found.overlaps += u64::from(after.turn.acquired < before.turn.released);
            found.count += u64::from(after.is_of_another_waiter(&before));
            if timed(&after, &before) {
                found.times.push(after.turn.acquired.saturating_sub(before.turn.released));
            }
        }
        found
    }

    /// How often the lock went from one waiter to another.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds what the hand-overs say to what they cost.
    pub(crate) fn figures(&self, costs: Figures) -> Figures {
        let mut report = Report::default();
        report.set_times(self.times.clone());
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let (least, most) = (self.turns.iter().min(), self.turns.iter().max());
        let fairness = least.zip(most).map_or(0.0, |(least, most)| *least as f64 / *most as f64);
        let figures = costs
            .with(Figure::Rate, self.count as f64 / (self.span as f64 / 1e9))
            .with(Figure::Fairness, fairness)
            .with(Figure::Overlaps, self.overlaps as f64);
        if self.times.is_empty() {
            return figures;
        }
        figures
            .with(Figure::P50, micros(report.p50))
            .with(Figure::P99, micros(report.p99))
            .with(Figure::Max, micros(report.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(process: u32, waiter: u32, acquired: u64, released: u64) -> Line {
        Line { process, turn: Turn { waiter, acquired, released } }
    }

    #[test]
    fn a_hand_over_needs_another_waiter() {
        let found = HandOvers::of(vec![vec![line(0, 0, 10, 20), line(0, 0, 25, 30), line(0, 1, 37, 40)]], &(10..60));
        assert_eq!((found.count, found.times.as_slice(), found.overlaps), (1, [7].as_slice(), 0));
        assert_eq!((found.span, found.turns.as_slice()), (50, [2, 1].as_slice()));
    }

    #[test]
    fn with_several_processes_only_those_between_them_are_timed() {
        let [one, other] = [vec![line(0, 0, 10, 20), line(0, 1, 25, 30), line(0, 0, 90, 95)], vec![line(1, 0, 34, 40)]];
        let found = HandOvers::of(vec![one.clone(), other.clone()], &(0..100));
        assert_eq!((found.count, found.times.as_slice()), (3, [4, 50].as_slice()));
        assert_eq!(found.turns, [2, 1, 1]);
        let found = HandOvers::of(vec![one, other], &(0..30));
        assert_eq!((found.count, found.times.len(), found.turns.as_slice()), (1, 0, [1, 1, 0].as_slice()));
    }

    #[test]
    fn two_at_a_time_are_told() {
        let found = HandOvers::of(vec![vec![line(0, 0, 10, 20), line(0, 1, 19, 30)]], &(0..100));
        assert_eq!(found.overlaps, 1);
    }
}
