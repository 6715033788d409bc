//! A store like ZooKeeper: an entry has no ttl. It lasts until it is released, or until the session of its client ends.
//!
//! A leader keeps the entries in one order, and `lock_rules::entries` decides who holds, as in `lock-zookeeper`. Clients are connected
//! to followers. A follower answers reads from its copy, which may be old; a write goes to the leader, and the follower has it
//! before it answers. A request here stands for all that `lock-zookeeper` sends at once for it: a claim is the creation of an entry
//! and a list, a later claim only a list, a renewal a check by the leader.
//!
//! What a client may rely on is said by the rule of the real client, `lock_rules::SessionProof`. The leader hears of a session only by
//! its pings: neither reads nor writes count there. It ends sessions late, with the next tick.
//!
//! A waiter sleeps until a watch at its follower fires. Then it looks again, as after a new connection, and now and then by itself.
//!
//! Not played: what happens between the requests of one claim, followers that the leader does not ping, permits, latches, the base of
//! the tokens, and an old copy in which sessions live on: here, a restored store has ended all of them.

mod data;
mod sessions;
mod store;
mod verbs;

use std::time::Duration;

use crate::diary::Diary;
pub use crate::one::Mistake;
use crate::one::{Rest, play_one};
use crate::run::Report;
use store::Server;

/// How long everybody may take to have had a turn once all is well: a client whose releases are refused gives its session up
/// after half a minute, and others may have waited in vain until then. Dozens may wait, and some hold for 20 seconds.
const REST: Rest = Rest { healed_within: Duration::from_secs(300), quiet: Duration::from_secs(60) };

/// Plays what this seed decides, with one rule turned off if `mistake` says so.
pub fn play(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one::<Server>(seed, mistake, Diary::default(), REST)
}

/// The same, with all that happens in it.
pub fn tell(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one::<Server>(seed, mistake, Diary::written(), REST)
}
