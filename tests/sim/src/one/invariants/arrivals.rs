//! Who waits at the store, and who is overtaken by a later arrival.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::{Lease, LockName, Moment, Owner, TokenRange};

#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    lines: BTreeMap<LockName, Line>,
    /// What was granted so far.
    granted: BTreeSet<TokenRange>,
}

/// Those who wait for one lock.
#[derive(Clone, Debug, Default)]
struct Line {
    /// In the order of arrival, and until when each place lasts.
    waiting: Vec<(Owner, Moment)>,
    /// Since when somebody has waited at any time.
    since: Option<Moment>,
}

impl Arrivals {
    /// The store says that this owner has a place until then.
    pub(crate) fn queued(&mut self, now: Moment, name: &LockName, owner: Owner, until: Moment) {
        let line = self.living(now, name);
        let waiting = &mut line.waiting;
        match waiting.iter_mut().find(|(waits, _)| *waits == owner) {
            Some((_, known)) => *known = until,
            None => waiting.push((owner, until)),
        }
        line.since = line.since.or(Some(now));
    }

    fn living(&mut self, now: Moment, name: &LockName) -> &mut Line {
        let line = self.lines.entry(name.clone()).or_default();
        line.drop_places(|(_, until)| *until <= now);
        line
    }

    /// Since when somebody has waited at any time, if anybody waits.
    pub(crate) fn waited_since(&mut self, now: Moment, name: &LockName) -> Option<Moment> {
        self.living(now, name).since
    }

    /// It has left, or was told that it has no place.
    pub(crate) fn left(&mut self, name: &LockName, owner: Owner) {
        self.lines.entry(name.clone()).or_default().drop_places(|(waits, _)| *waits == owner);
    }

    /// It holds from now on. Returns whom it passed: the first of those who have waited for longer, unless it held already.
    pub(crate) fn granted(&mut self, now: Moment, lease: &Lease) -> Option<Owner> {
        let (name, owner) = (&lease.name, lease.owner);
        let is_new = self.granted.insert(lease.tokens);
        let line = self.living(now, name);
        let first = line.waiting.first().map(|(first, _)| *first);
        line.drop_places(|(waits, _)| *waits == owner);
        first.filter(|first| is_new && *first != owner)
    }
}

impl Line {
    fn drop_places(&mut self, which: impl Fn(&(Owner, Moment)) -> bool) {
        self.waiting.retain(|place| !which(place));
        self.since.take_if(|_| self.waiting.is_empty());
    }
}
