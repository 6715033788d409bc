//! The requests to one node of a quorum, and its answers.
//!
//! A node is an ordinary store that also counts: it has one counter F for all its locks, keeps with every grant the token
//! f that it drew for it, and knows whether it may vote. The contract of [`AsyncQuorumNode::ask`] and
//! [`BlockingQuorumNode::ask`]:
//!
//! - Each request runs alone and to its end. Requests take effect in the order in which they were handed over, as long
//!   as one connection lasts; each returns within `within`, and a [`Timeout`](crate::ErrorKind::Timeout) is of unknown
//!   effect.
//! - **Acquire.** If the owner already holds: its stored token, and the ttl is re-armed. If nobody holds and the owner
//!   was not given up: f = max(F + width, wish, floor + width), where the wish counts for at most a second more than
//!   the node's own clock, and the floor for at most a day more; F becomes f, f is kept with the grant. Either raises
//!   the longest ttl.
//! - **Fence**, of each lease: acknowledged if its owner still holds and the grant's own f is not above the lease's
//!   highest token, which then replaces the stored token; the ttl is re-armed. `Higher` names the own grant's token if
//!   that is above, or the first token of a later holder. F and the longest ttl are raised to the highest of all these
//!   leases, whatever the answers are. Nothing is created. So a ttl can be announced before anything is granted for it.
//! - Both work only under the epoch in which the node votes at this run; otherwise the answer is [`Told::Abstains`],
//!   and nothing is changed.
//! - **Release** always works: it ends the owner's hold, and leaves a tombstone if a claim may still arrive.
//! - A node that lost its memory has no epoch. It is **marked** with a fresh one and abstains until that is
//!   **installed**; both compare before they set, so that any number of clients may do it together. A mark says which
//!   deployment it is for; the node belongs to it once it was installed. A **move** does nothing if the node already
//!   has its epoch, is of another deployment than the one that was seen, or knows of a later move; otherwise it belongs to the
//!   new deployment at once, and remembers the one before it and the number of the move.
//! - An **inspection** is answered whether the node votes or not, and tells no owner: see [`Inspection`]. A **revocation** ends
//!   the lease of an owner, or refuses a claim of that owner that is still in flight.
//! - A **record** keeps for each member of the deployment the last epoch that was seen to begin there, and since when.
//!
//! # Source
//! S. Sanfilippo, "Distributed locks with Redis" (the quorum). Drawing a token at each node, and committing the highest of
//! them in a second round against the grant's own token, is this project's; see `docs/design/0008-a-quorum-with-tokens.md`.

mod epoch;
mod inspection;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::inspect::{Cursor, Revoked};
use crate::{
    BackendError, Claim, EventSink, Fenced, FencingToken, Holder, Lease, Location, LockName, Note, Operation,
    ReleaseRequest, Released,
};

pub use epoch::Epoch;
pub use inspection::{Inspection, OwnerDigest, Revocation, Shown};

/// Which run of which server answered. It changes with every start of the server.
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
    /// It was seen to have forgotten, this long ago by its own clock, and waits until everything that it may have
    /// granted has expired.
    Abstaining {
        /// The epoch that will begin then.
        epoch: Epoch,
        /// How long it has abstained.
        since: Duration,
    },
    /// It has forgotten, and no client has marked it yet.
    Forgetful,
}

/// The settings that all clients of a deployment must share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The addresses of all nodes, sorted.
    pub members: Vec<String>,
    /// The longest ttl that may be asked for.
    pub max_ttl: Duration,
}

impl Membership {
    /// A deployment of these nodes, in any order.
    pub fn new(mut members: Vec<String>, max_ttl: Duration) -> Self {
        members.sort_unstable();
        Self { members, max_ttl }
    }

    /// Whether a move that has reached these members is decided: the others are no majority, and no other move can reach as
    /// many. It takes more than half of the members, or half if the first one is among them.
    pub fn is_left_by(&self, is_moved: impl Fn(&str) -> bool) -> bool {
        let moved = self.members.iter().filter(|member| is_moved(member)).count();
        let has_first = || self.members.first().is_some_and(|first| is_moved(first));
        2 * moved > self.members.len() || (2 * moved == self.members.len() && has_first())
    }
}

/// The state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The run that answered.
    pub run: RunId,
    /// Whether it votes.
    pub state: NodeState,
    /// Its counter F: no grant of a voting node had a higher token.
    pub counter: u64,
    /// The longest ttl that it granted, renewed, or learned from an announcement.
    pub longest: Duration,
    /// The deployment to which it belongs, if it was ever installed or moved.
    pub membership: Option<Membership>,
    /// While it abstains because it forgot: the deployment whose client marked it, or to which it was moved then.
    pub marked_for: Option<Membership>,
    /// The deployment that moved to [`membership`](Self::membership), as the move said.
    pub predecessor: Option<Membership>,
    /// Whether it has voted since it belongs to [`membership`](Self::membership).
    pub has_voted: bool,
    /// The number of the move that led to [`membership`](Self::membership): how many moves there were since the first deployment.
    pub moves: u64,
    /// Its clock.
    pub clock: NodeTime,
    /// Its `maxmemory-policy`, if that may drop locks when its memory is full.
    pub evicts: Option<String>,
}

