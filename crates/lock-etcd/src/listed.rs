//! The entries of a lock as they were listed, and what their order means.

use lock_core::limit::Record;
use lock_core::{Limit, Mode};
use lock_rules::entries::{self, Decision};

use crate::directory::Directory;
use crate::entry::Entry;
use crate::proto::RangeResponse;
use crate::tokens::Base;

/// How many entries a list has at most. Chosen: that of a lock with some readers; of a long queue, the first ones decide.
pub(crate) const LISTED_MAX: i64 = 33;

/// What has happened to a lock that its entries do not tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    /// The limit that was set.
    pub(crate) limit: Option<Record>,
    /// The revision that did; 0 if none was set.
    pub(crate) limit_set: i64,
    /// The latest replacement of a lease, as long as entries may wait that are older.
    replaced: Option<Replaced>,
}

/// A replacement of a lease. Its tokens are higher than those of the entries that waited then.
#[derive(Clone, Copy, Debug)]
struct Replaced {
    at: i64,
    /// The revision that had created the entry that waited first.
    first_waiter: i64,
}

impl Changes {
    pub(crate) fn read(directory: &Directory, list: &RangeResponse) -> Self {
        let find = |key: Vec<u8>| list.kvs.iter().find(move |kv| kv.key == key);
        let limit = find(directory.limit());
        Self {
            limit: limit.and_then(|kv| std::str::from_utf8(&kv.value).ok()?.parse().ok()),
            limit_set: limit.map_or(0, |kv| kv.mod_revision),
            replaced: find(directory.replaced()).and_then(|kv| {
                let first_waiter = std::str::from_utf8(&kv.value).ok()?.parse().ok()?;
                Some(Replaced { at: kv.mod_revision, first_waiter })
            }),
        }
    }

    /// The revision above which the tokens of an entry have to be that was created then.
    pub(crate) fn floor(&self, created: i64) -> i64 {
        let waited = |replaced: &Replaced| (replaced.first_waiter..replaced.at).contains(&created);
        self.replaced.filter(waited).map_or(0, |replaced| replaced.at)
    }
}

/// The first entries of a lock, in their order.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) entries: Vec<Entry>,
    /// How many there are in all.
    pub(crate) count: u32,
    /// The state of the cluster that they are of.
    pub(crate) revision: i64,
    pub(crate) base: Base,
    pub(crate) changes: Changes,
}

/// What the order means for an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It holds.
    Granted,
    /// It waits at this position until one of these keys ends.
    Waits { position: u32, watched: Vec<Vec<u8>> },
}

impl Listed {
    pub(crate) fn read(list: &RangeResponse, revision: i64, base: Base) -> Self {
        let entries = list.kvs.iter().map(Entry::read).collect();
        let count = u32::try_from(list.count).unwrap_or(u32::MAX);
        Self { entries, count, revision, base, changes: Changes::default() }
    }

    /// What the order means for an entry with this key and mode. One that is not listed stands behind all that are. `None` if the list is
    /// too short to tell.
    pub(crate) fn turn(&self, key: &[u8], mode: Mode) -> Option<Turn> {
        let limit = self.under_limit(mode).limit();
        let mut all: Vec<_> = self.entries.iter().map(|listed| self.weighed(listed, mode)).collect();
        let is_listed = all.iter().any(|listed| listed.key == key);
        if !is_listed {
            all.push(entries::Entry { key: key.to_vec(), weight: entries::weight(mode), is_granted: false });
        }
        let capacity = limit.map_or(entries::WHOLE, Limit::get);
        match entries::decide(&all, &key.to_vec(), capacity) {
            Some(Decision::Waits { position, watched }) => {
                let before = if is_listed { 0 } else { self.unlisted().saturating_sub(1) };
                let watched = watched.into_iter().cloned().collect();
                Some(Turn::Waits { position: position.saturating_add(before), watched })
            }
            // Those between may be in its way.
            Some(Decision::Granted) if !is_listed && self.unlisted() > 0 => None,
            // Those behind may hold some of the permits.
            Some(Decision::Granted) if self.unlisted() > 0 && mode.limit().is_some() => None,
            Some(Decision::Granted) | None => Some(Turn::Granted),
        }
    }

    /// What an entry takes from a claim of this mode: one of another use takes all.
    fn weighed(&self, entry: &Entry, mode: Mode) -> entries::Entry<Vec<u8>> {
        let own = self.under_limit(entry.mode());
        let weight = if own.suits(self.under_limit(mode)) { entries::weight(own) } else { entries::WHOLE };
        entries::Entry { key: entry.key.clone(), weight, is_granted: !entry.slots().is_empty() }
    }

    fn unlisted(&self) -> u32 {
        self.count.saturating_sub(u32::try_from(self.entries.len()).unwrap_or(u32::MAX))
    }

    /// Whether all entries are listed.
    pub(crate) fn is_complete(&self) -> bool {
        self.unlisted() == 0
    }

    /// Whether it is the turn of this listed entry. One that has not drawn its tokens yet may find out that it does not hold.
    pub(crate) fn may_hold(&self, entry: &Entry) -> bool {
        let is_lock = entry.mode().limit().is_none();
        !entry.slots().is_empty() || is_lock && self.turn(&entry.key, entry.mode()) == Some(Turn::Granted)
    }

    /// Whether this listed entry holds. One whose turn has come after a replacement does not before it has drawn higher tokens.
    pub(crate) fn holds(&self, entry: &Entry) -> bool {
        entry.drawn_at() >= self.changes.floor(entry.version.created) && self.may_hold(entry)
    }

    /// The listed entry with this key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Whether somebody waits, as far as the list tells.
    pub(crate) fn is_wanted(&self) -> bool {
        self.entries.last().is_some_and(|last| !self.may_hold(last))
    }

    /// The entry that waits first.
    pub(crate) fn first_waiter(&self) -> Option<&Entry> {
        self.entries.iter().find(|entry| !self.may_hold(entry))
    }

    /// Whether another client has written an entry of the same owner before the one with this key.
    pub(crate) fn is_second(&self, key: &[u8]) -> bool {
        let Some(at) = self.entries.iter().position(|entry| entry.key == key) else { return false };
        let owner = |entry: &Entry| entry.value.as_ref().map(|value| value.owner.clone());
        self.entries.iter().take(at).any(|earlier| owner(earlier) == owner(&self.entries[at]))
    }

    /// What the first entry uses the lock as.
    pub(crate) fn first_mode(&self) -> Option<Mode> {
        self.first().map(|first| self.under_limit(first.mode()))
    }

    /// This mode under the limit that was set.
    pub(crate) fn under_limit(&self, mode: Mode) -> Mode {
        self.changes.limit.as_ref().map_or(mode, |record| mode.under(record.limit()))
    }

    /// The first entry.
    pub(crate) fn first(&self) -> Option<&Entry> {
        self.entries.first()
    }
}
