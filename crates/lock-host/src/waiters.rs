//! The waiters and holders at a site, and the state of each turn.

use std::mem;
use std::task::Poll;

use lock_core::station::{Action, ByTurn, ForWhom, Request, TurnId};
use lock_core::{BackendError, Hold, Moment, Owner, Refusal, Released};

use crate::sync::Arc;
use crate::wake_registry::Wake;

/// The station's answer to a waiter, or to a holder that wants another mode.
pub type TurnResult = Result<Arc<Hold>, Refusal>;

/// The store's answer to the end of a hold; `None` if the hold had already been lost.
pub type End = Option<Result<Released, BackendError>>;

/// The waiters and holders at a site, with what a facade knows of them.
pub trait Waiters: Default + Send + 'static {
    /// A task or a thread, for as long as its turn lasts. It is woken when its state has changed.
    type Waiter: Wake + Default;

    /// The turns of this process.
    fn turns(&mut self) -> &mut Turns<Self::Waiter>;

    /// When to call [`Driver::attend`](crate::Driver::attend) at the latest, if nothing happens before.
    fn next_wake(&self, _now: Moment) -> Option<Moment> {
        None
    }
}

/// The turns of this process at a site. A change of a turn that is not among them is ignored.
pub struct Turns<W> {
    by_turn: ByTurn<Participant<W>>,
}

struct Participant<W> {
    waiter: W,
    state: TurnState,
}

/// The state of a turn, including a result that its task or thread has not read yet.
enum TurnState {
    Waits,
    /// It holds, and has not read this hold.
    Admitted(Arc<Hold>),
    /// It holds under the lease of this owner.
    Holds(Owner),
    /// It holds as before, and has not read why.
    Unchanged(Box<(Owner, Refusal)>),
    /// It holds until the store has answered. Its guard is gone, so nobody will read the outcome.
    Abandoned(Owner),
    /// It has not read the outcome.
    Ended(Result<Released, BackendError>),
    /// It was refused: why, unless it has read that.
    Refused(Option<Box<Refusal>>),
}

impl<W: Wake + Default> Turns<W> {
    /// A turn begins to wait.
    pub(crate) fn wait(&mut self, turn: TurnId) {
        self.by_turn.insert(turn, Participant { waiter: W::default(), state: TurnState::Waits });
    }

    /// The waiter has its turn.
    pub(crate) fn admit(&mut self, turn: TurnId, hold: Arc<Hold>) {
        self.update(turn, |_| TurnState::Admitted(hold));
    }

    /// The waiter is refused.
    pub(crate) fn refuse(&mut self, turn: TurnId, refusal: Refusal) {
        self.update(turn, |_| TurnState::Refused(Some(Box::new(refusal))));
    }

    /// The holder continues under another hold, or as before.
    pub(crate) fn replaced(&mut self, turn: TurnId, result: TurnResult) {
        self.update(turn, |state| match (state, result) {
            (TurnState::Abandoned(_), Ok(hold)) => TurnState::Abandoned(hold.lease().owner),
            (abandoned @ TurnState::Abandoned(_), Err(_)) => abandoned,
            (_, Ok(hold)) => TurnState::Admitted(hold),
            (state, Err(refusal)) => match state.owner() {
                Some(owner) => TurnState::Unchanged(Box::new((owner, refusal))),
                None => state,
            },
        });
    }

    /// The holder's leaving was carried out, or failed for now.
    pub(crate) fn end(&mut self, turn: TurnId, result: Result<Released, BackendError>) {
        match self.by_turn.get(turn) {
            Some(Participant { state: TurnState::Abandoned(_), .. }) => self.remove(turn),
            Some(_) | None => self.update(turn, |_| TurnState::Ended(result)),
        }
    }

    /// Changes the state of a turn, and wakes it.
    fn update(&mut self, turn: TurnId, change: impl FnOnce(TurnState) -> TurnState) {
        if let Some(participant) = self.by_turn.get_mut(turn) {
            participant.state = change(mem::replace(&mut participant.state, TurnState::Waits));
            participant.waiter.wake();
        }
    }

    /// Removes a turn that has ended, and wakes it.
    pub(crate) fn remove(&mut self, turn: TurnId) {
        self.by_turn.remove(turn).into_iter().for_each(|participant| participant.waiter.wake());
    }

