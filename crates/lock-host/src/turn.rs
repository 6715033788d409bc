//! A turn of this process at a site, and what its guard holds.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

use lock_core::station::{Input, Leaving, TurnId};
use lock_core::{BackendError, Busy, FencingToken, Hold, Invalid, LossReason, Lost, Mode, Refusal, Released, Terms};

use crate::cancel::Watch;
use crate::errors::{ChangeError, ReleaseError};
use crate::inquiry::Inquiry;
use crate::kinds::{Exclusive, Permits};
use crate::proof::Proof;
use crate::site::{Driver, Site};
use crate::stations::Stations;
use crate::sync::{Arc, Weak};

/// A turn of this process at a site. Dropping it leaves the line, or ends the hold.
pub struct Turn<D: Driver> {
    site: Arc<Site<D>>,
    id: TurnId,
    /// What may cancel it while it waits.
    pub(crate) watch: Option<Watch>,
}

impl<D: Driver> Turn<D> {
    pub(crate) fn new(site: Arc<Site<D>>, id: TurnId) -> Self {
        Self { site, id, watch: None }
    }

    /// Where it is.
    pub fn site(&self) -> &Site<D> {
        &self.site
    }

    /// Which one it is.
    pub fn id(&self) -> TurnId {
        self.id
    }
}

impl<D: Driver> Drop for Turn<D> {
    fn drop(&mut self) {
        D::leave(&self.site, self.id);
    }
}

/// A turn that has its hold: what a guard of any kind is made of. Derefs to the [`Proof`].
pub struct Held<D: Driver, M = Exclusive> {
    turn: Turn<D>,
    proof: Proof,
    marker: PhantomData<fn() -> M>,
}

impl<D: Driver, M> Held<D, M> {
    /// The proof keeps the stations alive, because the keeper finds the site through them.
    pub(crate) fn new(turn: Turn<D>, hold: Arc<Hold>, stations: Arc<Stations<D>>) -> Self {
        Self { turn, proof: Proof::new(hold, stations), marker: PhantomData }
    }

    /// Where it is held.
    pub fn site(&self) -> &Site<D> {
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

    /// The outcome of ending the turn. `answer` is the store's; `None` if the hold had already been lost.
    ///
    /// # Errors
    /// `Lost` if the hold was lost, `Backend` if the store failed.
    pub fn ended(&self, answer: Option<Result<Released, BackendError>>) -> Result<(), ReleaseError> {
        match answer {
            Some(Ok(Released::Released)) => Ok(()),
            Some(Ok(Released::Left | Released::NotHeld)) => Err(self.lost_to(LossReason::NotHeld).into()),
            Some(Err(error)) => Err(error.into()),
            None => Err(self.loss().into()),
        }
    }

    /// The wish to go on in this mode.
    pub fn change(&self, mode: Mode) -> Input {
        Input::Replace { turn: self.turn.id, terms: Terms { mode, ttl: self.hold().lease().terms.ttl } }
    }

    /// The outcome of that wish: the turn goes on under the new hold, or as before. `verdict` is the station's; `None` if the
    /// hold was lost first.
    ///
    /// # Errors
    /// The guard that is left, and the reason.
    pub fn changed<N, G>(
        self,
        verdict: Option<Result<Arc<Hold>, Refusal>>,
        guard: impl FnOnce(Self) -> G,
    ) -> Result<Held<D, N>, ChangeError<G>> {
        let reason = match verdict {
            Some(Ok(hold)) => {
                return Ok(Held { turn: self.turn, proof: self.proof.under(hold), marker: PhantomData });
            }
            Some(Err(Refusal::Busy { holder })) => Busy { name: self.name().clone(), holder }.into(),
            Some(Err(Refusal::Error(error))) => error.into(),
            None => self.loss().into(),
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
        WeakHeld {
            site: Arc::downgrade(&self.turn.site),
            turn: self.turn.id,
            hold: Arc::clone(Proof::hold(&self.proof)),
        }
    }

    /// Begins to ask the store about the hold.
    ///
    /// # Errors
    /// `Lost` if the hold has already ended.
    pub fn inquire(&self) -> Result<Inquiry<'_, D>, Lost> {
        Inquiry::new(self.site(), &self.proof)
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
    /// How the turn ends if the store is to keep the lock for this time after it.
    ///
    /// # Errors
    /// `Unsupported` if the store cannot do that.
    pub fn keeping(&self, time: Duration) -> Result<Leaving, BackendError> {
        let keep = self.site().ports().policy.store.keep(time)?;
        Ok(Leaving { turn: self.turn.id, keep: Some(keep) })
    }
}

/// Sees the end of a hold. Keeps neither the hold nor the client.
pub struct WeakHeld<D: Driver> {
    site: Weak<Site<D>>,
    turn: TurnId,
    hold: Arc<Hold>,
}

/// How a hold stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is held, and ends after this time unless it is renewed.
    Held(Duration),
    /// It was lost before its guard ended it.
    Lost(Lost),
    /// Its guard has ended it.
    GivenUp,
}

impl<D: Driver> WeakHeld<D> {
    /// Where it is held; `None` once the client is gone, which is after the hold has ended.
    pub fn site(&self) -> Option<Arc<Site<D>>> {
        self.site.upgrade()
    }

    /// The turn that holds or held.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// What the station knows of the hold, which may have changed its mode since.
    fn hold(&self) -> &Hold {
        self.hold.latest()
    }

    /// Why the hold was lost, if it was.
    pub fn lost(&self) -> Option<Lost> {
        self.hold().lost()
    }

    /// Whether the hold was lost, or its guard has ended it.
    pub fn has_ended(&self) -> bool {
        let hold = self.hold();
        hold.lost().is_some() || hold.is_given_up() || self.site.strong_count() == 0
    }

    /// How the hold stands. At the deadline this ticks the station, so that the hold is lost even if the alarms
    /// are late.
    pub fn standing(&self, site: &Site<D>) -> Standing {
        let remaining = || self.hold().remaining(site.ports().clock.now());
        if !self.has_ended() && remaining().is_zero() {
            site.handle(Input::Tick);
        }
        match self.hold().lost() {
            Some(lost) => Standing::Lost(lost),
            None if self.has_ended() => Standing::GivenUp,
            None => Standing::Held(remaining()),
        }
    }
}

impl<D: Driver> Clone for WeakHeld<D> {
    fn clone(&self) -> Self {
        Self { site: Weak::clone(&self.site), turn: self.turn, hold: Arc::clone(&self.hold) }
    }
}

impl<D: Driver> fmt::Debug for WeakHeld<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hold = self.hold();
        f.debug_struct("WeakHeld")
            .field("name", &hold.lease().name)
            .field("token", &hold.token())
            .finish_non_exhaustive()
    }
}
