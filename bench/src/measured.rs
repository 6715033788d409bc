//! What was measured in one scenario.

use anyhow::{Context, Result};
use bench_measure::Subject;
use serde::{Deserialize, Serialize, Serializer};

use crate::figures::{Figure, Figures};
use crate::ratio::Ratio;
use crate::scenario::Scenario;

/// The results of one scenario.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measured {
    #[serde(serialize_with = "name")]
    pub(crate) scenario: &'static Scenario,
    pub(crate) subjects: Vec<OfSubject>,
}

/// The results of one subject in one scenario.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OfSubject {
    pub(crate) subject: Subject,
    /// All rounds together.
    pub(crate) figures: Figures,
    /// Divided by those of the subject that the others are compared with.
    pub(crate) to_base: Figures,
    /// Those that failed have no figures.
    rounds: Vec<Figures>,
}

/// What is read of a run that was written down: the rounds; everything else follows from them.
#[derive(Deserialize)]
pub(crate) struct Saved {
    scenario: String,
    subjects: Vec<SavedSubject>,
}

#[derive(Deserialize)]
struct SavedSubject {
    subject: Subject,
    rounds: Vec<Figures>,
}

impl TryFrom<Saved> for Measured {
    type Error = anyhow::Error;

    fn try_from(saved: Saved) -> Result<Self> {
        let scenario =
            Scenario::named(&saved.scenario).with_context(|| format!("there is no scenario {}", saved.scenario))?;
        let rounds = saved.subjects.into_iter().map(|SavedSubject { subject, rounds }| (subject, rounds));
        Ok(Self::new(scenario, rounds.collect()))
    }
}

impl Measured {
    /// Sums up the rounds of all subjects.
    pub(crate) fn new(scenario: &'static Scenario, rounds: Vec<(Subject, Vec<Figures>)>) -> Self {
        let of_subject = |(subject, own): &(Subject, Vec<Figures>)| OfSubject {
            subject: *subject,
            figures: Figures::of_rounds(own),
            to_base: ratios(own, of(&rounds, scenario.base())),
            rounds: own.clone(),
        };
        Self { scenario, subjects: rounds.iter().map(of_subject).collect() }
    }

    pub(crate) fn subject(&self, subject: Subject) -> Option<&OfSubject> {
        self.subjects.iter().find(|measured| measured.subject == subject)
    }

    /// Those of this library that say most about the scenario.
    pub(crate) fn ours(&self) -> Option<&OfSubject> {
        self.subject(self.scenario.ours())
    }

    /// Of a subject, divided by that of another one.
    pub(crate) fn ratio(&self, subject: Subject, figure: Figure, base: Subject) -> Option<Ratio> {
        Ratio::of_rounds(&self.subject(subject)?.rounds, &self.subject(base)?.rounds, figure)
    }

    /// Whether any subject has a value for it.
    pub(crate) fn has(&self, figure: Figure) -> bool {
        self.subjects.iter().any(|subject| subject.figures.get(figure).is_some())
    }
}

/// The medians of the ratios in each round, since what disturbs one subject in a round disturbs the others too.
fn ratios(own: &[Figures], base: &[Figures]) -> Figures {
    let in_rounds: Vec<_> = own.iter().zip(base).map(|(own, base)| own.ratios_to(base)).collect();
    Figures::of_rounds(&in_rounds)
}

fn of(rounds: &[(Subject, Vec<Figures>)], subject: Subject) -> &[Figures] {
    rounds.iter().find(|(measured, _)| *measured == subject).map_or(&[], |(_, rounds)| rounds)
}

fn name<S: Serializer>(scenario: &&'static Scenario, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(scenario.name)
}
