//! The very commands of this backend, to be sent by hand: what a benchmark measures it against. Not for users.

use lock_core::{Claim, Parting};
use redis::{Client, Cmd, Pipeline};

use crate::wire::{Question, Wire, greeting};

/// The command for an acquire.
pub fn acquire(client: &Client, claim: &Claim) -> Option<Cmd> {
    Some(claim.call(&Wire::own(client, None)).ok()?.command)
}

/// The command for a release.
pub fn release(client: &Client, parting: &Parting) -> Option<Cmd> {
    Some(parting.call(&Wire::own(client, None)).ok()?.command)
}

/// Loads the scripts.
pub fn load() -> Pipeline {
    greeting()
}
