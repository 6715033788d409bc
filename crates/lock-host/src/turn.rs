//! A turn of this process at a site, and what its guard holds.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

use lock_core::station::{Input, Leaving, TurnId};
use lock_core::{
    Ability, BackendError, Busy, FencingToken, Hold, Invalid, LossReason, Lost, Mode, Refusal, Released, Terms, Ticket,
};

use crate::clock::SharedClock;
use crate::errors::{ChangeError, HoldError, Unchanged};
use crate::hold_call::HoldCall;
use crate::kinds::{AnyKind, Exclusive, Permits};
use crate::proof::Proof;
use crate::site::{Driver, Locked, Site};
use crate::stations::Stations;
use crate::sync::Arc;
use crate::waiters::{End, TurnResult, Waiters};
use crate::weak::WeakHeld;

/// A turn of this process at a site. Dropping it leaves the wait queue, or ends the hold.
pub struct Turn<D: Driver> {
    site: Arc<Site<D>>,
    id: TurnId,
    /// Whether the end of the turn is known, so that nothing is left to do.
    is_over: bool,
}

impl<D: Driver> Turn<D> {
    pub(crate) fn new(site: Arc<Site<D>>, id: TurnId) -> Self {
        Self { site, id, is_over: false }
    }

    /// Where it is.
    pub fn site(&self) -> &Arc<Site<D>> {
        &self.site
    }

    /// Which one it is.
    pub fn id(&self) -> TurnId {
        self.id
    }
}

impl<D: Driver> Drop for Turn<D> {
    fn drop(&mut self) {
        if !self.is_over {
            D::leave(&self.site, self.id);
        }
    }
}

/// A turn that has its hold: what a guard of any kind is made of. Derefs to the [`Proof`].
pub struct Held<D: Driver, M = Exclusive> {
    turn: Turn<D>,
    proof: Proof,
    /// Keeps the client alive: its keeper finds the site through them.
    stations: Arc<Stations<D>>,
    marker: PhantomData<fn() -> M>,
}

impl<D: Driver, M> Held<D, M> {
    pub(crate) fn new(turn: Turn<D>, hold: Arc<Hold>, stations: Arc<Stations<D>>) -> Self {
        let proof = Proof::new(hold, SharedClock::clone(&stations.context().clock));
        Self { turn, proof, stations, marker: PhantomData }
    }

    /// The same hold, of whatever kind.
    #[must_use]
    pub fn into_any(self) -> Held<D, AnyKind> {
        let Self { turn, proof, stations, .. } = self;
        Held { turn, proof, stations, marker: PhantomData }
    }

    /// Where it is held.
    pub fn site(&self) -> &Arc<Site<D>> {
        &self.turn.site
    }

    /// The turn that holds.
    pub fn turn(&self) -> TurnId {
        self.turn.id
    }

    /// What the station knows of the hold.
    pub fn hold(&self) -> &Hold {
        Proof::hold(&self.proof)
    }

    /// The outcome of ending the turn, which is over.
    ///
    /// # Errors
    /// `Lost` if the hold was lost, `Backend` if the store failed.
    pub fn ended(mut self, answer: End) -> Result<(), HoldError> {
        self.turn.is_over = true;
        match answer {
            Some(Ok(Released::Released)) => Ok(()),
            Some(Ok(Released::Left | Released::NotHeld)) => Err(self.lost_to(LossReason::NotHeld).into()),
            Some(Err(error)) => Err(error.into()),
            None => Err(self.loss().into()),
        }
    }

