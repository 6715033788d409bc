//! The inputs and outputs of a station.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    Admission, Answer, BackendError, Claim, Fairness, Hold, Keep, Lease, LossReason, Moment, Note, Owner, Policy,
    Refusal, ReleaseRequest, Released, Renewed, StoreEvent, Terms, Ticket, Ttl,
};

/// Names one turn at a station, from joining the wait queue to the end of the hold. Made by the facade: unique per station, and rising,
/// for the wait queue is kept in the order of the turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnId(pub u64);

/// Names one action, so that a late reply cannot be taken for another one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub(super) u64);

/// A local waiter that joins the wait queue.
#[derive(Clone, Debug)]
pub struct Join {
    /// Its turn.
    pub turn: TurnId,
    /// The terms of the lease that it wants.
    pub terms: Terms,
    /// How long it waits.
    pub patience: Patience,
    /// Whether a long wait is reported to observers.
    pub long_waits: LongWaits,
    /// Whether it returns an error or keeps waiting while the store is unreachable.
    pub on_unavailable: OnUnavailable,
    /// How many answers of the store it waits for at most. A claim that is in flight already is the first.
    pub max_requests: Option<NonZeroU32>,
    /// Whether it may be served before earlier waiters, if it fits.
    pub fairness: Fairness,
    /// How long it holds at most.
    pub max_hold: Option<Duration>,
    /// What it says of itself.
    pub note: Note,
}

impl Join {
    /// A waiter that wants the lock for itself, at the default ttl, and waits for it without limit, even while the store is unreachable.
    pub fn new(turn: TurnId, note: Note) -> Self {
        Self {
            turn,
            terms: Terms::exclusive(Ttl::DEFAULT),
            patience: Patience::Forever,
            long_waits: LongWaits::Reported,
            on_unavailable: OnUnavailable::Wait,
            max_requests: None,
            fairness: Fairness::Fair,
            max_hold: None,
            note,
        }
    }

    /// Whether it gives up when requests have failed for so long.
    pub(super) fn gives_up_after(&self, outage: Duration, policy: &Policy) -> bool {
        self.on_unavailable == OnUnavailable::Fail && outage >= policy.within(self.terms.ttl)
    }
}

/// How long a waiter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all: the first answer counts.
    Never,
    /// Until a moment.
    Until {
        /// When the wait began, which may be before the waiter joined.
        since: Moment,
        /// When it ends.
        end: Moment,
    },
    /// For as long as it takes.
    Forever,
}

impl Patience {
    /// Waits for so long from now.
    pub fn within(now: Moment, wait: Duration) -> Self {
        Self::Until { since: now, end: now + wait }
    }
}

/// Whether a long wait is reported to observers.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LongWaits {
    /// They are: others hold the lock for longer than they should.
    #[default]
    Reported,
    /// They are not: it is what the waiter is for.
    Expected,
}

/// What a waiter does while the store is unreachable: it returns an error, or keeps waiting. A store that answers that it cannot serve
/// requests now counts as unreachable.
///
/// A waiter that does not wait gets the error of the first request, whatever is set here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnUnavailable {
    /// It gets the error of the store once requests have failed for an operation timeout, which is a second for most leases. So a
    /// store that is back sooner is waited for. For other holders it waits as long as it would have done otherwise.
    #[default]
    Fail,
    /// It continues to wait. If the store is still away at the end of the wait, it gets the error of the latest request.
    Wait,
}

/// How a turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// Its turn.
    pub turn: TurnId,
    /// How long nobody may have the lock after it: see [`ReleaseRequest::keep`]. It is for the last turn under a lease; a
    /// waiter just leaves.
    pub keep: Option<Keep>,
}

impl Leaving {
    /// The turn ends, and the next one may begin.
    pub const fn now(turn: TurnId) -> Self {
        Self { turn, keep: None }
    }
}

