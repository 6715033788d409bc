//! The entries of this client in one session, by owner.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lock_core::{BackendError, Claim, LockName, Owner};
use lock_rules::given_up;

use crate::claim::SharedPlace;
use crate::error::BACKEND;
use crate::place::Place;

/// How long a claim that was given up is refused. Chosen: far longer than any call of a client lasts.
const REFUSED_FOR: Duration = Duration::from_secs(600);

/// The places of one session.
#[derive(Default)]
pub(crate) struct Entries(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    places: HashMap<(LockName, Owner), SharedPlace>,
    /// Owners whose late claims are refused, and since when.
    given_up: Vec<(Instant, Owner)>,
}

impl Entries {
    /// The place of a claim, which is made if it is not there.
    pub(crate) fn place(&self, claim: &Claim, new: impl FnOnce() -> Place) -> Result<SharedPlace, BackendError> {
        let mut inner = self.lock();
        if inner.given_up.iter().any(|(_, owner)| *owner == claim.owner) {
            return Err(given_up(BACKEND));
        }
        Ok(inner.places.entry((claim.name.clone(), claim.owner)).or_insert_with(|| SharedPlace::new(new())).clone())
    }

    /// The place of an owner at a lock, if it has one.
    pub(crate) fn of(&self, name: &LockName, owner: Owner) -> Option<SharedPlace> {
        self.lock().places.get(&(name.clone(), owner)).cloned()
    }

    /// Refuses what arrives late of an owner.
    pub(crate) fn refuse(&self, owner: Owner) {
        let (mut inner, now) = (self.lock(), Instant::now());
        inner.given_up.retain(|(since, _)| *since + REFUSED_FOR > now);
        inner.given_up.push((now, owner));
    }

    /// Forgets an owner that has nothing any more at this lock.
    pub(crate) fn forget(&self, name: &LockName, owner: Owner) {
        self.lock().places.remove(&(name.clone(), owner));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
