//! What the scene says about itself, and what it counts.

use super::stage::{Crew, Outcome, Stage};
use super::stages::STAGES;
use super::{balance, cues, naive};
use crate::shared::chart::{Column, Count, Shown, explained, several, wrapped};
use crate::shared::failure::Failure;
use crate::shared::ground::Ground;
use crate::shared::story::{self, Plan, Scene};

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

impl Scene for Crew {
    type Stage = Stage;
    type Outcome = Outcome;

    const STAGES: &'static [Stage] = &STAGES;

    fn keys(&self) -> Vec<String> {
        let fixed = cues::keys().chain([naive::KEY]).map(str::to_owned);
        fixed.chain((0..self.workers).flat_map(balance::keys)).collect()
    }

    fn opening(&self, store: &str) -> String {
        let Self { workers, deposits } = *self;
        let text = format!(
            "{workers} workers pay into one account at the same time, {} of 1 each: each worker reads the balance, works for \
             a moment, and writes the balance plus 1. The final balance should be {}. The store is {store}.",
            several(u64::from(deposits), "deposit"),
            self.expected()
        );
        format!(
            "{}\n\n{}\n\n{}\n",
            wrapped(&text, ""),
            wrapped(HOW, ""),
            explained(&[&BALANCE, &LOST, &OVERLAPS, &WAITS])
        )
    }

    fn full(&self) -> u64 {
        self.expected()
    }

    fn plan(stage: &Stage) -> Plan {
        let Stage { label, title, promise, why, .. } = *stage;
        Plan { label, title, promise, why }
    }

    fn play(&self, _number: usize, stage: &Stage, ground: &Ground) -> Result<Outcome, Failure> {
        stage.play(ground, *self)
    }

    fn is_right(&self, _stage: &Stage, outcome: &Outcome) -> bool {
        outcome.balance == outcome.expected
    }
}

impl story::Outcome for Outcome {
    const RESULT: &'static Column = &BALANCE;

    fn result(&self) -> u64 {
        self.balance
    }

    fn counts(&self) -> Vec<Count> {
        vec![
            (&LOST, self.lost),
            (&OVERLAPS, self.overlaps),
            (&WAITS, self.waits),
            (&PASSES, self.passes),
            (&STUCK, self.stuck),
            (&WRONG_DELETES, self.wrong_deletes),
            (&WRONG_RENEWALS, self.wrong_renewals),
            (&REFUSED, self.refused),
            (&NOTICED, self.noticed),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::shared::story::Played;

    fn played(label: &str, outcome: Outcome) -> Played<Outcome> {
        let stages = (1..).zip(STAGES.iter());
        let (number, stage) = stages.into_iter().find(|(_, stage)| stage.label == label).unwrap();
        Played::new(&Crew { workers: 4, deposits: 2 }, number, stage, outcome)
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
