//! The results, as text and as JSON. Pure.

use serde::Serialize;

use super::stage::{Crew, Outcome, Promise, Stage};
use crate::shared::chart::{Chart, Column, Count, Row, Shown, Verdict, explained, several, wrapped};

const BALANCE: Column = Column { name: "balance", meaning: "the final balance of the account", shown: Shown::Always };
const LOST: Column = Column {
    name: "lost updates",
    meaning: "deposits that were reported as successful and are missing from the balance",
    shown: Shown::Always,
};
const OVERLAPS: Column = Column {
    name: "overlaps",
    meaning: "times that a worker entered while another one was inside: two holders of one lock",
    shown: Shown::Always,
};
const WAITS: Column =
    Column { name: "waits", meaning: "times that a worker found the lock taken and had to wait", shown: Shown::Always };
const PASSES: Column = Column {
    name: "passes",
    meaning: "times that a worker entered before one that had waited longer",
    shown: Shown::IfAny,
};
const STUCK: Column =
    Column { name: "stuck workers", meaning: "workers that never got the lock again", shown: Shown::IfAny };
const WRONG_RENEWALS: Column = Column {
    name: "wrong renewals",
    meaning: "times that a worker renewed a lock that another one held",
    shown: Shown::IfAny,
};
const WRONG_DELETES: Column = Column {
    name: "wrong deletes",
    meaning: "times that a worker deleted a lock that another one held",
    shown: Shown::IfAny,
};
const REFUSED: Column = Column {
    name: "refused writes",
    meaning: "late writes that the account refused; the deposit was then made again",
    shown: Shown::IfAny,
};
const NOTICED: Column = Column {
    name: "noticed losses",
    meaning: "times that a worker saw in time that its lease was lost, and wrote nothing",
    shown: Shown::IfAny,
};

/// How the faults are provoked.
const HOW: &str = "Each worker is a thread with connections of its own. One that is suspended or killed is a process of its own. Only the \
    moment is arranged: in each stage, the first worker is slow, suspended or killed at the point that matters, so that the \
    fault shows in every run. Each stage counts:";

/// All results.
#[derive(Debug, Serialize)]
pub(crate) struct Story {
    /// Without secrets.
    pub(crate) store: String,
    pub(crate) workers: u32,
    pub(crate) deposits: u32,
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
    /// Whether the balance is what it should be.
    pub(crate) right: bool,
    pub(crate) why: &'static str,
    #[serde(skip)]
    plan: &'static Stage,
}

impl Played {
    pub(crate) fn new(number: usize, plan: &'static Stage, outcome: Outcome) -> Self {
        let Stage { label, title, why, .. } = *plan;
        Self { stage: number, label, title, outcome, right: outcome.is_right(), why, plan }
    }

    /// Whether the account is wrong although the lock promises otherwise.
    pub(crate) fn breaks_its_promise(&self) -> bool {
        match self.plan.promise {
            Promise::Nothing => false,
            Promise::Balance => !self.right,
        }
    }

    /// The paragraph of this stage.
    pub(crate) fn text(&self) -> String {
        self.row().text(&BALANCE, self.outcome.expected)
    }

    fn row(&self) -> Row {
        Row {
            number: self.stage,
            label: self.label,
            title: self.title,
            result: self.outcome.balance,
            counts: counts(&self.outcome),
            verdict: if self.right { Verdict::Right } else { Verdict::Wrong },
            reason: self.reason(),
        }
    }

    fn reason(&self) -> String {
        match self.plan.promise {
            Promise::Nothing if self.right => format!("It went well this time. {}", self.why),
            Promise::Balance if !self.right => format!("This must not happen; please report it. {}", self.why),
            Promise::Nothing | Promise::Balance => self.why.to_owned(),
        }
    }
}

impl Story {
    /// The introduction, before the first stage.
    pub(crate) fn opening(crew: Crew, store: &str) -> String {
        let Crew { workers, deposits } = crew;
        let text = format!(
            "{workers} workers pay into one account at the same time, {} of 1 each: each worker reads the balance, works for \
             a moment, and writes the balance plus 1. The final balance should be {}. The store is {store}.",
            several(u64::from(deposits), "deposit"),
            crew.expected()
        );
        format!(
            "{}\n\n{}\n\n{}\n",
            wrapped(&text, ""),
            wrapped(HOW, ""),
            explained(&[&BALANCE, &LOST, &OVERLAPS, &WAITS])
        )
    }

    /// The results of all stages.
    pub(crate) fn end(&self) -> String {
        let full = u64::from(self.workers) * u64::from(self.deposits);
        let chart = Chart { result: &BALANCE, full, rows: self.stages.iter().map(Played::row).collect() };
        chart.end(self.took_ms)
    }
}

fn counts(outcome: &Outcome) -> Vec<Count> {
    vec![
        (&LOST, outcome.lost),
        (&OVERLAPS, outcome.overlaps),
        (&WAITS, outcome.waits),
        (&PASSES, outcome.passes),
        (&STUCK, outcome.stuck),
        (&WRONG_DELETES, outcome.wrong_deletes),
        (&WRONG_RENEWALS, outcome.wrong_renewals),
        (&REFUSED, outcome.refused),
        (&NOTICED, outcome.noticed),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::stages::STAGES;
    use super::*;

    fn played(label: &str, outcome: Outcome) -> Played {
        let stages = (1..).zip(STAGES.iter());
        let (number, stage) = stages.into_iter().find(|(_, stage)| stage.label == label).unwrap();
        Played::new(number, stage, outcome)
    }

    #[test]
    fn a_stage_is_judged_by_its_promise() {
        let right = Outcome { expected: 8, balance: 8, made: 8, ..Outcome::default() };
        let wrong = Outcome { balance: 7, lost: 1, ..right };
        assert!(!played("checked release", wrong).breaks_its_promise());
        assert!(played("renewed lease", wrong).breaks_its_promise());
        assert!(played("fencing token", wrong).breaks_its_promise());
        assert!(!played("fencing token", right).breaks_its_promise());
        assert!(played("checked release", right).text().contains("this time"));
        assert!(!played("renewed lease", right).text().contains("this time"));
        let text = anstream::adapter::strip_str(&played("no lock", wrong).text()).to_string();
        assert!(text.contains("\n    balance 7 of 8, lost updates 1, overlaps 0, waits 0\n"), "{text}");
    }

    #[test]
    fn no_two_stages_have_the_same_label() {
        let labels: BTreeSet<_> = STAGES.iter().map(|stage| stage.label).collect();
        assert_eq!(labels.len(), STAGES.len());
    }
}
