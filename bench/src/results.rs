//! What was measured, whole.

use anyhow::{Result, ensure};
use bench_measure::Subject;
use serde::{Serialize, Serializer};

use crate::figures::{Figure, Figures};
use crate::machine::Machine;
use crate::scenario::Scenario;
use crate::targets::{self, Verdict};

/// All results.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    /// How it was measured, for people.
    pub(crate) method: String,
    pub(crate) scenarios: Vec<Measured>,
    pub(crate) targets: Vec<Verdict>,
    /// What went wrong.
    pub(crate) failures: Vec<String>,
}

/// The results of one scenario.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    #[serde(serialize_with = "name")]
    pub(crate) scenario: &'static Scenario,
    pub(crate) subjects: Vec<OfSubject>,
}

/// The results of one subject in one scenario.
#[derive(Debug, Serialize)]
pub(crate) struct OfSubject {
    pub(crate) subject: Subject,
    /// All rounds together.
    pub(crate) figures: Figures,
    /// Divided by those of the bare pair.
    pub(crate) to_bare: Figures,
    /// Divided by those of our scripts by hand.
    pub(crate) to_hand: Figures,
    rounds: Vec<Figures>,
}

impl Results {
    pub(crate) fn new(machine: Machine, method: String, scenarios: Vec<Measured>, failures: Vec<String>) -> Self {
        let targets = targets::judge(&scenarios);
        Self { machine, method, scenarios, targets, failures }
    }

    /// Whether all runs did what they should.
    ///
    /// # Errors
    /// If some did not.
    pub(crate) fn complete(&self) -> Result<()> {
        ensure!(self.failures.is_empty(), "{} of the runs failed:\n{}", self.failures.len(), self.failures.join("\n"));
        Ok(())
    }
}

impl Measured {
    /// Sums the rounds of all subjects up.
    pub(crate) fn new(scenario: &'static Scenario, rounds: Vec<(Subject, Vec<Figures>)>) -> Self {
        let of_subject = |(subject, own): &(Subject, Vec<Figures>)| OfSubject {
            subject: *subject,
            figures: Figures::of_rounds(own),
            to_bare: ratios(own, &rounds, Subject::Bare),
            to_hand: ratios(own, &rounds, Subject::ByHand),
            rounds: own.clone(),
        };
        Self { scenario, subjects: rounds.iter().map(of_subject).collect() }
    }

    pub(crate) fn subject(&self, subject: Subject) -> Option<&OfSubject> {
        self.subjects.iter().find(|measured| measured.subject == subject)
    }

    /// Whether anybody has a value for it.
    pub(crate) fn has(&self, figure: Figure) -> bool {
        self.subjects.iter().any(|subject| subject.figures.get(figure).is_some())
    }
}

/// The medians of the ratios in each round, since what disturbs one subject in a round disturbs the others too; but the
/// ratio of the best rates.
fn ratios(own: &[Figures], all: &[(Subject, Vec<Figures>)], base: Subject) -> Figures {
    let Some((_, base)) = all.iter().find(|(subject, _)| *subject == base) else { return Figures::default() };
    let in_rounds: Vec<_> = own.iter().zip(base).map(|(own, base)| own.ratios_to(base)).collect();
    let best = Figures::of_rounds(own).ratios_to(&Figures::of_rounds(base));
    match best.get(Figure::Rate) {
        Some(rate) => Figures::of_rounds(&in_rounds).with(Figure::Rate, rate),
        None => Figures::of_rounds(&in_rounds),
    }
}

fn name<S: Serializer>(scenario: &&'static Scenario, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(scenario.name)
}
