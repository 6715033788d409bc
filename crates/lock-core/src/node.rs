//! What one node of a quorum is asked, and what it answers.
//!
//! A node is an ordinary store that also counts: it has one counter F for all its locks, keeps with every grant the token
//! f that it drew for it, and knows whether it may vote. The contract of [`AsyncQuorumNode::ask`] and
//! [`BlockingQuorumNode::ask`]:
//!
//! - Each request runs alone and to its end. Requests take effect in the order in which they were handed over, as far as
//!   one connection lasts; each returns within `within`, and a [`Timeout`](crate::ErrorKind::Timeout) is of unknown effect.
//! - **Acquire.** Where the owner holds already: its stored token, and the ttl is re-armed. Where nobody holds and the owner
//!   was not given up: f = max(F + width, wish, floor + width), where the wish counts for at most a second more than the
//!   node's own clock, and the floor for at most a day more; F becomes f, f is kept with the grant. Either
//!   raises the longest ttl.
//! - **Fence**, of each lease: acknowledged if its owner still holds and the grant's own f is not above the lease's highest token,
//!   which then is the token that is kept; the ttl is re-armed. `Higher` names the own grant's token that is above, or the
//!   first one of somebody who came after. F and the longest ttl are raised to the highest of all these leases, whatever
//!   the answers. Nothing is created. So a ttl can be announced before anything is granted for it.
//! - Both only under the epoch that the node votes in at this run; otherwise [`Told::Abstains`], and nothing was changed.
//! - **Release** always works: it ends the owner's hold, and leaves a tombstone where a claim may still arrive.
//! - A node that lost its memory has no epoch. It is **marked** with a fresh one and abstains until that is **installed**;
//!   both compare before they set, so that any number of clients may do it together. A mark says which deployment it is
//!   for; the node belongs to it once it was installed. A **move** does nothing where the node has its epoch already;
//!   otherwise the node belongs to the new deployment at once, and remembers the one before it.
//! - A **note** keeps for each member of the deployment the last epoch that was seen to begin there, and since when.
//!
//! # Source
//! S. Sanfilippo, "Distributed locks with Redis" (the quorum). Drawing a token at each node, and committing the highest of
//! them in a second round against the grant's own token, is this project's; see `docs/guarantees.md`.

mod epoch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{BackendError, Claim, EventSink, Fenced, FencingToken, Holder, Lease, ReleaseRequest, Released};

pub use epoch::Epoch;

/// Which run of which server answered; another after each start of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub String);

/// A reading of a node's clock, in microseconds since 1970: a height for tokens. Readings of two nodes are never compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeTime(pub u64);

/// Whether a node's vote counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It remembers everything since this epoch began.
    Voting(Epoch),
    /// It was seen to have forgotten, so long ago by its own clock, and waits until what it may have granted is over.
    Abstaining {
        /// The epoch that will begin then.
        epoch: Epoch,
        /// How long it has abstained.
        since: Duration,
    },
    /// It has forgotten, and nobody has said so yet.
    Forgetful,
}

/// What all clients of a deployment have to agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The addresses of all nodes, sorted.
    pub members: Vec<String>,
    /// The longest ttl that may be asked for.
    pub max_ttl: Duration,
}

impl Membership {
    /// Of nodes in any order.
    pub fn new(mut members: Vec<String>, max_ttl: Duration) -> Self {
        members.sort_unstable();
        Self { members, max_ttl }
    }
}

/// What a node knows of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The run that answered.
    pub run: RunId,
    /// Whether it votes.
    pub state: NodeState,
    /// Its counter F: no grant of a voting node had a higher token.
    pub counter: u64,
    /// The longest ttl that it granted, armed again, or was told of.
    pub longest: Duration,
    /// The deployment it belongs to, where it was ever installed or moved.
    pub membership: Option<Membership>,
    /// The deployment whose client marked it, while it abstains.
    pub marked_for: Option<Membership>,
    /// The deployment that moved to [`membership`](Self::membership), as the move said.
    pub predecessor: Option<Membership>,
    /// Its clock.
    pub clock: NodeTime,
    /// How it makes room when its memory is full, where that may drop locks.
    pub evicts: Option<String>,
}

