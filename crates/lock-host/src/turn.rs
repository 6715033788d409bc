//! A turn of this process at a site, and what its guard holds.

use std::fmt;
use std::ops::Deref;

use lock_core::station::TurnId;
use lock_core::{BackendError, Hold, LossReason, Lost, ReleaseError, Released};

use crate::cancel::Watch;
use crate::inquiry::Inquiry;
use crate::proof::Proof;
use crate::site::{Driver, Site};
use crate::stations::Stations;
use crate::sync::Arc;

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
pub struct Held<D: Driver> {
    turn: Turn<D>,
    proof: Proof,
}

impl<D: Driver> Held<D> {
    /// The proof keeps the stations alive, because the keeper finds the site through them.
    pub(crate) fn new(turn: Turn<D>, hold: Arc<Hold>, stations: Arc<Stations<D>>) -> Self {
        Self { turn, proof: Proof::new(hold, stations) }
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
        let lost = |reason| Lost { name: self.name().clone(), token: self.fencing_token(), reason };
        match answer {
            Some(Ok(Released::Released)) => Ok(()),
            Some(Ok(Released::Left | Released::NotHeld)) => Err(lost(LossReason::NotHeld).into()),
            Some(Err(error)) => Err(error.into()),
            None => Err(self.hold().lost().unwrap_or_else(|| lost(LossReason::Closed)).into()),
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

impl<D: Driver> Deref for Held<D> {
    type Target = Proof;

    fn deref(&self) -> &Proof {
        &self.proof
    }
}

impl<D: Driver> fmt::Debug for Held<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.proof.fmt(f)
    }
}
