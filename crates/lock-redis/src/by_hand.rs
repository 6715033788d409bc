//! The very commands and scripts of this backend, to be sent by hand: what a benchmark measures it against, and what a
//! model of them is compared with. Not for users.

use lock_core::{Claim, Parting};
use redis::{Client, Cmd, Pipeline};

use crate::script::{self, Counting};
use crate::wire::{Question, Wire, greeting};

/// The texts of the scripts that connections of ours use.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "each is named for its verb")]
pub struct Texts {
    pub acquire: &'static str,
    pub release: &'static str,
    pub revoke: &'static str,
    pub renew: &'static str,
    pub look: &'static str,
    pub verify: &'static str,
}

/// What a model of the scripts has to agree with.
pub fn texts() -> Texts {
    Texts {
        acquire: script::ACQUIRE.counting(Counting::Stored).text(),
        release: script::RELEASE.counting(Counting::Stored).text(),
        revoke: script::REVOKE.counting(Counting::Stored).text(),
        renew: script::RENEW.text(),
        look: script::LOOK.text(),
        verify: script::VERIFY.text(),
    }
}

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