/// An input of a station.
#[derive(Debug)]
pub enum Input {
    /// A local waiter joins.
    Join(Join),
    /// A local waiter wants to continue with the lease of a ticket, as another owner. Only at a store whose capabilities say
    /// [`Ability::Replace`](crate::Ability::Replace). The terms are for the ticket's mode, and any ttl.
    Adopt {
        /// Who, and how it would like to hold.
        join: Join,
        /// What it has from the holder before.
        ticket: Ticket,
    },
    /// A holder ends its turn, and its lease stays at the store for somebody to adopt. Nothing happens if other turns are under
    /// the lease, if it is about to be replaced, or for a turn that is over already.
    Detach(TurnId),
    /// A waiter gives up, or a holder is done. For a turn that is over already, nothing happens.
    Leave(Leaving),
    /// A wait is cancelled. For a turn that does not wait any more, nothing happens.
    Cancel(TurnId),
    /// A holder wants to continue under other terms: its lease is replaced in one step, past the queue. Only for the one turn
    /// under a lease, at a store whose capabilities say [`Ability::Replace`](crate::Ability::Replace), and for a ttl that is
    /// at least as long. With another mode, the new lease has the longer ttl of the two. For a turn that is over already,
    /// nothing happens.
    Replace {
        /// Whose turn.
        turn: TurnId,
        /// What it wants.
        terms: Terms,
    },
    /// An action was answered.
    Reply(ActionId, Reply),
    /// The store said how a lease stands, in a renewal or a fence.
    Renewal {
        /// Whose lease.
        owner: Owner,
        /// When the request was handed out.
        asked_at: Moment,
        /// What the store said, or why it did not.
        answer: Result<Renewed, BackendError>,
    },
    /// The store sent an event.
    Event(StoreEvent),
    /// Time passed.
    Tick,
    /// The client closes: waiters are refused, holders lose their holds.
    Close,
    /// The station has panicked. The same, and observers are notified that the holds are lost. No input follows.
    Break,
}

/// The answer to a request of an action.
#[derive(Debug)]
pub enum Reply {
    /// To [`Request::Acquire`].
    Acquire(Result<Answer, BackendError>),
    /// To [`Request::Release`].
    Release(Result<Released, BackendError>),
}

/// A request for the facade to run against the backend, once, in the order in which they come out.
#[derive(Clone, Debug)]
pub struct Action {
    /// Goes back with the reply.
    pub id: ActionId,
    /// The request to send.
    pub request: Request,
    /// How long it may take. The facade answers in the end, with an error of kind `Timeout` if nothing else.
    pub within: Duration,
    /// Who waits for the answer.
    pub for_whom: ForWhom,
}

/// The waiter for the answer to a request, which may run it. A turn that was refused may still run its own release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForWhom {
    /// This turn: a waiter that asks for itself, a holder that changes or leaves, or a waiter that was just refused and whose
    /// leftovers are released.
    Turn(TurnId),
    /// Any waiter in the queue; the grant is for the front one. Adopters have a queue of their own.
    AnyWaiter,
    /// Nobody.
    Nobody,
}

/// A request to the store.
#[derive(Clone, Debug)]
pub enum Request {
    /// The first verb.
    Acquire(Claim),
    /// The third verb.
    Release(ReleaseRequest),
}

/// An output of a station, for the facade to carry out.
#[derive(Clone, Debug)]
pub enum Output {
    /// The waiter has its turn. Test the hold once more before it is handed out.
    Admit {
        /// Whose turn.
        turn: TurnId,
        /// The state that its guard shares; the station continues to extend it.
        hold: Arc<Hold>,
    },
    /// The waiter is rejected.
    Refuse {
        /// Whose turn.
        turn: TurnId,
        /// Why.
        refusal: Refusal,
    },
    /// The holder's wish for other terms was granted or refused. If its turn ends first, only that is reported.
    Replaced {
        /// Whose turn.
        turn: TurnId,
        /// What its guard knows from now on, in place of the hold before, which is no longer extended. Or why nothing
        /// changed.
        result: Result<Arc<Hold>, Refusal>,
    },
    /// The holder lost its hold, which says so already: wake the code that waits for that.
    Lose {
        /// Whose turn.
        turn: TurnId,
        /// Why.
        reason: LossReason,
    },
    /// The holder's leaving was carried out, or failed for now.
    Ended {
        /// Whose turn.
        turn: TurnId,
        /// The store's answer. `Released` is also reported without a request: if the lease was passed on, or if the session has ended.
        /// After an error the station keeps trying in the background until the lease has expired.
        result: Result<Released, BackendError>,
    },
    /// The holder's turn has ended, and its lease stays at the store.
    Detached(TurnId),
    /// Run this, off the user's own thread of control.
    Run(Action),
    /// Have the keeper renew this lease.
    StartRenewal {
        /// The lease.
        lease: Arc<Lease>,
        /// How it was admitted.
        admission: Admission,
    },
    /// Have the keeper renew this owner's lease now, although a renewal is not due: its answer says whether others wait, and whether
    /// the lease was revoked.
    RenewNow(Owner),
    /// Have the keeper forget this owner's lease.
    StopRenewal(Owner),
    /// Have the backend [end its session](crate::Backend::end_session), if the station still
    /// [needs that](super::Station::must_end_session) when the backend is called. The backend sends an event to all stations of the client,
    /// so none of them may be locked.
    EndSession,
}
