//! `cargo xtask lab cache`: many callers miss a cache at the same time.
//!
//! Reading order: `stages` (the story) · `stage` (what they are made of) · `caller` (how it gets a value) · `shelf` (the cache) ·
//! `database` (which counts its calls) · `story` (how it is told).

mod caller;
mod database;
mod shelf;
mod stage;
mod stages;
mod story;

use leasehold::clock::{Clock, HostClock};

use self::stage::Stage;
use self::stages::STAGES;
use self::story::{Played, Story};
use crate::args::CacheArgs;
use crate::shared::failure::Failure;
use crate::shared::ground::{Ground, Tidy};
use crate::shared::millis;
use crate::shared::tell::{Form, Teller};

/// Tells the whole story.
pub(crate) fn run(args: &CacheArgs) -> Result<(), Failure> {
    let began = HostClock.now();
    let tidy = Tidy::open(args.url.as_deref(), Vec::new())?;
    let teller = Teller::new(if args.json { Form::Json } else { Form::Text });
    teller.tell(&Story::opening(args.callers, &tidy.shown))?;
    let stages = play(&tidy.ground, args.callers, &teller)?;
    let store = tidy.shown.clone();
    tidy.remove()?;
    let took_ms = millis(HostClock.now().since(began));
    let story = Story { store, callers: args.callers, took_ms, stages };
    teller.end(&story.end(), &story)?;
    verdict(&story)
}

fn play(ground: &Ground, callers: u32, teller: &Teller) -> Result<Vec<Played>, Failure> {
    let play_one = |(number, stage): (usize, &'static Stage)| {
        teller.announce(number, STAGES.len(), stage.label);
        let played = Played::new(number, callers, stage, stage.play(ground, number, callers)?);
        teller.tell(&played.text())?;
        Ok(played)
    };
    (1..).zip(STAGES.iter()).map(play_one).collect()
}

fn verdict(story: &Story) -> Result<(), Failure> {
    match story.stages.iter().find(|played| played.breaks_its_promise()) {
        None => Ok(()),
        Some(played) => Err(Failure::system(
            "single flight broke its promise",
            format!(
                "stage {} made {} calls of the database, {} at once",
                played.stage, played.outcome.calls, played.outcome.at_once
            ),
        )),
    }
}