    /// Detaches a turn from its task or thread: its outcome is discarded.
    pub(crate) fn abandon(&mut self, turn: TurnId) {
        if self.poll_end(turn).is_pending()
            && let Some(participant) = self.by_turn.get_mut(turn)
        {
            let state = mem::replace(&mut participant.state, TurnState::Waits);
            participant.state = state.owner().map_or(state, TurnState::Abandoned);
        }
    }

    /// Whether somebody will read the outcome of this turn.
    pub(crate) fn is_awaited(&self, turn: TurnId) -> bool {
        self.by_turn.get(turn).is_some_and(|participant| !matches!(participant.state, TurnState::Abandoned(_)))
    }

    /// Whether a turn still waits or holds.
    pub(crate) fn is_open(&self, turn: TurnId) -> bool {
        self.by_turn.get(turn).is_some_and(|participant| {
            matches!(participant.state, TurnState::Waits) || participant.state.owner().is_some()
        })
    }

    /// Whether the turn has ended, or has a result that was not read.
    pub fn has_update(&self, turn: TurnId) -> bool {
        let has_none =
            |state: &TurnState| matches!(state, TurnState::Waits | TurnState::Holds(_) | TurnState::Abandoned(_));
        self.by_turn.get(turn).is_none_or(|participant| !has_none(&participant.state))
    }

    /// The result of a turn, once; `None` if the turn ends without one.
    pub fn poll_result(&mut self, turn: TurnId) -> Poll<Option<TurnResult>> {
        let Some(participant) = self.by_turn.get_mut(turn) else { return Poll::Ready(None) };
        match mem::replace(&mut participant.state, TurnState::Waits) {
            TurnState::Admitted(hold) => {
                participant.state = TurnState::Holds(hold.lease().owner);
                Poll::Ready(Some(Ok(hold)))
            }
            TurnState::Unchanged(unread) => {
                let (owner, refusal) = *unread;
                participant.state = TurnState::Holds(owner);
                Poll::Ready(Some(Err(refusal)))
            }
            TurnState::Refused(refusal) => {
                participant.state = TurnState::Refused(None);
                Poll::Ready(refusal.map(|refusal| Err(*refusal)))
            }
            other @ (TurnState::Waits | TurnState::Holds(_) | TurnState::Abandoned(_)) => {
                participant.state = other;
                Poll::Pending
            }
            ended @ TurnState::Ended(_) => {
                participant.state = ended;
                Poll::Ready(None)
            }
        }
    }

    /// The outcome of a turn that leaves. Then it is not among these turns any more.
    pub fn poll_end(&mut self, turn: TurnId) -> Poll<End> {
        let Some(participant) = self.by_turn.get(turn) else { return Poll::Ready(None) };
        if participant.state.owner().is_some() {
            return Poll::Pending;
        }
        let ended = self.by_turn.remove(turn);
        Poll::Ready(ended.and_then(|participant| match participant.state {
            TurnState::Ended(result) => Some(result),
            TurnState::Waits | TurnState::Refused(_) => None,
            TurnState::Admitted(_) | TurnState::Holds(_) | TurnState::Unchanged(_) | TurnState::Abandoned(_) => None,
        }))
    }

    /// The task or thread of a turn.
    pub fn get_mut(&mut self, turn: TurnId) -> Option<&mut W> {
        self.by_turn.get_mut(turn).map(|participant| &mut participant.waiter)
    }

    /// Whether this turn waits for the answer to an action: a claim, a change of its hold, or its release.
    pub fn is_for(&self, turn: TurnId, action: &Action) -> bool {
        self.by_turn.get(turn).is_some_and(|participant| participant.state.waits_for(turn, action))
    }

    /// The turns that wait for the answer to an action, with their tasks or threads.
    pub fn for_whom(&self, action: &Action) -> impl Iterator<Item = (TurnId, &W)> {
        let these = self.by_turn.iter().filter(|(turn, participant)| participant.state.waits_for(*turn, action));
        these.map(|(turn, participant)| (turn, &participant.waiter))
    }

