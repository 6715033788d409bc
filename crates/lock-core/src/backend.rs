//! What a store has to offer: the four verbs, async and blocking.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::inspect::{Entry, Page, Query, Revoked};
use crate::{
    Answer, BackendError, Capabilities, Claim, EventSink, Fenced, FencingToken, Lease, LockName, ReleaseRequest,
    Released, Renewed,
};

/// What the async and the blocking form of a store share.
///
/// The contract of the verbs is the same for both forms:
///
/// - Each call returns within `within`, give or take scheduling. A call that ran out of time is an error of kind `Timeout`
///   and of unknown effect.
/// - An acquire is idempotent for its owner: asking again gives the same tokens and re-arms the ttl. Where the store has a
///   queue, the machine asks again in this way after an unknown outcome. A backend never resends an acquire that was not
///   answered.
/// - A renewal never creates anything. A release touches only the owner's own hold or place.
/// - A backend may send a renewal or a release once more if its connection broke, within the same `within`. A release that
///   then finds nothing at the same server is answered `Released`, because the first request may have done it. The machine
///   sends a release while the hold is valid, or ignores the answer.
/// - An error of effect `None` means that certainly nothing happened at the store.
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// What the store can do. Known once connected; does not change.
    fn capabilities(&self) -> Capabilities;

    /// Sends what the store tells unasked to `sink` as well, from now on and until it says that its listener is gone.
    ///
    /// All listeners hear everything, so that clients can share a backend. A grant for an owner that none of them knows
    /// is released by one of them: code that uses the verbs beside a client adds its own sink. Backends keep their
    /// [`Listeners`](crate::Listeners). A store that tells nothing ignores it.
    fn listen(&self, sink: EventSink);

    /// What operators should know of the store as it was found when this was connected, each a sentence without secrets.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A store that is used from tokio.
#[async_trait]
pub trait AsyncBackend: Backend {
    /// The same store over a connection of its own, for the keeper, which runs on a thread and a runtime of its own.
    ///
    /// A backend without connections, or one that was handed a client, returns itself.
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend>;

    /// Asks for a lease, or asks again.
    ///
    /// # Cancel safety
    /// Not cancel safe: a dropped call may have taken effect. The facades run it where users cannot drop it.
    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError>;

    /// Renews leases; answers in their order, one for each.
    ///
    /// # Cancel safety
    /// Harmless when dropped: the renewals may or may not have taken effect.
    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError>;

    /// Gives up a hold or a place.
    ///
    /// # Cancel safety
    /// Harmless when dropped: the release may or may not have taken effect.
    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError>;

    /// Asks whether the lease is still the stored grant.
    ///
    /// # Cancel safety
    /// Harmless when dropped.
    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError>;

    /// Waits until what earlier calls left to be done in the background is done, but no longer than `within`. Most stores
    /// leave nothing.
    ///
    /// # Cancel safety
    /// Changes nothing.
    async fn flush(&self, _within: Duration) {}

    /// The view for operators, where the store has one.
    fn inspect(&self) -> Option<&dyn AsyncInspect> {
        None
    }
}

/// A store that is used from plain threads.
pub trait BlockingBackend: Backend {
    /// The same store over a connection of its own, for the keeper's thread.
    ///
    /// A backend without connections, or one that was handed a client, returns itself.
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend>;

    /// Asks for a lease, or asks again.
    ///
    /// # Errors
    /// Those of the store; see the contract of [`Backend`].
    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError>;

    /// Renews leases; answers in their order, one for each.
    ///
    /// # Errors
    /// Those of the store; the fate of every lease in the call is then unknown or unchanged, by the error's effect.
    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError>;

    /// Gives up a hold or a place.
    ///
    /// # Errors
    /// Those of the store.
    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError>;

    /// Asks whether the lease is still the stored grant.
    ///
    /// # Errors
    /// Those of the store.
    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError>;

    /// Waits until what earlier calls left to be done in the background is done, but no longer than `within`. Most stores
    /// leave nothing.
    fn flush(&self, _within: Duration) {}

    /// The view for operators, where the store has one.
    fn inspect(&self) -> Option<&dyn BlockingInspect> {
        None
    }
}

/// Looks at locks and ends leases, from tokio.
#[async_trait]
pub trait AsyncInspect: Send + Sync {
    /// Who holds a lock now; `None` where nobody does.
    ///
    /// # Cancel safety
    /// Changes nothing.
    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError>;

    /// Some of the held locks that match.
    ///
    /// # Cancel safety
    /// Changes nothing.
    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError>;

    /// Ends the lease that spans `token`, for any owner.
    ///
    /// # Cancel safety
    /// Harmless when dropped: the revocation may or may not have taken effect.
    async fn revoke(&self, name: &LockName, token: FencingToken, within: Duration) -> Result<Revoked, BackendError>;
}

/// Looks at locks and ends leases, from plain threads.
pub trait BlockingInspect: Send + Sync {
    /// Who holds a lock now; `None` where nobody does.
    ///
    /// # Errors
    /// Those of the store.
    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError>;

    /// Some of the held locks that match.
    ///
    /// # Errors
    /// Those of the store.
    fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError>;

    /// Ends the lease that spans `token`, for any owner.
    ///
    /// # Errors
    /// Those of the store.
    fn revoke(&self, name: &LockName, token: FencingToken, within: Duration) -> Result<Revoked, BackendError>;
}