/// A request to a node.
#[derive(Clone, Debug)]
pub enum Ask {
    /// A grant. It counts as acknowledged where the answer is the wish itself.
    Acquire {
        /// Who wants what. An owner asks once.
        claim: Arc<Claim>,
        /// The highest token that it would like to have.
        wish: FencingToken,
        /// The epoch in which the node is thought to vote.
        epoch: Epoch,
    },
    /// Acknowledgements of leases, and renewals: the test is the same.
    Fence {
        /// What was granted, under the tokens that its owner holds it with.
        leases: Arc<[Lease]>,
        /// The epoch in which the node is thought to vote.
        epoch: Epoch,
    },
    /// The end of a hold, or of a claim.
    Release(Arc<ReleaseRequest>),
    /// What it knows of itself.
    Look,
    /// To abstain under this epoch, unless it votes or abstains already.
    Mark {
        /// The epoch that will begin.
        epoch: Epoch,
        /// The deployment that will install it.
        membership: Arc<Membership>,
    },
    /// What is noted here of some members, after what was seen of them is noted.
    Note {
        /// What was seen.
        seen: Arc<[Sighting]>,
        /// How long to keep what is written.
        keep: Duration,
    },
    /// To vote from now on, if it still abstains under this epoch.
    Install {
        /// The epoch that begins.
        epoch: Epoch,
        /// The counter is raised to this, and to the node's clock.
        counter: u64,
        /// The longest ttl in use.
        longest: Duration,
        /// The deployment.
        membership: Arc<Membership>,
    },
    /// To belong to another deployment, and to abstain under this epoch.
    Move {
        /// The epoch that will begin there.
        epoch: Epoch,
        /// The deployment.
        membership: Arc<Membership>,
        /// The deployment before it.
        predecessor: Arc<Membership>,
    },
}

/// What a client saw of a member of its deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Whose address.
    pub member: String,
    /// What to note of it.
    pub noting: Noting,
}

/// What is to be noted of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noting {
    /// Nothing.
    Nothing,
    /// It abstains under this epoch: since now, unless that is what is noted already.
    Begins(Epoch),
    /// It abstains under this epoch, since now whatever is noted.
    BeginsAnew(Epoch),
}

/// What is noted of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The last epoch that was seen to begin there.
    pub epoch: Epoch,
    /// How long ago that was, by the clock of the node that noted it.
    pub age: Duration,
}

/// What a node answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The owner holds here.
    Granted {
        /// The token f that is kept with the grant; `width` tokens end with it.
        token: FencingToken,
        /// The node's clock.
        clock: NodeTime,
    },
    /// Somebody else holds here.
    Held {
        /// Who.
        holder: Holder,
        /// How long until its lease ends, if nobody renews it and the node can tell.
        remaining: Option<Duration>,
    },
    /// The node may not vote in that epoch.
    Abstains,
    /// One for each lease.
    Fenced(Vec<Fenced>),
    /// The answer to a release.
    Released(Released),
    /// The answer to looking, marking, installing and moving: what is true now.
    View(Box<View>),
    /// What is noted of each member that was asked about.
    Noted(Vec<Option<Noted>>),
}

impl View {
    /// Whether its vote counts.
    pub fn votes(&self) -> bool {
        matches!(self.state, NodeState::Voting(_))
    }
}

/// What the async and the blocking form of a node share.
pub trait QuorumNode: fmt::Debug + Send + Sync + 'static {
    /// The node as its deployment lists it, without secrets. Two nodes never have the same.
    fn address(&self) -> &str;

    /// Sends hints that locks were freed to `sink` as well, from now on and until it says that its listener is gone.
    fn listen(&self, sink: EventSink);
}

/// A node that is used from tokio.
#[async_trait]
pub trait AsyncQuorumNode: QuorumNode {
    /// The same node over a connection of its own, for the keeper's runtime.
    #[must_use]
    fn for_keeper(&self) -> Self
    where
        Self: Sized;

    /// Asks the node; see the contract in the module's header.
    ///
    /// # Errors
    /// Those of the store.
    ///
    /// # Cancel safety
    /// Not cancel safe: a dropped request may have taken effect.
    async fn ask(&self, ask: &Ask, within: Duration) -> Result<Told, BackendError>;
}

/// A node that is used from plain threads.
pub trait BlockingQuorumNode: QuorumNode {
    /// The same node over connections of its own, for the keeper's threads.
    #[must_use]
    fn for_keeper(&self) -> Self
    where
        Self: Sized;

    /// Asks the node; see the contract in the module's header.
    ///
    /// # Errors
    /// Those of the store.
    fn ask(&self, ask: &Ask, within: Duration) -> Result<Told, BackendError>;
}
