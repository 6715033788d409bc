//! The contract of a store: its verbs, async and blocking.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lock_forms::two_forms;

use crate::inspect::{Entry, Page, Query, Revoked};
use crate::latch::{self, Seen};
use crate::limit::{self, Usage};
use crate::{
    Ability, Answer, BackendError, Capabilities, Claim, EventSink, Fenced, FencingToken, Lease, Location, LockName,
    Note, ReleaseRequest, Released, Renewed,
};

/// The part of a store that its async and its blocking form share.
///
/// The contract of the verbs is the same for both forms:
///
/// - Each call returns within `within`, give or take scheduling; a call that runs out of time fails with an error of
///   kind `Timeout`, whose effect is unknown.
/// - An acquire is idempotent for its owner: asking again gives the same tokens and re-arms the ttl. At a quorum, the
///   tokens may be higher if other nodes answer, and the latest ones count. If the store has a queue, the machine asks
///   again in this way after an unknown outcome. A backend never resends an unanswered acquire by itself.
/// - A renewal never creates anything. A release touches only the owner's own hold or place.
/// - A backend may send a renewal or a release once more if its connection broke, within the same `within`. A release
///   that then finds nothing at the same server is answered `Released`, since the first attempt may have done it. The
///   machine sends a release while the hold is valid, or ignores the answer.
/// - An error with effect `None` means that nothing happened at the store.
/// - Latches, limits and inspection are optional: a backend overrides their methods, and declares each in its
///   [`Capabilities`] as an [`Ability`]. The methods that it does not override fail with an error of kind `Unsupported`.
///
/// A backend that wraps another one implements [`Layer`](crate::Layer) instead.
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// The store's capabilities. Known once connected, and constant from then on.
    fn capabilities(&self) -> Capabilities;

    /// Also sends the store's events to `sink`, from now on until the sink says that its listener is gone.
    ///
    /// All listeners get every event, so that clients can share a backend. A grant for an owner that none of them knows
    /// is released by one of them, so code that calls the verbs itself, beside a client, must add its own sink.
    /// Backends keep their [`Listeners`](crate::Listeners). A store without events ignores this call.
    fn listen(&self, sink: EventSink);

    /// The location of a lock; `None` if the store cannot tell.
    ///
    /// All clients, in all processes, must get the same location for the same lock, and different ones for different
    /// locks. Asks nobody: it follows from the configuration. Without it, the locks of this store cannot be acquired
    /// together with those of other stores.
    fn locate(&self, _name: &LockName) -> Option<Location> {
        None
    }

    /// A client has held a lease for half a second, and continues to. A store that can tell it of a revocation begins to listen now, if it does
    /// not yet; short holds should not pay for that. Called once for each such lease, and returns without waiting for the store.
    ///
    /// A store that has begun to listen delivers [`StoreEvent::RecheckHolds`](crate::StoreEvent::RecheckHolds).
    fn holds(&self, _lease: &Lease) {}

    /// Ends the session, because a release has been pending for too long. Called only where the capabilities say
    /// [`EntriesEnd::WithSession`](crate::EntriesEnd::WithSession). Returns without waiting for the store.
    ///
    /// The backend delivers [`StoreEvent::SessionEnded`](crate::StoreEvent::SessionEnded) to its listeners, **then** has the store end the session,
    /// and continues under a new one. It does the same when the store has ended the session. The backend for the keeper shares the session.
    ///
    /// - The backend no longer keeps the old session alive. So that session and its entries end even if the store cannot be reached.
    /// - A request from before the event takes effect in the old session or not at all, and changes nothing once that session has
    ///   ended. No event of the old session is delivered after `SessionEnded`.
    /// - An owner belongs to one session: after the event, the client claims under new owners.
    /// - A release with [`Certainty::Unknown`](crate::Certainty::Unknown) keeps out late claims of its owner for the rest of the session.
    /// - A grant or renewal is valid for no longer than the session is sure to last without another request.
    /// - A store that has lost data has ended the session. A restored entry would last as long as the session, and no client would know it.
    /// - A lock that is kept or detached must expire by itself, without the session. A store that cannot do that declares neither
    ///   [`Ability::Keep`] nor [`Ability::Replace`].
    /// - Dropping the backend ends the session.
    fn end_session(&self) {}

    /// Warnings for operators about the store as it was found on connecting. Each is a sentence without secrets.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The verbs of a store, as tokio uses them if they are async, and plain threads if not.
