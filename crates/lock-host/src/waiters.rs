//! What a site needs of those who wait or hold at it.

use lock_core::station::TurnId;
use lock_core::{BackendError, Hold, LossReason, Moment, Refusal, Released};

use crate::sync::Arc;

/// Those who wait or hold at a site, as a facade keeps them. A turn that is not among them is ignored.
pub trait Waiters: Default + Send + 'static {
    /// The waiter has its turn.
    fn admit(&mut self, turn: TurnId, hold: Arc<Hold>);

    /// The waiter is refused.
    fn refuse(&mut self, turn: TurnId, refusal: Refusal);

    /// The holder goes on under another hold, or as before.
    fn replaced(&mut self, turn: TurnId, result: Result<Arc<Hold>, Refusal>);

    /// The holder has lost its hold, which says so already.
    fn lose(&mut self, turn: TurnId, reason: LossReason);

    /// The holder's leaving was carried out, or failed for now.
    fn end(&mut self, turn: TurnId, result: Result<Released, BackendError>);

    /// The holder has left.
    fn forget(&mut self, turn: TurnId);

    /// All turns, with the holds of those that were admitted.
    fn turns(&self) -> Vec<(TurnId, Option<Arc<Hold>>)>;

    /// Whether there are no turns.
    fn is_empty(&self) -> bool;

    /// When to call [`Driver::attend`](crate::Driver::attend) at the latest, if nothing happens before.
    fn next_wake(&self, _now: Moment) -> Option<Moment> {
        None
    }
}
