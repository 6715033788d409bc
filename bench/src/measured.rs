//! What was measured in one scenario.

use bench_measure::Subject;
use serde::{Serialize, Serializer};

use crate::figures::{Figure, Figures};
use crate::scenario::Scenario;

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

impl Measured {
    /// Sums up the rounds of all subjects.
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

    /// Whether any subject has a value for it.
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
