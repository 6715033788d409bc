//! What the scene says about itself, and what it counts.

use super::stage::{Callers, Outcome, Stage};
use super::stages::STAGES;
use crate::shared::chart::{Column, Count, Shown, explained, wrapped};
use crate::shared::failure::Failure;
use crate::shared::ground::Ground;
use crate::shared::story::{self, Plan, Scene};

const CALLS: Column = Column { name: "calls", meaning: "calls of the database", shown: Shown::Always };
const AT_ONCE: Column = Column {
    name: "at once",
    meaning: "the most calls that ran at the same time, or came in the same second",
    shown: Shown::Always,
};
const OLD: Column =
    Column { name: "old values", meaning: "callers that got the old value instead of waiting", shown: Shown::IfAny };

impl Scene for Callers {
    type Stage = Stage;
    type Outcome = Outcome;

    const STAGES: &'static [Stage] = &STAGES;

    fn keys(&self) -> Vec<String> {
        Vec::new()
    }

    fn opening(&self, store: &str) -> String {
        let Self { callers } = self;
        let text = format!(
            "{callers} callers, each with its own connection to the store of the locks, want a value that is slow to compute. They \
             look into a cache, and call the database if it is not there. The fewer calls, the better. The cache and the \
             database are in the memory of this program; the locks are in {store}. Each stage counts:"
        );
        format!("{}\n\n{}\n", wrapped(&text, ""), explained(&[&CALLS, &AT_ONCE]))
    }

    fn full(&self) -> u64 {
        self.callers.into()
    }

    fn plan(stage: &Stage) -> Plan {
        let Stage { label, title, promise, why, .. } = *stage;
        Plan { label, title, promise, why }
    }

    fn play(&self, number: usize, stage: &Stage, ground: &Ground) -> Result<Outcome, Failure> {
        stage.play(ground, number, self.callers)
    }

    fn is_right(&self, stage: &Stage, outcome: &Outcome) -> bool {
        outcome.is_right(stage.missing, self.callers)
    }
}

impl story::Outcome for Outcome {
    const RESULT: &'static Column = &CALLS;

    fn result(&self) -> u64 {
        self.calls
    }

    fn counts(&self) -> Vec<Count> {
        vec![(&AT_ONCE, self.at_once), (&OLD, self.old)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::story::{Played, Promise};

    fn played(label: &str, calls: u64, at_once: u64) -> Played<Outcome> {
        let (number, stage) = (1..).zip(STAGES.iter()).find(|(_, stage)| stage.label == label).unwrap();
        Played::new(&Callers { callers: 16 }, number, stage, Outcome { calls, at_once, old: 0 })
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
