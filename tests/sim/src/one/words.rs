//! What goes over the network to the one server and back.

use std::time::Duration;

use lock_core::inspect::Revoked;
use lock_core::latch::{Request, Seen};
use lock_core::{
    Answer, BackendError, Claim, Fenced, FencingToken, Lease, LockName, Note, Owner, ReleaseRequest, Released, Renewed,
    StoreEvent,
};

use super::known::{Known, LeaseId, Told};
use super::units::{Inbox, Millis, Seat, SessionId};
use crate::network::{StoreId, Talk};

/// How often a primary was chosen before this one, by all sentinels' count.
pub(crate) type ConfigEpoch = u64;

/// There is only one.
pub(super) const SERVER: StoreId = StoreId(0);

/// Clients and the server.
#[derive(Debug)]
pub(crate) enum Words {}

impl Talk for Words {
    type Ask = Ask;
    type Say = Say;
}

/// Who ends the leases of others.
pub fn operator() -> Note {
    Note::from_wire("1@console")
}

/// What a client asks over a connection.
#[derive(Clone, Debug)]
pub enum Ask {
    /// The first words: verify the counter, and listen to this inbox.
    Hello(Option<Inbox>),
    /// The first words where entries end with a session: join this one, and listen to this inbox.
    Join(SessionId, Option<Inbox>),
    /// Keep the session of the connection alive.
    Beat,
    /// The same, by the server that leads: the answer proves something.
    CatchUp,
    /// End it.
    EndSession,
    /// The first verb.
    Acquire(Claim, Seat),
    /// The second verb.
    Renew(Vec<Lease>),
    /// The third verb.
    Release(ReleaseRequest),
    /// The fourth verb.
    Fence(Lease),
    /// The [`operator`] ends the lease that spans a token.
    Revoke(LockName, FencingToken),
    /// About a latch, for the call with this number. The answer to one that waits may be told here.
    Latch(Request, u64, Option<Inbox>),
    /// A client of the plain layout: `SET name value NX PX life`.
    ForeignSet(LockName, u64, Millis),
    /// The same: compare and delete.
    ForeignDelete(LockName, u64),
    /// To a sentinel: which server is the primary?
    Topology,
    /// A lease that lasts for so long, for an entry to end with.
    Grant(Duration),
    /// Renew leases, whatever ends with them.
    KeepAlive(Vec<LeaseId>),
    /// Read what is there of an owner.
    Look(Owner),
    /// In one step: compare these entries, carry the request out if they are as they are known to be, and read them.
    Txn(Box<Self>, Vec<Known>),
}

impl Ask {
    /// What is asked for, whatever is compared first.
    pub(crate) fn request(&self) -> &Self {
        if let Self::Txn(ask, _) = self { ask } else { self }
    }

    /// Whose entries it is about.
    pub(crate) fn owners(&self) -> Vec<Owner> {
        if let Self::Renew(leases) = self {
            return leases.iter().map(|lease| lease.owner).collect();
        }
        if let Self::Acquire(Claim { owner, .. }, _) | Self::Release(ReleaseRequest { owner, .. }) | Self::Look(owner) =
            self
        {
            return vec![*owner];
        }
        Vec::new()
    }

    /// Whether the server that leads carries it out. A claim may be a read alone.
    pub(crate) fn is_write(&self) -> bool {
        matches!(self, Self::Renew(_) | Self::Release(_) | Self::CatchUp | Self::EndSession)
    }
}

/// What the server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Say {
    /// To [`Ask::Hello`], [`Ask::Join`], [`Ask::Beat`] and [`Ask::CatchUp`].
    Hello,
    /// To anything: the session of the connection has ended.
    SessionOver,
    /// To anything: the session is on another connection.
    SessionMoved,
    /// To [`Ask::Acquire`].
    Acquire(Result<Answer, Refused>),
    /// To [`Ask::Renew`].
    Renew(Vec<Renewed>),
    /// To [`Ask::Release`].
    Release(Result<Released, Refused>),
    /// To [`Ask::Fence`].
    Fence(Fenced),
    /// To [`Ask::Revoke`].
    Revoke(Revoked),
    /// To [`Ask::Latch`].
    Latch(Seen),
    /// To [`Ask::ForeignSet`] and [`Ask::ForeignDelete`]: whether it did.
    Foreign(bool),
    /// To [`Ask::Topology`].
    Primary(usize, ConfigEpoch),
    /// To [`Ask::Hello`], by a replica; to [`Ask::Join`], by a server that is behind what the client has seen.
    NotPrimary,
    /// To [`Ask::Acquire`] and [`Ask::Renew`]: it was done here, and too few replicas have acknowledged that.
    TooFew,
    /// Nothing: no answer is sent.
    Silence,
    /// To [`Ask::Grant`], in this term.
    Granted(LeaseId, u64),
    /// To [`Ask::KeepAlive`]: how long each lasts, if it is known there.
    KeptAlive(Vec<Option<Duration>>),
    /// To [`Ask::Txn`]. `None` if the entries were not as they were known to be.
    Txn(Option<Box<Self>>, Told),
    /// To [`Ask::Txn`]: its lease has ended.
    NoLease,
}

impl Say {
    /// What is answered to the request itself.
    pub(crate) fn answer(&self) -> &Self {
        if let Self::Txn(Some(say), _) = self { say } else { self }
    }
}

/// Why a server refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A tombstone of the owner exists.
    GivenUp,
    /// The tokens are used up.
    Spent,
    /// It may have forgotten leases, and grants no free lock.
    Dwells,
    /// Another reason.
    Other(BackendError),
}

/// What follows from one request.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) say: Say,
    pub(crate) published: Vec<(Inbox, StoreEvent)>,
    /// What was newly granted.
    pub(crate) granted: Vec<Lease>,
}
