//! Those who wait or hold at a site, and what each of them is told.

use std::mem;
use std::task::Poll;

use lock_core::station::{Action, ByTurn, ForWhom, Request, TurnId};
use lock_core::{BackendError, Hold, Moment, Owner, Refusal, Released};

use crate::sleepers::Wake;
use crate::sync::Arc;

/// The station's answer to a waiter, or to a holder that wants another mode.
pub type Verdict = Result<Arc<Hold>, Refusal>;

/// The store's answer to the end of a hold; `None` if the hold had already been lost.
pub type End = Option<Result<Released, BackendError>>;

/// Those who wait or hold at a site, with what a facade keeps about them.
pub trait Waiters: Default + Send + 'static {
    /// A task or a thread, for as long as its turn lasts. It is woken when there is something to hear.
    type Waiter: Wake + Default;

    /// The turns of this process.
    fn turns(&mut self) -> &mut Turns<Self::Waiter>;

    /// When to call [`Driver::attend`](crate::Driver::attend) at the latest, if nothing happens before.
    fn next_wake(&self, _now: Moment) -> Option<Moment> {
        None
    }
}

/// The turns of this process at a site. News of a turn that is not among them is ignored.
pub struct Turns<W> {
    by_turn: ByTurn<Participant<W>>,
}

struct Participant<W> {
    waiter: W,
    part: Part,
}

/// The part that a turn plays for the lock, up to what it has heard of it.
enum Part {
    Waits,
    /// It holds, and has not heard of this hold.
    Admitted(Arc<Hold>),
    /// It holds under the lease of this owner.
    Holds(Owner),
    /// It holds as before, and has not heard why.
    Unchanged(Box<(Owner, Refusal)>),
    /// It holds until the store has answered. Its guard is gone, so that nobody will hear of the end.
    Abandoned(Owner),
    /// It has not heard of the end.
    Ended(Result<Released, BackendError>),
    /// It was refused: why, unless it has heard that.
    Refused(Option<Box<Refusal>>),
}

impl<W: Wake + Default> Turns<W> {
    /// A turn begins to wait.
    pub(crate) fn wait(&mut self, turn: TurnId) {
        self.by_turn.insert(turn, Participant { waiter: W::default(), part: Part::Waits });
    }

    /// The waiter has its turn.
    pub(crate) fn admit(&mut self, turn: TurnId, hold: Arc<Hold>) {
        self.tell(turn, |_| Part::Admitted(hold));
    }

    /// The waiter is refused.
    pub(crate) fn refuse(&mut self, turn: TurnId, refusal: Refusal) {
        self.tell(turn, |_| Part::Refused(Some(Box::new(refusal))));
    }

    /// The holder goes on under another hold, or as before.
    pub(crate) fn replaced(&mut self, turn: TurnId, result: Verdict) {
        self.tell(turn, |part| match (part, result) {
            (Part::Abandoned(_), Ok(hold)) => Part::Abandoned(hold.lease().owner),
            (abandoned @ Part::Abandoned(_), Err(_)) => abandoned,
            (_, Ok(hold)) => Part::Admitted(hold),
            (part, Err(refusal)) => match part.owner() {
                Some(owner) => Part::Unchanged(Box::new((owner, refusal))),
                None => part,
            },
        });
    }

    /// The holder's leaving was carried out, or failed for now.
    pub(crate) fn end(&mut self, turn: TurnId, result: Result<Released, BackendError>) {
        match self.by_turn.get(turn) {
            Some(Participant { part: Part::Abandoned(_), .. }) => self.remove(turn),
            Some(_) | None => self.tell(turn, |_| Part::Ended(result)),
        }
    }

    /// Gives a turn another part, and wakes it.
    fn tell(&mut self, turn: TurnId, change: impl FnOnce(Part) -> Part) {
        if let Some(participant) = self.by_turn.get_mut(turn) {
            participant.part = change(mem::replace(&mut participant.part, Part::Waits));
            participant.waiter.wake();
        }
    }

    /// Takes out a turn that is over: it will not be told anything.
    pub(crate) fn remove(&mut self, turn: TurnId) {
        self.by_turn.remove(turn).into_iter().for_each(|participant| participant.waiter.wake());
    }

    /// Nobody will hear of this turn from now on.
    pub(crate) fn abandon(&mut self, turn: TurnId) {
        if self.poll_end(turn).is_pending()
            && let Some(participant) = self.by_turn.get_mut(turn)
        {
            let part = mem::replace(&mut participant.part, Part::Waits);
            participant.part = part.owner().map_or(part, Part::Abandoned);
        }
    }

