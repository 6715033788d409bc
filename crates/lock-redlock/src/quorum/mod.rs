//! What a quorum decides, without I/O: whom to ask what, and what the answers mean. Both colours run it, and so does the
//! simulator.
//!
//! An [`Errand`] is one verb, or one pass of the restart guard, over all nodes. Whoever runs it sends its [`Letter`]s, each
//! node's in order, and gives every outcome back, also after the verdict: what is left to do for the nodes that were slower
//! is part of the errand. What errands know of the nodes in common is the [`Quorum`].

mod acquire;
mod ballot;
mod fence;
mod guard;
mod heights;
mod peer;
mod release;
mod trouble;
mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Membership, Told};
use lock_core::{BackendError, Effect, FencingToken, Lease, Moment, Owner, ReleaseRequest, TokenRange, Ttl};

pub use acquire::Acquire;
pub use fence::{Renew, Verify};
pub use guard::{Guard, NodeReport, Purpose, Recovery, Report};
pub use release::Release;

use heights::Heights;
use peer::{OWED_REST, Peer};
use trouble::{Failures, refusal};
use watch::Watch;

/// One of the nodes, by its place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// Something to be asked of a node.
#[derive(Clone, Debug)]
pub struct Letter {
    /// Whom.
    pub node: NodeId,
    /// What.
    pub ask: Ask,
    /// How long it may take.
    pub within: Duration,
}

/// The outcome of a letter.
pub type Outcome = Result<Told, BackendError>;

/// A verb, or a pass of the guard, over all nodes.
pub trait Errand: Send + 'static {
    /// What comes of it.
    type Verdict: Send + 'static;

    /// What is to be sent now. Ask again until there is nothing.
    fn next_letter(&mut self) -> Option<Letter>;

    /// Takes the outcome of a letter in. Every letter has exactly one.
    fn heard(&mut self, quorum: &mut Quorum, now: Moment, letter: &Letter, outcome: Outcome);

    /// The verdict, once, as soon as it is certain.
    fn take_verdict(&mut self) -> Option<Self::Verdict>;
}

/// What is known of the nodes.
#[derive(Debug)]
pub struct Quorum {
    peers: Vec<Peer>,
    membership: Arc<Membership>,
    max_ttl: Ttl,
    heights: Heights,
    /// By owner that holds: the highest token that a node drew for it, under which all of them renew.
    held: BTreeMap<Owner, FencingToken>,
    /// The longest ttl that a majority of the nodes has been told of.
    announced: Duration,
    watch: Watch,
}

/// Somebody to ask for a vote.
#[derive(Clone, Copy, Debug)]
struct Elector {
    node: NodeId,
    epoch: Epoch,
    hope: Hope,
}

/// Whether an answer is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hope {
    Awaited,
    /// It did not answer before, and nobody waits for it.
    Probe,
}

/// How many releases a node is sent that does not answer; the others are owed.
const RELEASES_TO_SUSPECT_MAX: usize = 64;

