//! A store like etcd: each entry ends with a lease of its own, which lasts for whole seconds and has to be renewed.
//!
//! The data are one sequence of revisions, and `lock_rules::entries` decides who holds, as in `lock-etcd`. A lease is counted down by the
//! server that leads, in its memory: a new leader begins anew with all leases. One that was deposed, and does not know it, goes on answering
//! renewals, of which the new one never hears, and when it learns of that, has the leases ended that it takes for ended. What a client may rely on is said by the rule of the real client, `lock_rules::LeaseProof`.
//!
//! A claim is the grant of a lease, unless there is one to use again, and a transaction. A renewal renews leases, and then a transaction
//! reads the entries, and moves those to other leases that need it: of holders whose lease is that of their place, and after an election. A release compares the version
//! of the entry, so a late one does no harm. All of these are requests of their own: between them, anything can happen.
//!
//! A waiter sleeps until a watch at its server fires. Then it looks again, as after a new connection, and now and then by itself.
//!
//! Not played: permits, latches, replaced leases, what happens between the two transactions of a claim that others are before, the base
//! of the tokens (it is raised with each restored snapshot), and reads that a server answers alone.

mod data;
mod member;
mod members;
mod store;
mod verbs;

use std::time::Duration;

use crate::diary::Diary;
pub use crate::one::Mistake;
use crate::one::{Rest, play_one};
use crate::run::Report;
use store::Server;

/// How long everybody may take to have had a turn once all is well: dozens may wait, and some hold for 20 seconds.
const REST: Rest = Rest { healed_within: Duration::from_secs(600), quiet: Duration::from_secs(60) };

/// Plays what this seed decides, with one rule turned off if `mistake` says so.
pub fn play(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one::<Server>(seed, mistake, Diary::default(), REST)
}

/// The same, with all that happens in it.
pub fn tell(seed: u64, mistake: Option<Mistake>) -> Report {
    play_one::<Server>(seed, mistake, Diary::written(), REST)
}