    /// All turns that wait or hold, with the owners of the leases of those that were admitted.
    pub(crate) fn open(&self) -> Vec<(TurnId, Option<Owner>)> {
        let these = self.by_turn.iter().filter(|(turn, _)| self.is_open(*turn));
        these.map(|(turn, participant)| (turn, participant.state.owner())).collect()
    }

    /// How many turns there are.
    pub fn len(&self) -> usize {
        self.by_turn.len()
    }

    /// Whether there are no turns.
    pub fn is_empty(&self) -> bool {
        self.by_turn.is_empty()
    }
}

impl<W> Default for Turns<W> {
    fn default() -> Self {
        Self { by_turn: ByTurn::default() }
    }
}

impl TurnState {
    /// The owner of the lease that a turn in this state holds under.
    fn owner(&self) -> Option<Owner> {
        match self {
            Self::Admitted(hold) => Some(hold.lease().owner),
            Self::Holds(owner) | Self::Abandoned(owner) => Some(*owner),
            Self::Unchanged(unread) => Some(unread.0),
            Self::Waits | Self::Ended(_) | Self::Refused(_) => None,
        }
    }

    /// Whether a turn in this state waits for the answer to an action.
    fn waits_for(&self, turn: TurnId, action: &Action) -> bool {
        let is_its_own = match action.for_whom {
            ForWhom::Turn(whose) => whose == turn,
            ForWhom::AnyWaiter => true,
            ForWhom::Nobody => false,
        };
        is_its_own
            && match (self, &action.request) {
                (Self::Waits, Request::Acquire(_)) | (Self::Refused(_), Request::Release(_)) => true,
                (Self::Waits, Request::Release(_)) | (Self::Refused(_), Request::Acquire(_)) => false,
                (_, Request::Release(_)) => true,
                (_, Request::Acquire(claim)) => claim.replaces.is_some(),
            }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_core::{Lease, LockName, Slots, Terms, TokenRange, Ttl, Width};

    use super::*;
    use crate::recorder::Ear;

    const TURN: TurnId = TurnId(1);

    fn owner(n: u8) -> Owner {
        Owner::from_random([n; 16])
    }

    fn hold(n: u8) -> Arc<Hold> {
        let (name, tokens): (LockName, _) = ("a".parse().unwrap(), TokenRange::above(6, Width::ONE).unwrap());
        let lease = Lease { name, owner: owner(n), tokens, terms: Terms::exclusive(Ttl::DEFAULT), slots: Slots::NONE };
        Arc::new(Hold::new(Arc::new(lease), tokens.low(), Moment::ORIGIN + Duration::from_secs(30), None))
    }

    /// Turns of which one holds.
    fn holding() -> Turns<Ear> {
        let mut turns = Turns::default();
        turns.wait(TURN);
        assert!(turns.poll_result(TURN).is_pending());
        turns.admit(TURN, hold(1));
        assert!(matches!(turns.poll_result(TURN), Poll::Ready(Some(Ok(_)))));
        assert!(turns.poll_result(TURN).is_pending(), "a result is read once");
        turns
    }

    #[test]
    fn the_end_of_a_turn_is_heard_once_and_a_loss_is_none() {
        let mut turns = holding();
        assert!(turns.poll_end(TURN).is_pending() && turns.is_open(TURN));
        turns.end(TURN, Ok(Released::Released));
        assert!(!turns.is_open(TURN));
        assert_eq!(turns.poll_end(TURN), Poll::Ready(Some(Ok(Released::Released))));
        assert!(turns.is_empty());
        let mut turns = holding();
        turns.remove(TURN);
        assert_eq!(turns.poll_end(TURN), Poll::Ready(None));
        assert!(matches!(turns.poll_result(TURN), Poll::Ready(None)));
    }

    #[test]
    fn an_abandoned_turn_stays_until_its_end_and_leaves_nothing() {
        let mut turns = holding();
        turns.abandon(TURN);
        turns.replaced(TURN, Ok(hold(2)));
        assert_eq!(turns.open().len(), 1);
        turns.end(TURN, Ok(Released::Released));
        assert!(turns.is_empty());
        turns.wait(TURN);
        turns.abandon(TURN);
        assert!(turns.is_empty(), "a waiter leaves at once");
    }
}
