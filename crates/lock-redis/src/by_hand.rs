//! The very commands of this backend, to be sent by hand: what a benchmark measures it against. Not for users.

use lock_core::{Claim, Parting};
use redis::{Client, Cmd, Pipeline};

use crate::wire::{Question, Wire, greeting};

/// Makes the commands for one server.
#[derive(Debug)]
pub struct ByHand(Wire);

impl ByHand {
    /// For the server of this client.
    pub fn new(client: &Client) -> Self {
        Self(Wire::own(client, None))
    }

    /// The command for an acquire.
    pub fn acquire(&self, claim: &Claim) -> Option<Cmd> {
        Some(claim.call(&self.0).ok()?.command)
    }

    /// The command for a release.
    pub fn release(&self, parting: &Parting) -> Option<Cmd> {
        Some(parting.call(&self.0).ok()?.command)
    }

    /// Loads the scripts.
    pub fn load() -> Pipeline {
        greeting()
    }
}