#[two_forms]
#[async_trait]
pub trait AsyncBackend: Backend {
    /// The same store over a connection of its own, for the keeper, which runs on a thread of its own, and in async code on a runtime of its
    /// own.
    ///
    /// A backend without connections, or one that uses a client that was passed in, returns itself.
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend>;

    /// Asks for a lease, or asks again.
    ///
    /// # Errors
    /// Those of the store; see the contract of [`Backend`].
    ///
    /// # Cancel safety
    /// Not cancel safe: a dropped call may have taken effect. The facades run it where users cannot drop it.
    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError>;

    /// Renews leases. Returns one answer for each, in their order.
    ///
    /// # Errors
    /// Those of the store. Whether the leases of the call were renewed is then unknown, or they are unchanged, as the
    /// error's effect says.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: the renewals may or may not have taken effect.
    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError>;

    /// Gives up a hold or a place.
    ///
    /// # Errors
    /// Those of the store.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: the release may or may not have taken effect.
    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError>;

    /// Asks whether the lease is still the stored grant.
    ///
    /// # Errors
    /// Those of the store.
    ///
    /// # Cancel safety
    /// Can be dropped at any point.
    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError>;

    /// Waits until the background work of earlier calls is done, but no longer than `within`. Most stores have none.
    ///
    /// # Cancel safety
    /// Changes nothing. On what [`for_keeper`](Self::for_keeper) returned, it is called once the client's runtime has ended: nothing is
    /// polled there any more.
    async fn flush(&self, _within: Duration) {}

    /// Counts arrivals at a latch: carries out one request, and answers with the latch as it is then. A request may be
    /// repeated; it takes effect once. The ability is [`Ability::Latch`].
    ///
    /// # Errors
    /// `Unsupported` if the store has no such ability; the store's errors, such as `Timeout`, after which the request may have
    /// taken effect.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: the request may or may not have taken effect, and can be repeated.
    async fn latch(&self, _request: &latch::Request, _within: Duration) -> Result<Seen, BackendError> {
        Err(self.capabilities().unable(Ability::Latch))
    }

    /// Changes the limit of a semaphore, or counts its free permits: carries out one request, and answers with the semaphore
    /// as it is then. The ability is [`Ability::SetLimit`]. What a claim gets while a limit that was set is in force is in
    /// [`limit`](crate::limit).
    ///
    /// # Errors
    /// `Unsupported` if the store has no such ability. `OtherKind` if the name is in use as a lock; for a look, also if it is in use with a
    /// limit that the one in the request does not stand for. Those of the store. With effect `None`, nothing was changed.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: the request may or may not have taken effect, and can be repeated.
    async fn limit(&self, _request: &limit::Request, _within: Duration) -> Result<Usage, BackendError> {
        Err(self.capabilities().unable(Ability::SetLimit))
    }

    /// The holders and waiters of a lock; `None` if nobody holds it. This method and the next three need
    /// [`Ability::Inspect`].
    ///
    /// # Errors
    /// `Unsupported` if the store has no such ability; the store's errors.
    ///
    /// # Cancel safety
    /// Changes nothing.
    async fn holder(&self, _name: &LockName, _within: Duration) -> Result<Option<Entry>, BackendError> {
        Err(self.capabilities().unable(Ability::Inspect))
    }

    /// Some of the held locks that match.
    ///
    /// # Errors
    /// As [`holder`](Self::holder).
    ///
    /// # Cancel safety
    /// Changes nothing.
    async fn list(&self, _query: &Query, _within: Duration) -> Result<Page, BackendError> {
        Err(self.capabilities().unable(Ability::Inspect))
    }

    /// Ends the lease that spans `token`, for any owner. The store remembers who did, so that the holder learns of it: for as
    /// long as the lease could have lasted, and for a minute at least.
    ///
    /// # Errors
    /// As [`holder`](Self::holder). After a `Timeout`, the revocation may have taken effect.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: the revocation may or may not have taken effect.
    async fn revoke(
        &self,
        _name: &LockName,
        _token: FencingToken,
        _by: &Note,
        _within: Duration,
    ) -> Result<Revoked, BackendError> {
        Err(self.capabilities().unable(Ability::Inspect))
    }

    /// The note of the client that revoked the lease whose highest token this is; `None` if none did, or if the store does not remember it any
    /// more.
    ///
    /// # Errors
    /// As [`holder`](Self::holder).
    ///
    /// # Cancel safety
    /// Changes nothing.
    async fn revoked_by(
        &self,
        _name: &LockName,
        _highest: FencingToken,
        _within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        Err(self.capabilities().unable(Ability::Inspect))
    }
}