/// A request to a node.
#[derive(Clone, Debug)]
pub enum Ask {
    /// Asks for a grant. If the node grants exactly the token that the claim wishes for, the grant also counts as acknowledged.
    Acquire {
        /// The claim. An owner asks once.
        claim: Arc<Claim>,
        /// The highest token that it wishes for.
        wish: FencingToken,
        /// The epoch in which the client believes the node to vote.
        epoch: Epoch,
    },
    /// Asks for acknowledgements or renewals of leases: the check is the same.
    Fence {
        /// What was granted, under the tokens that its owner holds it with.
        leases: Arc<[Lease]>,
        /// The epoch in which the client believes the node to vote.
        epoch: Epoch,
    },
    /// Ends a hold or a claim.
    Release(Arc<ReleaseRequest>),
    /// Asks what it knows about itself.
    Look,
    /// Makes it abstain under this epoch, unless it already votes or abstains.
    Mark {
        /// The epoch that will begin.
        epoch: Epoch,
        /// The deployment that will install it.
        membership: Arc<Membership>,
    },
    /// Records what was seen of some members, and asks what is then recorded about them.
    Record {
        /// What was seen.
        seen: Arc<[Sighting]>,
        /// How long to keep the records.
        keep: Duration,
    },
    /// Makes it vote from now on, if it still abstains under this epoch.
    Install {
        /// The epoch that begins.
        epoch: Epoch,
        /// The counter is raised to this, and to the node's clock.
        counter: u64,
        /// The longest ttl in use.
        longest: Duration,
        /// The number of the move that led to the deployment; a higher one stays.
        moves: u64,
        /// The deployment.
        membership: Arc<Membership>,
    },
    /// Makes it belong to another deployment, and abstain under this epoch, if it is still of the deployment that was seen.
    /// If it knew a deployment and has forgotten, it counts as marked.
    Move {
        /// The epoch that will begin there.
        epoch: Epoch,
        /// Its [`View::deployment`] when it was seen. If that is another one by now, the request came late and changes nothing.
        seen: Option<Arc<Membership>>,
        /// The deployment.
        membership: Arc<Membership>,
        /// The deployment before it.
        predecessor: Arc<Membership>,
        /// The number of the move. A node that knows of a later one stays as it is.
        moves: u64,
    },
    /// Looks at locks for an operator, or ends leases.
    Inspect(Inspection),
}

impl Ask {
    /// The operation that errors name.
    pub const fn operation(&self) -> Operation {
        match self {
            Self::Acquire { .. } => Operation::Acquire,
            Self::Fence { .. } => Operation::Fence,
            Self::Release(_) => Operation::Release,
            Self::Look | Self::Mark { .. } | Self::Record { .. } | Self::Install { .. } => Operation::Inspect,
            Self::Move { .. } | Self::Inspect(_) => Operation::Inspect,
        }
    }
}

/// A sighting of a member of the deployment by a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The address of the member.
    pub member: String,
    /// The record to make.
    pub recording: Recording,
}

/// A record to make of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    /// Nothing.
    Nothing,
    /// It abstains under this epoch. The time is now, unless this epoch is already recorded for a time that the node's clock has
    /// reached.
    Begins(Epoch),
    /// It abstains under this epoch. The time is now, whatever is recorded.
    BeginsAnew(Epoch),
}

/// The record of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The last epoch that a client saw begin there.
    pub epoch: Epoch,
    /// How long ago that was recorded, by the clock of the node that recorded it.
    pub age: Duration,
}

/// The answer of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The owner holds here.
    Granted {
        /// The token f that is kept with the grant; `width` tokens end with it.
        token: FencingToken,
        /// The node's clock.
        clock: NodeTime,
    },
    /// Another owner holds here.
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
    /// The answer to looking, marking, installing and moving: the present state.
    View(Box<View>),
    /// What is recorded about each member in the request.
    Records(Vec<Option<Record>>),
    /// The answer to [`Inspection::List`].
    Listed {
        /// The names of locks that may be held, in the node's order.
        names: Vec<LockName>,
        /// The cursor of the next page; `None` at the end.
        next: Option<Cursor>,
    },
    /// The answer to [`Inspection::Show`]: one for each lock; `None` if nobody holds it.
    Shown(Vec<Option<Shown>>),
    /// The answer to [`Inspection::Owners`].
    Owners(Vec<OwnerDigest>),
    /// The answer to [`Inspection::Revoke`].
    Revoked(Revoked),
    /// The answer to [`Inspection::RevokedBy`]: one for each lease.
    RevokedBy(Vec<Option<Note>>),
}

impl View {
    /// The deployment that it is of: the one to which it belongs, or if it belongs to none, the one that marked it.
    pub fn deployment(&self) -> Option<&Membership> {
        self.membership.as_ref().or(self.marked_for.as_ref())
    }

    /// Whether its vote counts.
    pub fn votes(&self) -> bool {
        matches!(self.state, NodeState::Voting(_))
    }
}

/// The part of a node that its async and its blocking form share.
pub trait QuorumNode: fmt::Debug + Send + Sync + 'static {
    /// The address under which its deployment lists the node, without secrets. No two nodes share one.
    fn address(&self) -> &str;

    /// The location of a lock; `None` if the node cannot tell. See [`Backend::locate`](crate::Backend::locate).
    fn locate(&self, _name: &LockName) -> Option<Location> {
        None
    }

    /// Also sends hints about freed locks to `sink`, from now on until the sink says that its listener is gone.
    fn listen(&self, sink: EventSink);
}

/// A node that is used from tokio.
pub trait AsyncQuorumNode: QuorumNode {
    /// The same node over a connection of its own, for the keeper's runtime.
    #[must_use]
    fn for_keeper(&self) -> Self
    where
        Self: Sized;

    /// Asks the node; see the contract in the module's header. The node need not watch the time: the caller drops the
    /// request when `within` is over.
    ///
    /// # Errors
    /// Those of the store.
    ///
    /// # Cancel safety
    /// Not cancel safe: a dropped request may have taken effect.
    fn ask(&self, ask: &Ask, within: Duration) -> impl Future<Output = Result<Told, BackendError>> + Send;
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
