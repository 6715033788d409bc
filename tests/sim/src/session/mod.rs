//! A store like ZooKeeper, or etcd with one lease for each client: an entry has no ttl. It lasts until it is released, or until the
//! session of its client ends. The store is only played: there is no backend for one yet, and this is what one has to keep to.

mod data;
mod store;

use std::time::Duration;

use crate::diary::Diary;
pub use crate::one::Mistake;
use crate::one::{Rest, play_one};
use crate::run::Report;
use store::Server;

/// How long everybody may take to have had a turn once all is well: a client whose releases are refused gives its session up
/// after half a minute, and others may have waited in vain until then.
const REST: Rest = Rest { healed_within: Duration::from_secs(180), quiet: Duration::from_secs(60) };

/// Plays what this seed decides, with one rule turned off if `mistake` says so.
pub fn play(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one::<Server>(seed, mistake, Diary::default(), REST)
}

/// The same, with all that happens in it.
pub fn tell(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one::<Server>(seed, mistake, Diary::written(), REST)
}