impl Quorum {
    /// Nodes of these addresses, of which nothing is known yet.
    ///
    /// # Errors
    /// `Config` for less than three nodes, or for one address twice.
    pub fn new(addresses: &[String], max_ttl: Ttl) -> Result<Self, BackendError> {
        let membership = Membership::new(addresses.to_vec(), max_ttl.get());
        let members = &membership.members;
        if members.len() < 3 {
            let told = format!("{} nodes are too few", members.len());
            let remedy = "name at least three, better an odd number; for one server use its own URL";
            return Err(refusal(told, remedy));
        }
        if let Some(twice) = members.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(refusal(format!("the node {} is listed twice", twice[0]), "name each node once"));
        }
        let peers = addresses.iter().map(|address| Peer::new(address.clone())).collect();
        Ok(Self {
            peers,
            membership: Arc::new(membership),
            max_ttl,
            heights: Heights::new(addresses.len()),
            held: BTreeMap::new(),
            announced: Duration::ZERO,
            watch: Watch::default(),
        })
    }

    /// How many nodes are needed for anything.
    pub fn majority(&self) -> usize {
        self.peers.len() / 2 + 1
    }

    /// No majority can do without one of so many.
    pub fn blocking(&self) -> usize {
        self.peers.len() - self.majority() + 1
    }

    /// The longest ttl that may be asked for.
    pub fn max_ttl(&self) -> Ttl {
        self.max_ttl
    }

    /// Whether nothing is under way, but to nodes that do not answer.
    pub fn is_quiet(&self) -> bool {
        self.peers.iter().all(|peer| peer.under_way == 0 || !peer.is_trusted())
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.peers.len()).map(NodeId)
    }

    fn voters(&self) -> impl Iterator<Item = (NodeId, Epoch)> + '_ {
        self.peers.iter().enumerate().filter_map(|(index, peer)| Some((NodeId(index), peer.epoch?)))
    }

    /// The voters to ask: those that can be trusted to answer, and as a probe some others. Where the trusted alone are no
    /// majority, all are asked, and waited for.
    fn electorate(&mut self, now: Moment) -> Vec<Elector> {
        let trusted = self.voters().filter(|(node, _)| self.peers[node.0].is_trusted()).count();
        let (short, voters) = (trusted < self.majority(), self.voters().collect::<Vec<_>>());
        let elector = |(node, epoch): (NodeId, Epoch)| {
            let peer = &mut self.peers[node.0];
            let hope = if short || peer.is_trusted() { Hope::Awaited } else { Hope::Probe };
            (peer.may_be_asked(now) || short).then_some(Elector { node, epoch, hope })
        };
        voters.into_iter().filter_map(elector).collect()
    }

    /// What every outcome means for its node, whatever the errand. Gives what is owed to a node that answers again.
    fn settle(&mut self, now: Moment, letter: &Letter, outcome: &Outcome) -> Vec<Letter> {
        let Letter { node, ask, .. } = letter;
        let peer = &mut self.peers[node.0];
        peer.under_way = peer.under_way.saturating_sub(1);
        match outcome {
            Ok(Told::Granted { clock, .. }) => self.heights.saw(now, *node, *clock),
            Ok(Told::View(view)) => self.heights.saw(now, *node, view.clock),
            Ok(Told::Abstains) => peer.epoch = None,
            Ok(_) | Err(_) => {}
        }
        let peer = &mut self.peers[node.0];
        let until = now + self.membership.max_ttl;
        let sure = outcome.as_ref().map_or_else(|error| error.effect() == Effect::None, |_| true);
        match (ask, outcome) {
            (Ask::Acquire { claim, .. }, _) if sure => peer.answered_claim(claim.owner),
            (Ask::Acquire { claim, .. }, _) => peer.lost_claim(now, claim.owner, until),
            (Ask::Release(request), Ok(_)) => peer.released(request),
            // What is refused now, by a node that still loads its data or has no room, is not so a little later.
            (Ask::Release(request), Err(error)) if error.kind().is_an_answer() => {
                peer.owe(request, now + OWED_REST, until)
            }
            (Ask::Release(request), Err(_)) => peer.owe(request, now, until),
            (Ask::Fence { .. } | Ask::Look | Ask::Mark { .. } | Ask::Note { .. }, _) => {}
            (Ask::Install { .. } | Ask::Move { .. }, _) => {}
        }
        if outcome.as_ref().is_err_and(|error| !error.kind().is_an_answer()) {
            peer.failed(now);
            return Vec::new();
        }
        let owed = peer.answered(now);
        owed.into_iter().map(|request| self.letter(*node, Ask::Release(request), letter.within)).collect()
    }

    /// A letter will have no outcome, since whoever ran its errand is gone.
    pub fn forget(&mut self, node: NodeId) {
        let peer = &mut self.peers[node.0];
        peer.under_way = peer.under_way.saturating_sub(1);
    }

    fn letter(&mut self, node: NodeId, ask: Ask, within: Duration) -> Letter {
        let peer = &mut self.peers[node.0];
        peer.under_way += 1;
        if let Ask::Acquire { claim, .. } = &ask {
            peer.claims(claim.owner);
        }
        Letter { node, ask, within }
    }

    /// The lock was handed out to this owner.
    fn keep(&mut self, owner: Owner, highest: FencingToken) {
        self.held.insert(owner, highest);
    }

    /// A node that was slower than the verdict drew this token for an owner that holds.
    fn raise(&mut self, owner: Owner, token: FencingToken) {
        if let Some(highest) = self.held.get_mut(&owner) {
            *highest = token.max(*highest);
        }
    }

    /// The lease under a token that no node's own is above. A node that drew a higher one would not renew it otherwise; and
    /// what comes after it is above all of them.
    fn raised(&self, lease: &Lease) -> Lease {
        let highest = self.held.get(&lease.owner).copied().filter(|highest| *highest > lease.tokens.high());
        let tokens = highest.and_then(|highest| TokenRange::new(lease.tokens.low(), highest).ok());
        Lease { tokens: tokens.unwrap_or(lease.tokens), ..lease.clone() }
    }

    /// A release for a node, unless it has to wait until that answers again.
    fn release(
        &mut self,
        now: Moment,
        node: NodeId,
        request: &Arc<ReleaseRequest>,
        within: Duration,
    ) -> Option<Letter> {
        let until = now + self.membership.max_ttl;
        let peer = &mut self.peers[node.0];
        let request = peer.release_request(now, request);
        if !peer.is_trusted() && peer.under_way >= RELEASES_TO_SUSPECT_MAX {
            peer.owe(&request, now, until);
            return None;
        }
        Some(self.letter(node, Ask::Release(request), within))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}
