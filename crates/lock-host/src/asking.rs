//! Asking for a lock, up to the proof that it is held.

use lock_core::station::Join;
use lock_core::{AcquireError, Hold, LockName, LockOptions, Note, Patience, Refusal, Terms};

use crate::errors::no_randomness;
use crate::host::note;
use crate::proof::Proof;
use crate::site::{Driver, Site};
use crate::spec::Spec;
use crate::stations::Stations;
use crate::sync::Arc;

/// One call that asks for a lock: all that is known before the first wait.
pub struct Asking<D: Driver> {
    stations: Arc<Stations<D>>,
    site: Arc<Site<D>>,
    name: LockName,
    options: LockOptions,
    note: Note,
    patience: Patience,
}

impl<D: Driver> Asking<D> {
    /// Begins to ask. The wait that the options set begins now.
    ///
    /// # Errors
    /// `Invalid` for a name or an option that is not valid; `Backend` where the system's random source fails.
    pub fn new(stations: &Arc<Stations<D>>, spec: &Spec) -> Result<Self, AcquireError> {
        let (name, options) = spec.checked()?;
        let patience = options.patience(stations.ports().clock.now());
        let note = note(&options.why)?;
        let site = stations.site(&name).map_err(no_randomness)?;
        Ok(Self { stations: Arc::clone(stations), site, name, options, note, patience })
    }

    /// Takes the first answer of the store, whatever wait was set.
    #[must_use]
    pub fn at_once(mut self) -> Self {
        self.patience = Patience::Never;
        self
    }

    /// The stations of the client, for the turn to keep alive.
    pub fn stations(&self) -> &Arc<Stations<D>> {
        &self.stations
    }

    /// Where to wait.
    pub fn site(&self) -> &Arc<Site<D>> {
        &self.site
    }

    /// A turn to join the line with: another one each time.
    ///
    /// # Errors
    /// The system's random source failing.
    pub fn join(&self) -> Result<Join, Refusal> {
        let ports = self.site.ports();
        let turn = ports.next_turn();
        let owner = ports.owners.draw(&turn).map_err(|error| Refusal::Error(no_randomness(error)))?;
        let LockOptions { ttl, max_hold, .. } = self.options;
        Ok(Join {
            turn,
            owner,
            terms: Terms::exclusive(ttl),
            patience: self.patience,
            max_hold,
            note: self.note.clone(),
        })
    }

    /// Proof of the hold that the station gave, tested a last time. `None` where this process was away for so long that
    /// the hold is over: it was lost, and the line is to be joined again.
    pub fn proof(&self, hold: Arc<Hold>) -> Option<Proof> {
        let proof = Proof::new(hold, Arc::clone(&self.site.ports().clock));
        proof.check().is_ok().then_some(proof)
    }

    /// What a call that waits answers.
    ///
    /// # Errors
    /// The refusal.
    pub fn waited<G>(self, result: Result<G, Refusal>) -> Result<G, AcquireError> {
        result.map_err(|refusal| match refusal {
            Refusal::Busy { holder } => {
                AcquireError::TimedOut { name: self.name, waited: std::time::Duration::ZERO, holder }
            }
            Refusal::Error(error) => error,
        })
    }

    /// What a call that does not wait answers: being busy is no error.
    ///
    /// # Errors
    /// The refusal, where it is one.
    pub fn tried<G>(self, result: Result<G, Refusal>) -> Result<Option<G>, AcquireError> {
        match result {
            Ok(guard) => Ok(Some(guard)),
            Err(Refusal::Busy { .. }) => Ok(None),
            Err(Refusal::Error(error)) => Err(error),
        }
    }
}
