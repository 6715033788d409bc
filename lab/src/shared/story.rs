//! A scene's story: its stages, their results, and how both are told.

use leasehold::clock::{Clock, HostClock};
use serde::Serialize;

use super::chart::{Chart, Column, Count, Row, Verdict};
use super::failure::Failure;
use super::ground::{Ground, Tidy};
use super::millis;
use super::tell::{Form, Teller};

/// A scene: stages that differ in their locks. It is serialized as the numbers that the user can choose.
pub(crate) trait Scene: Serialize {
    type Stage: 'static;
    type Outcome: Outcome;

    /// The stages, in their order.
    const STAGES: &'static [Self::Stage];

    /// The keys of the scene in the store.
    fn keys(&self) -> Vec<String>;

    /// The introduction, before the first stage.
    fn opening(&self, store: &str) -> String;

    /// The number with which results are compared.
    fn full(&self) -> u64;

    /// What is said about a stage.
    fn plan(stage: &Self::Stage) -> Plan;

    /// Plays a stage, the first with number 1.
    fn play(&self, number: usize, stage: &Self::Stage, ground: &Ground) -> Result<Self::Outcome, Failure>;

    /// Whether the result of a stage is what it should be.
    fn is_right(&self, stage: &Self::Stage, outcome: &Self::Outcome) -> bool;
}

/// What was counted in a stage.
pub(crate) trait Outcome: Serialize {
    /// The column of the result.
    const RESULT: &'static Column;

    fn result(&self) -> u64;

    /// All other columns, in the order of the chart.
    fn counts(&self) -> Vec<Count>;
}

/// What is said about a stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Three words at most.
    pub(crate) label: &'static str,
    /// What is done.
    pub(crate) title: &'static str,
    pub(crate) promise: Promise,
    /// Why the result is wrong, or why it is right.
    pub(crate) why: &'static str,
}

/// What the lock of a stage promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// Nothing.
    Nothing,
    /// That the result is right.
    Right,
}

/// All results.
#[derive(Debug, Serialize)]
struct Story<'a, S, O> {
    /// Without secrets.
    store: String,
    #[serde(flatten)]
    scene: &'a S,
    took_ms: u64,
    stages: Vec<Played<O>>,
}

/// A stage and its result.
#[derive(Debug, Serialize)]
pub(crate) struct Played<O> {
    /// Counted from 1.
    stage: usize,
    label: &'static str,
    title: &'static str,
    #[serde(flatten)]
    outcome: O,
    right: bool,
    why: &'static str,
    #[serde(skip)]
    promise: Promise,
    #[serde(skip)]
    full: u64,
}

/// Tells the whole story.
pub(crate) fn tell<S: Scene>(scene: &S, url: Option<&str>, form: Form) -> Result<(), Failure> {
    let began = HostClock.now();
    let tidy = Tidy::open(url, scene.keys())?;
    let teller = Teller::new(form);
    teller.tell(&scene.opening(&tidy.shown))?;
    let stages = play(scene, &tidy.ground, &teller)?;
    let store = tidy.shown.clone();
    tidy.remove()?;
    let story = Story { store, scene, took_ms: millis(HostClock.now().since(began)), stages };
    teller.end(&story.end(), &story)?;
    let broken = story.stages.iter().find(|played| played.breaks_its_promise());
    broken.map_or(Ok(()), |played| Err(Failure::system("a lock broke its promise", played.line())))
}

fn play<S: Scene>(scene: &S, ground: &Ground, teller: &Teller) -> Result<Vec<Played<S::Outcome>>, Failure> {
    let play_one = |(number, stage): (usize, &S::Stage)| {
        teller.announce(number, S::STAGES.len(), S::plan(stage).label);
        let played = Played::new(scene, number, stage, scene.play(number, stage, ground)?);
        teller.tell(&played.text())?;
        Ok(played)
    };
    (1..).zip(S::STAGES).map(play_one).collect()
}

impl<S: Scene> Story<'_, S, S::Outcome> {
    /// The results of all stages.
    fn end(&self) -> String {
        let rows = self.stages.iter().map(Played::row).collect();
        Chart { result: S::Outcome::RESULT, full: self.scene.full(), rows }.end(self.took_ms)
    }
}

impl<O: Outcome> Played<O> {
    pub(crate) fn new<S: Scene<Outcome = O>>(scene: &S, number: usize, stage: &S::Stage, outcome: O) -> Self {
        let Plan { label, title, promise, why } = S::plan(stage);
        let right = scene.is_right(stage, &outcome);
        Self { stage: number, label, title, outcome, right, why, promise, full: scene.full() }
    }

    /// Whether the result is wrong although the lock promises otherwise.
    pub(crate) fn breaks_its_promise(&self) -> bool {
        self.promise == Promise::Right && !self.right
    }

    /// The paragraph of this stage.
    pub(crate) fn text(&self) -> String {
        self.row().text(O::RESULT, self.full)
    }

    /// The stage and its result in one line.
    fn line(&self) -> String {
        format!("stage {}, {}: {} {} of {}", self.stage, self.label, O::RESULT.name, self.outcome.result(), self.full)
    }

    fn row(&self) -> Row {
        Row {
            number: self.stage,
            label: self.label,
            title: self.title,
            result: self.outcome.result(),
            counts: self.outcome.counts(),
            verdict: if self.right { Verdict::Right } else { Verdict::Wrong },
            reason: self.reason(),
        }
    }

    fn reason(&self) -> String {
        match self.promise {
            Promise::Nothing if self.right => format!("It went well this time, by chance. {}", self.why),
            Promise::Right if !self.right => format!("This must not happen; please report it. {}", self.why),
            Promise::Nothing | Promise::Right => self.why.to_owned(),
        }
    }
}
