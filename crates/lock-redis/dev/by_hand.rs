//! The exact commands and scripts of this backend, to be sent directly: benchmarks measure against them, and models are
//! compared with them. Not for users.

use std::slice;

use lock_core::node::Ask;
use lock_core::{Claim, Lease, ReleaseRequest};
use redis::{Client, Cmd, Pipeline};

use crate::requests::renewal::Renewal;
use crate::script::{self, Counting, Script};
use crate::server::server_info::ServerInfo;
use crate::target::Target;
use crate::wire::{Attempt, Line, Question, Wire, load};

/// The texts of the scripts that our connections use.
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

/// The server, as if it had been verified.
const VERIFIED: &ServerInfo = &ServerInfo::assumed(Counting::Stored);

/// Makes the commands for one server.
#[derive(Debug)]
pub struct ByHand(Wire);

impl ByHand {
    /// For the server of this client.
    pub fn new(client: &Client) -> Self {
        Self(Wire::own(&Target::fixed(client.clone()), None))
    }

    /// The command for an acquire.
    pub fn acquire(&self, claim: &Claim) -> Option<Cmd> {
        Some(claim.call(self.line()).ok()?.command)
    }

    /// The command for a release.
    pub fn release(&self, request: &ReleaseRequest) -> Option<Cmd> {
        Some(request.call(self.line()).ok()?.command)
    }

    /// The command for a renewal of one lease.
    pub fn renew(&self, lease: &Lease) -> Option<Cmd> {
        Some(Renewal(slice::from_ref(lease)).call(self.line()).ok()?.command)
    }

    /// Loads the scripts.
    pub fn load() -> Pipeline {
        loading(&script::own(Counting::Stored))
    }

    fn line(&self) -> Line<'_> {
        Line { wire: &self.0, server_info: VERIFIED, attempt: Attempt::default() }
    }
}

/// Makes the commands for one node of a quorum.
#[derive(Debug)]
pub struct NodeByHand {
    wire: Wire,
    server_info: ServerInfo,
}

impl NodeByHand {
    /// For the server of this client, in the run that its `INFO` reports.
    pub fn new(client: &Client, run_id: &str) -> Self {
        let server_info = ServerInfo { run_id: run_id.to_owned(), ..VERIFIED.clone() };
        Self { wire: Wire::own(&Target::fixed(client.clone()), None), server_info }
    }

    /// The command for a request; of at most 100 leases, if it is a fence.
    pub fn ask(&self, ask: &Ask) -> Option<Cmd> {
        Some(
            ask.call(Line { wire: &self.wire, server_info: &self.server_info, attempt: Attempt::default() })
                .ok()?
                .command,
        )
    }

    /// Loads the scripts.
    pub fn load() -> Pipeline {
        loading(&script::node::ALL)
    }
}

fn loading(scripts: &[&Script]) -> Pipeline {
    let mut loading = redis::pipe();
    for script in scripts {
        loading.add_command(load(script));
    }
    loading
}
