//! One Redis with our scripts: a model of it in detail, for locks that everybody holds alone.
//!
//! The model follows `docs/wire.md`; a [`trace`] that is played against both it and the scripts keeps it honest.

mod server;
pub mod trace;

use std::time::Duration;

pub use crate::one::Mistake;
use crate::one::{Rest, play_one};
use crate::run::Report;
pub(crate) use server::{Database, Server};

use crate::diary::Diary;

/// How long it may take until every waiter has had a turn once all is well: what dead processes left ends after the
/// longest ttl, and each hand-over to them after a place. Then, how long anything that nobody holds may stay at the store.
const REST: Rest = Rest { healed_within: Duration::from_secs(180), quiet: Duration::from_secs(60) };

/// Plays what this seed decides, with one rule turned off if `mistake` says so.
pub fn play(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one::<Server>(seed, mistake, Diary::default(), REST)
}

/// The same, with a diary of all that happens.
pub fn tell(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one::<Server>(seed, mistake, Diary::written(), REST)
}