    /// Asks for another mode. The turn gets the result, or ends if the hold is lost first.
    pub fn change(&self, mode: Mode) -> Locked<'_, D> {
        let terms = Terms { mode, ttl: self.hold().lease().terms.ttl };
        let mut inner = self.site().lock();
        if inner.waiters.turns().is_open(self.turn.id) {
            self.site().feed(&mut inner, Input::Replace { turn: self.turn.id, terms });
        }
        inner
    }

    /// The outcome of that: the turn continues under the new hold, or as before.
    ///
    /// # Errors
    /// The guard that is left, and the reason.
    pub fn changed<N, G>(
        self,
        result: Option<TurnResult>,
        guard: impl FnOnce(Self) -> G,
    ) -> Result<Held<D, N>, ChangeError<G>> {
        let reason = match result {
            Some(Ok(hold)) => {
                let Self { turn, proof, stations, .. } = self;
                return Ok(Held { turn, proof: proof.under(hold), stations, marker: PhantomData });
            }
            Some(Err(Refusal::Busy { holder })) => Busy { name: self.name().clone(), holder }.into(),
            Some(Err(Refusal::Error(error))) => error.into(),
            None => self.loss().into(),
        };
        Err(ChangeError::new(guard(self), reason))
    }

    /// Refuses to detach the lease where nobody could adopt it.
    ///
    /// # Errors
    /// `Backend` if the store cannot replace leases.
    pub fn can_be_adopted(&self) -> Result<(), HoldError> {
        Ok(self.site().context().policy.store.check_ability(Ability::Replace)?)
    }

    /// Ends the turn and leaves its lease at the store, if it could be renewed before.
    ///
    /// # Errors
    /// The guard that is left, and the reason.
    pub fn detached<G>(
        self,
        renewed: Result<(), HoldError>,
        guard: impl FnOnce(Self) -> G,
    ) -> Result<Ticket, ChangeError<G>> {
        let reason = match renewed {
            Ok(()) => {
                self.site().handle(Input::Detach(self.turn.id));
                let hold = self.hold();
                match hold.lost() {
                    Some(lost) => lost.into(),
                    None if hold.is_given_up() => return Ok(Ticket::new(hold.lease(), self.remaining())),
                    None => Unchanged::Shared,
                }
            }
            Err(HoldError::Lost(lost)) => lost.into(),
            Err(HoldError::Backend(error)) => Unchanged::Refused(error.into()),
        };
        Err(ChangeError::new(guard(self), reason))
    }

    /// Why the hold was lost.
    fn loss(&self) -> Lost {
        self.hold().lost().unwrap_or_else(|| self.lost_to(LossReason::Closed))
    }

    fn lost_to(&self, reason: LossReason) -> Lost {
        Lost { name: self.name().clone(), token: self.fencing_token(), reason }
    }

    /// A handle that sees the end of the hold and does not keep it.
    pub fn downgrade(&self) -> WeakHeld<D> {
        WeakHeld::new(&self.turn.site, self.turn.id, Arc::clone(Proof::hold(&self.proof)))
    }

    /// Begins to ask the store about the hold.
    ///
    /// # Errors
    /// `Lost` if the hold has already ended.
    pub fn hold_call(&self) -> Result<HoldCall<'_, D>, Lost> {
        HoldCall::new(self.site(), &self.proof)
    }
}

impl<D: Driver, M> Deref for Held<D, M> {
    type Target = Proof;

    fn deref(&self) -> &Proof {
        &self.proof
    }
}

impl<D: Driver, M> fmt::Debug for Held<D, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.proof.fmt(f)
    }
}

impl<D: Driver> Held<D, Permits> {
    /// The numbers of the permits, ascending. Each is unique among the living holders.
    pub fn slots(&self) -> &[u32] {
        self.hold().lease().slots.get()
    }

    /// The permits, and the token of each.
    pub fn tokens(&self) -> impl Iterator<Item = (u32, FencingToken)> {
        let tokens = self.hold().lease().tokens;
        (0..).zip(self.slots()).filter_map(move |(index, slot)| Some((*slot, tokens.nth(index)?)))
    }

    /// The mode that is left when this many permits are given back.
    ///
    /// # Errors
    /// `Invalid` for none and for all of them.
    pub fn without(&self, count: u32) -> Result<Mode, Refusal> {
        let mode = self.hold().lease().terms.mode;
        let left = if (1..mode.count()).contains(&count) {
            mode.with_count(mode.count() - count)
        } else {
            let problem = format!("the guard has {}", mode.count());
            Err(Invalid::new(
                "number of permits",
                count,
                problem,
                "give back fewer, at least one, or release the guard",
            ))
        };
        left.map_err(|invalid| Refusal::Error(invalid.into()))
    }
}

impl<D: Driver> Held<D, Exclusive> {
    /// The end of the turn after which the store keeps the lock for this time.
    ///
    /// # Errors
    /// `Unsupported` if the store cannot do that.
    pub fn keeping(&self, time: Duration) -> Result<Leaving, BackendError> {
        let keep = self.site().context().policy.store.keep(time)?;
        Ok(Leaving { turn: self.turn.id, keep: Some(keep) })
    }

    /// From now on, the store is to keep the lock for this time, however the turn ends.
    ///
    /// # Errors
    /// `Unsupported` if the store cannot do that.
    pub fn keep_at_least(&self, time: Duration) -> Result<(), BackendError> {
        let keep = self.site().context().policy.store.keep(time)?;
        self.site().keep_at_least(self.turn.id, keep);
        Ok(())
    }
}
