//! Nobody is overtaken by a later arrival at the store.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::{Lease, LockName, Moment, Owner, TokenRange};

#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Who waits at the store, in the order of arrival, and until when each place lasts.
    waiting: BTreeMap<LockName, Vec<(Owner, Moment)>>,
    /// What was granted so far.
    granted: BTreeSet<TokenRange>,
}

impl Arrivals {
    /// The store says that this owner has a place until then.
    pub(crate) fn queued(&mut self, now: Moment, name: &LockName, owner: Owner, until: Moment) {
        let waiting = self.living(now, name);
        match waiting.iter_mut().find(|(waits, _)| *waits == owner) {
            Some((_, known)) => *known = until,
            None => waiting.push((owner, until)),
        }
    }

    fn living(&mut self, now: Moment, name: &LockName) -> &mut Vec<(Owner, Moment)> {
        let waiting = self.waiting.entry(name.clone()).or_default();
        waiting.retain(|(_, until)| now < *until);
        waiting
    }

    /// It has left, or was told that it has no place.
    pub(crate) fn left(&mut self, name: &LockName, owner: Owner) {
        self.waiting.entry(name.clone()).or_default().retain(|(waits, _)| *waits != owner);
    }

    /// It holds from now on: nobody may have come before it, unless it held already, or replaces a lease.
    pub(crate) fn granted(&mut self, now: Moment, lease: &Lease, replaces: Option<Owner>) -> Result<(), String> {
        let (name, owner) = (&lease.name, lease.owner);
        let is_new = self.granted.insert(lease.tokens) && replaces.is_none();
        let waiting = self.living(now, name);
        let first = waiting.first().map(|(first, _)| *first);
        waiting.retain(|(waits, _)| *waits != owner);
        match first.filter(|first| is_new && *first != owner) {
            Some(first) => Err(format!("{owner:?} was served, and {first:?} has waited for longer at {name}")),
            None => Ok(()),
        }
    }
}
