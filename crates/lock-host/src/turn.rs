//! A turn of this process at a site, and what its guard holds.

use std::fmt;
use std::ops::Deref;

use lock_core::station::TurnId;
use lock_core::{Hold, Lost};

use crate::inquiry::Inquiry;
use crate::proof::Proof;
use crate::site::{Driver, Site};
use crate::stations::Stations;
use crate::sync::Arc;

/// A turn of this process at a site. Dropping it leaves the line, or ends the hold.
pub struct Turn<D: Driver> {
    site: Arc<Site<D>>,
    id: TurnId,
}

impl<D: Driver> Turn<D> {
    pub(crate) fn new(site: Arc<Site<D>>, id: TurnId) -> Self {
        Self { site, id }
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

    /// Begins to ask the store about the hold.
    ///
    /// # Errors
    /// `Lost` where the hold is over already.
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
