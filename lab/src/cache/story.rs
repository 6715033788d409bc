//! The results, as text and as JSON. Pure.

use serde::Serialize;

use super::stage::{Outcome, Promise, Stage};
use crate::shared::chart::{Chart, Column, Row, Shown, Verdict, explained, wrapped};

const CALLS: Column = Column { name: "calls", meaning: "calls of the database", shown: Shown::Always };
const AT_ONCE: Column = Column {
    name: "at once",
    meaning: "the most calls that ran at the same time, or came in the same second",
    shown: Shown::Always,
};
const OLD: Column =
    Column { name: "old values", meaning: "callers that got the old value instead of waiting", shown: Shown::IfAny };

/// All results.
#[derive(Debug, Serialize)]
pub(crate) struct Story {
    /// Without secrets.
    pub(crate) store: String,
    pub(crate) callers: u32,
    pub(crate) took_ms: u64,
    pub(crate) stages: Vec<Played>,
}

/// A stage and its result.
#[derive(Debug, Serialize)]
pub(crate) struct Played {
    /// Counted from 1.
    pub(crate) stage: usize,
    pub(crate) label: &'static str,
    pub(crate) title: &'static str,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// Whether the database was spared.
    pub(crate) right: bool,
    pub(crate) why: &'static str,
    #[serde(skip)]
    callers: u32,
    #[serde(skip)]
    promise: Promise,
}

impl Played {
    pub(crate) fn new(number: usize, callers: u32, plan: &'static Stage, outcome: Outcome) -> Self {
        let Stage { label, title, missing, promise, why, .. } = *plan;
        Self { stage: number, label, title, outcome, right: outcome.is_right(missing, callers), why, callers, promise }
    }

    /// Whether the database was called too often although the stage promises otherwise.
    pub(crate) fn breaks_its_promise(&self) -> bool {
        match self.promise {
            Promise::Nothing => false,
            Promise::OneCall | Promise::Spread => !self.right,
        }
    }

    /// The paragraph of this stage.
    pub(crate) fn text(&self) -> String {
        self.row().text(&CALLS, u64::from(self.callers))
    }

    fn row(&self) -> Row {
        let Outcome { calls, at_once, old } = self.outcome;
        Row {
            number: self.stage,
            label: self.label,
            title: self.title,
            result: calls,
            counts: vec![(&AT_ONCE, at_once), (&OLD, old)],
            verdict: if self.right { Verdict::Right } else { Verdict::Wrong },
            reason: self.reason(),
        }
    }

    fn reason(&self) -> String {
        match self.promise {
            Promise::Nothing if self.right => format!("It went well this time, by chance. {}", self.why),
            Promise::OneCall | Promise::Spread if !self.right => {
                format!("This must not happen; please report it. {}", self.why)
            }
            Promise::Nothing | Promise::OneCall | Promise::Spread => self.why.to_owned(),
        }
    }
}

impl Story {
    /// The introduction, before the first stage.
    pub(crate) fn opening(callers: u32, store: &str) -> String {
        let text = format!(
            "{callers} callers, each with its own connection to the store of the locks, want a value that is slow to compute. They \
             look into a cache, and call the database if it is not there. The fewer calls, the better. The cache and the \
             database are in the memory of this program; the locks are in {store}. Each stage counts:"
        );
        format!("{}\n\n{}\n", wrapped(&text, ""), explained(&[&CALLS, &AT_ONCE]))
    }

    /// The results of all stages.
    pub(crate) fn end(&self) -> String {
        let full = u64::from(self.callers);
        let chart = Chart { result: &CALLS, full, rows: self.stages.iter().map(Played::row).collect() };
        chart.end(self.took_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::super::stages::STAGES;
    use super::*;

    fn played(label: &str, calls: u64, at_once: u64) -> Played {
        let (number, stage) = (1..).zip(STAGES.iter()).find(|(_, stage)| stage.label == label).unwrap();
        Played::new(number, 16, stage, Outcome { calls, at_once, old: 0 })
    }

    #[test]
    fn a_stage_is_judged_by_its_promise() {
        assert!(!played("no lock", 16, 16).breaks_its_promise());
        assert!(!played("single flight", 1, 1).breaks_its_promise());
        assert!(
            played("single flight", 2, 1).breaks_its_promise() && played("absent, cached", 2, 1).breaks_its_promise()
        );
        assert!(!played("same ttl", 16, 16).breaks_its_promise());
        assert!(played("shortened ttl", 16, 9).breaks_its_promise());
        assert!(!played("shortened ttl", 16, 8).breaks_its_promise());
        assert!(played("no lock", 1, 1).text().contains("by chance"));
        assert!(played("single flight", 2, 1).text().contains("please report it"));
        let text = anstream::adapter::strip_str(&played("single flight", 1, 1).text()).to_string();
        assert!(text.contains("\n    calls 1 of 16, at once 1\n"), "{text}");
    }

    #[test]
    fn only_what_leasehold_does_promises_something() {
        for stage in &STAGES {
            assert_eq!(stage.promise != Promise::Nothing, stage.title.starts_with("leasehold"), "{}", stage.label);
            assert!(stage.label.split_whitespace().count() <= 3, "{}", stage.label);
        }
    }
}
