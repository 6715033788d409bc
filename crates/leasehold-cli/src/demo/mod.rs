//! `leasehold demo`: shows with real processes what goes wrong without each part of a lock.
//!
//! Reading order: `stage` (the story) · `worker` (reads, pauses and writes) · `gate` (the locks) · `account`, `raw` (what
//! they ask of a store) · `paused` (a worker that is stopped) · `diary` (what was seen) · `story`, `tell` (how it is told)
//! · `place`, `ground` (where it happens, and how nothing is left behind).

mod account;
pub(crate) mod args;
mod diary;
mod gate;
mod ground;
pub(crate) mod paused;
mod place;
mod raw;
mod stage;
mod story;
mod tell;
mod worker;

use lock_host::{Clock, HostClock};

use self::args::{AccountArgs, DemoArgs, Story as Which};
use self::ground::{Ground, Tidy};
use self::stage::{Crew, STAGES};
use self::story::{Played, Story};
use self::tell::{Form, Teller};
use crate::durations::millis;
use crate::exit::{Exit, Failure};

/// Shows what was asked for.
pub(crate) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    match &args.story {
        Which::Account(args) => tell_of_account(args),
    }
}

fn tell_of_account(args: &AccountArgs) -> Result<Exit, Failure> {
    let began = HostClock.now();
    let crew = Crew { workers: args.workers, deposits: args.deposits };
    let tidy = Tidy::open(args.url.as_deref())?;
    let teller = Teller::new(if args.json { Form::Json } else { Form::Text });
    teller.tell(&Story::opening(crew, &tidy.shown))?;
    let stages = play(&tidy.ground, crew, &teller)?;
    let store = tidy.shown.clone();
    tidy.remove()?;
    let took_ms = millis(HostClock.now().since(began));
    let story = Story { store, workers: crew.workers, deposits: crew.deposits, took_ms, stages };
    teller.end(&story)?;
    verdict(&story)
}

fn play(ground: &Ground, crew: Crew, teller: &Teller) -> Result<Vec<Played>, Failure> {
    let play_one = |(number, stage)| {
        teller.announce(number, stage);
        let played = Played::new(number, stage, stage.play(ground, crew)?);
        teller.tell(&played.text())?;
        Ok(played)
    };
    (1..).zip(&STAGES).map(play_one).collect()
}

fn verdict(story: &Story) -> Result<Exit, Failure> {
    match story.stages.iter().find(|played| played.breaks_its_promise()) {
        None => Ok(Exit::Done),
        Some(played) => Err(Failure::system(
            "a lock broke its promise",
            format!("stage {} reached {} of {}", played.stage, played.outcome.balance, played.outcome.expected),
        )),
    }
}
