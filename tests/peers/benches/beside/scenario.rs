//! What is measured: all in each round, one after the other, so that what disturbs one disturbs its neighbours.

use anyhow::Result;
use bench_measure::Subject;

use super::figures::Figures;
use super::table::Row;

/// What the bench calls a lock without a token, a queue of its own, and renewals. Here it is that of the other library.
pub(crate) const THEIRS: Subject = Subject::Bare;

/// What is done in a run.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// So many tasks acquire and release, each its own lock.
    Pairs(u32),
    /// So many waiters for one lock, in so many processes.
    HandOvers { waiters: u32, processes: u32 },
}

/// What is measured, in so many rounds.
pub(crate) struct Scenario {
    pub(crate) title: &'static str,
    pub(crate) kind: Kind,
    /// Whom of ours to measure.
    pub(crate) ours: &'static [Subject],
}

/// All of it.
pub(crate) const SCENARIOS: [Scenario; 4] = [
    Scenario { title: "one task, a free lock", kind: Kind::Pairs(1), ours: &[Subject::Leasehold] },
    Scenario { title: "8 tasks, a free lock each", kind: Kind::Pairs(8), ours: &[Subject::Leasehold] },
    Scenario {
        title: "8 waiters for one lock, one process",
        kind: Kind::HandOvers { waiters: 8, processes: 1 },
        ours: &[Subject::Leasehold, Subject::Chain0],
    },
    Scenario {
        title: "8 waiters for one lock, two processes",
        kind: Kind::HandOvers { waiters: 8, processes: 2 },
        ours: &[Subject::Leasehold, Subject::Chain0],
    },
];

impl Scenario {
    /// A row for each of ours.
    pub(crate) fn rows(&self, rounds: usize, mut run: impl FnMut(Subject) -> Result<Figures>) -> Result<Vec<Row>> {
        let mut subjects: Vec<Subject> = self.ours.iter().copied().chain([THEIRS]).collect();
        let mut all: Vec<(Subject, Vec<Figures>)> = subjects.iter().map(|subject| (*subject, Vec::new())).collect();
        for _ in 0..rounds {
            for subject in &subjects {
                let figures = run(*subject)?;
                all.iter_mut().filter(|(of, _)| of == subject).for_each(|(_, all)| all.push(figures.clone()));
            }
            subjects.rotate_left(1);
        }
        let theirs = all.pop().map(|(_, theirs)| theirs).unwrap_or_default();
        let row = |(subject, ours): (_, Vec<_>)| Row::of(self.title, title(subject), &ours, &theirs);
        Ok(all.into_iter().map(row).collect())
    }
}

fn title(subject: Subject) -> &'static str {
    if subject == Subject::Chain0 { "leasehold, chain 0" } else { "leasehold" }
}
