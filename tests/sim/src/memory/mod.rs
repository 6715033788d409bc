//! The reference store of `lock-memory`, as if it were one Redis: readers share its locks, it gives permits, keeps locks and
//! replaces leases. Everything goes wrong that can go wrong with one Redis.

mod store;
mod twin;

use std::time::Duration;

use crate::diary::Diary;
pub use crate::one::Mistake;
use crate::one::{Rest, play_one};
use crate::run::Report;
use store::Server;

/// How long everybody may take to have had a turn once all is well: what the dead left ends after the longest ttl, or after
/// the longest time for which a lock is kept, and hand-overs to them after a place each.
const REST: Rest = Rest { healed_within: Duration::from_secs(400), quiet: Duration::from_secs(60) };

/// Plays what this seed decides, with one rule turned off if `mistake` says so.
pub fn play(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one::<Server>(seed, mistake, Diary::default(), REST)
}

/// The same, with all that happens in it.
pub fn tell(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one::<Server>(seed, mistake, Diary::written(), REST)
}
