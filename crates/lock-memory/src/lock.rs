//! One lock as the store keeps it: its holders, its queue, the limit that was set, and the tombstones of late claims.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::inspect::Entry;
use lock_core::limit::Record;
use lock_core::{FencingToken, Limit, LockName, Mode, Moment, Owner, Ttl};

use crate::holds::{Hold, Holds};
use crate::queue::Queue;

/// The shortest life of a tombstone: a late claim can be under way for longer than a very short ttl.
const TOMBSTONE_MIN: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default)]
pub(crate) struct Lock {
    pub(crate) holds: Holds,
    pub(crate) queue: Queue,
    /// The limit that was set, and until when that is kept.
    limit: Option<(Record, Moment)>,
    /// Owners that left while a claim of theirs was under way, and until when that claim is refused.
    tombstones: BTreeMap<Owner, Moment>,
}

impl Lock {
    /// Drops the holds, places and tombstones whose time is over.
    pub(crate) fn forget_what_is_over(&mut self, now: Moment) {
        self.holds.forget_what_is_over(now);
        self.queue.forget_what_is_over(now);
        self.tombstones.retain(|_, until| now < *until);
        self.limit.take_if(|(_, until)| *until <= now);
    }

    /// Refuses late claims of an owner, for as long as its lease could have lasted.
    pub(crate) fn refuse_late_claims(&mut self, now: Moment, owner: Owner, ttl: Ttl) {
        let until = self.tombstones.entry(owner).or_insert(now);
        *until = (now + ttl.get().max(TOMBSTONE_MIN)).max(*until);
    }

    pub(crate) fn was_given_up(&self, owner: Owner) -> bool {
        self.tombstones.contains_key(&owner)
    }

    /// Ends the hold that spans the token.
    pub(crate) fn end(&mut self, now: Moment, token: FencingToken) -> Option<Hold> {
        let spans = |hold: &&Hold| (hold.tokens.low()..=hold.tokens.high()).contains(&token);
        let owner = self.holds.living(now).find(spans).map(|hold| hold.owner)?;
        self.holds.remove(owner)
    }

    /// The owners that hold, and those that wait.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> {
        self.holds.owners().chain(self.queue.owners())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.holds.is_empty() && self.queue.is_empty() && self.tombstones.is_empty() && self.limit.is_none()
    }

    /// A mode in which somebody holds or waits: whatever anybody asks for must suit it.
    pub(crate) fn mode(&self) -> Option<Mode> {
        self.holds.mode().or_else(|| self.queue.first().map(|place| place.terms.mode))
    }

    /// The limit that was set, if that is not too long ago.
    pub(crate) fn record(&self) -> Option<&Record> {
        self.limit.as_ref().map(|(record, _)| record)
    }

    /// Puts a limit in force. Holders keep what they have; those who wait for more permits than that lose their places.
    pub(crate) fn set_limit(&mut self, now: Moment, limit: Limit, known: Limit) {
        let in_use = self.mode().and_then(Mode::limit);
        let record = Record::of(limit, in_use, known, self.record());
        self.holds.set_limit(limit);
        self.queue.set_limit(limit);
        self.limit = Some((record, now + Record::KEPT_FOR));
    }

    /// Whether anybody waits.
    pub(crate) fn is_wanted_at(&self, now: Moment) -> bool {
        self.queue.living(now).next().is_some()
    }

    pub(crate) fn entry_at(&self, now: Moment, name: &LockName) -> Option<Entry> {
        let holders: Vec<_> = self.holds.living(now).take(Entry::SHOWN_MAX).map(|hold| hold.shown_at(now)).collect();
        let last = holders.first()?;
        Some(Entry {
            name: name.clone(),
            holder: last.holder.clone(),
            remaining: last.remaining,
            leases: count(self.holds.count(now)),
            holders,
            waiters: count(self.queue.living(now).count()),
            queue: self.queue.living(now).take(Entry::SHOWN_MAX).map(|place| place.terms.mode).collect(),
        })
    }
}

fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