    /// Whether somebody will hear of the end of this turn.
    pub(crate) fn is_awaited(&self, turn: TurnId) -> bool {
        self.by_turn.get(turn).is_some_and(|participant| !matches!(participant.part, Part::Abandoned(_)))
    }

    /// Whether a turn still waits or holds.
    pub(crate) fn is_open(&self, turn: TurnId) -> bool {
        self.by_turn
            .get(turn)
            .is_some_and(|participant| matches!(participant.part, Part::Waits) || participant.part.owner().is_some())
    }

    /// Whether the turn has ended or has news that it has not read.
    pub fn has_news(&self, turn: TurnId) -> bool {
        let has_none = |part: &Part| matches!(part, Part::Waits | Part::Holds(_) | Part::Abandoned(_));
        self.by_turn.get(turn).is_none_or(|participant| !has_none(&participant.part))
    }

    /// The verdict on a turn, once it was told; `None` if the turn ends without one.
    pub fn poll_verdict(&mut self, turn: TurnId) -> Poll<Option<Verdict>> {
        let Some(participant) = self.by_turn.get_mut(turn) else { return Poll::Ready(None) };
        match mem::replace(&mut participant.part, Part::Waits) {
            Part::Admitted(hold) => {
                participant.part = Part::Holds(hold.lease().owner);
                Poll::Ready(Some(Ok(hold)))
            }
            Part::Unchanged(told) => {
                let (owner, refusal) = *told;
                participant.part = Part::Holds(owner);
                Poll::Ready(Some(Err(refusal)))
            }
            Part::Refused(refusal) => {
                participant.part = Part::Refused(None);
                Poll::Ready(refusal.map(|refusal| Err(*refusal)))
            }
            other @ (Part::Waits | Part::Holds(_) | Part::Abandoned(_)) => {
                participant.part = other;
                Poll::Pending
            }
            ended @ Part::Ended(_) => {
                participant.part = ended;
                Poll::Ready(None)
            }
        }
    }

    /// The end of a turn that leaves, once it was told. Then it is not among these turns any more.
    pub fn poll_end(&mut self, turn: TurnId) -> Poll<End> {
        let Some(participant) = self.by_turn.get(turn) else { return Poll::Ready(None) };
        if participant.part.owner().is_some() {
            return Poll::Pending;
        }
        let ended = self.by_turn.remove(turn);
        Poll::Ready(ended.and_then(|participant| match participant.part {
            Part::Ended(result) => Some(result),
            Part::Waits | Part::Refused(_) => None,
            Part::Admitted(_) | Part::Holds(_) | Part::Unchanged(_) | Part::Abandoned(_) => None,
        }))
    }

    /// The task or thread of a turn.
    pub fn get_mut(&mut self, turn: TurnId) -> Option<&mut W> {
        self.by_turn.get_mut(turn).map(|participant| &mut participant.waiter)
    }

    /// Whether this turn waits for the answer to an action: a claim, a change of its hold, or its release.
    pub fn is_for(&self, turn: TurnId, action: &Action) -> bool {
        self.by_turn.get(turn).is_some_and(|participant| participant.part.waits_for(turn, action))
    }

    /// The turns that wait for the answer to an action, with their tasks or threads.
    pub fn for_whom(&self, action: &Action) -> impl Iterator<Item = (TurnId, &W)> {
        let these = self.by_turn.iter().filter(|(turn, participant)| participant.part.waits_for(*turn, action));
        these.map(|(turn, participant)| (turn, &participant.waiter))
    }

    /// All turns that wait or hold, with the owners of the leases of those that were admitted.
    pub(crate) fn open(&self) -> Vec<(TurnId, Option<Owner>)> {
        let these = self.by_turn.iter().filter(|(turn, _)| self.is_open(*turn));
        these.map(|(turn, participant)| (turn, participant.part.owner())).collect()
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

impl Part {
    /// The owner of the lease that a turn of this part holds under.
    fn owner(&self) -> Option<Owner> {
        match self {
            Self::Admitted(hold) => Some(hold.lease().owner),
            Self::Holds(owner) | Self::Abandoned(owner) => Some(*owner),
            Self::Unchanged(told) => Some(told.0),
            Self::Waits | Self::Ended(_) | Self::Refused(_) => None,
        }
    }

    /// Whether a turn of this part waits for the answer to an action.
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
        assert!(turns.poll_verdict(TURN).is_pending());
        turns.admit(TURN, hold(1));
        assert!(matches!(turns.poll_verdict(TURN), Poll::Ready(Some(Ok(_)))));
        assert!(turns.poll_verdict(TURN).is_pending(), "a verdict is heard once");
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
        assert!(matches!(turns.poll_verdict(TURN), Poll::Ready(None)));
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
