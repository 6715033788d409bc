//! `cargo xtask lab account`: workers pay into one account under ever better locks.
//!
//! Reading order: `stages` (the story) · `stage` (what they are made of) · `cast` (who begins when, in which process) ·
//! `worker` (reads, pauses and writes) · `gate`, `lock` (how it enters) · `memory`, `naive` with its `watchdog`, `leased` (the
//! locks) · `balance` (what they protect) · `line` (readers and a payer) · `mishap`, `cues` (how a fault is provoked) ·
//! `process` (workers of another process) · `diary` (what was seen) · `story` (how it is told).

mod balance;
mod cast;
mod cues;
mod diary;
mod gate;
mod leased;
mod line;
mod lock;
mod memory;
mod mishap;
mod naive;
pub(crate) mod process;
mod stage;
mod stages;
mod story;
mod watchdog;
mod worker;

use leasehold::clock::{Clock, HostClock};

use self::stage::{Crew, Stage};
use self::stages::STAGES;
use self::story::{Played, Story};
use crate::args::AccountArgs;
use crate::shared::failure::Failure;
use crate::shared::ground::{Ground, Tidy};
use crate::shared::millis;
use crate::shared::tell::{Form, Teller};

/// Tells the whole story.
pub(crate) fn run(args: &AccountArgs) -> Result<(), Failure> {
    let began = HostClock.now();
    let crew = Crew { workers: args.workers, deposits: args.deposits };
    let tidy = Tidy::open(args.url.as_deref(), crew.keys())?;
    let teller = Teller::new(if args.json { Form::Json } else { Form::Text });
    teller.tell(&Story::opening(crew, &tidy.shown))?;
    let stages = play(&tidy.ground, crew, &teller)?;
    let store = tidy.shown.clone();
    tidy.remove()?;
    let took_ms = millis(HostClock.now().since(began));
    let story = Story { store, workers: crew.workers, deposits: crew.deposits, took_ms, stages };
    teller.end(&story.end(), &story)?;
    verdict(&story)
}

fn play(ground: &Ground, crew: Crew, teller: &Teller) -> Result<Vec<Played>, Failure> {
    let play_one = |(number, stage): (usize, &'static Stage)| {
        teller.announce(number, STAGES.len(), stage.label);
        let played = Played::new(number, stage, stage.play(ground, crew)?);
        teller.tell(&played.text())?;
        Ok(played)
    };
    (1..).zip(STAGES.iter()).map(play_one).collect()
}

fn verdict(story: &Story) -> Result<(), Failure> {
    match story.stages.iter().find(|played| played.breaks_its_promise()) {
        None => Ok(()),
        Some(played) => Err(Failure::system(
            "a lock broke its promise",
            format!("stage {} reached {} of {}", played.stage, played.outcome.balance, played.outcome.expected),
        )),
    }
}
