//! The entries of a lock, in the order of their creation.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_core::inspect::Held;
use lock_core::limit::Record;
use lock_core::{Claim, Holder, Limit, Mode, Note, Slots, Width};
use lock_rules::entries::{self, Decision};
use serde::{Deserialize, Serialize};

use crate::directory::{Directory, OwnerHash};
use crate::proto::{KeyValue, RangeResponse};
use crate::tokens::Base;

/// How many entries a list has at most. Chosen: that of a lock with some readers; of a long queue, the first ones decide.
pub(crate) const LISTED_MAX: i64 = 33;

/// The value of an entry. Those of other libraries have other values.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Value {
    pub(crate) owner: OwnerHash,
    /// Whether other readers may hold beside it.
    #[serde(default, skip_serializing_if = "is_false")]
    shared: bool,
    /// How many permits it takes, and the limit of the semaphore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permits: Option<(u32, u32)>,
    /// The slots of its permits, once it holds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) slots: Vec<u32>,
    /// The revision that its tokens come from: that of its creation if this is absent, and that of its latest change if this is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drawn: Option<i64>,
    /// How many tokens it has.
    pub(crate) width: usize,
    /// Who asks, for display.
    pub(crate) note: String,
    /// When it was granted, in seconds since 1970. Of a waiter, it is written when it is asked for again or renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    granted: Option<u64>,
}

impl Value {
    /// The value of an entry that waits.
    pub(crate) fn of(claim: &Claim) -> Self {
        Self {
            granted: None,
            slots: Vec::new(),
            drawn: None,
            permits: claim.terms.mode.limit().map(|limit| (claim.terms.mode.count(), limit.get())),
            owner: OwnerHash::of(claim.owner),
            shared: claim.terms.mode == Mode::Shared,
            width: usize::try_from(claim.width.get()).unwrap_or(usize::MAX),
            note: claim.note.to_wire().to_owned(),
        }
    }

    /// The value of the entry once it holds.
    pub(crate) fn granted_now(&self) -> Self {
        Self { granted: Some(now().as_secs()), ..self.clone() }
    }

    /// The value of an entry that keeps its tokens, which come from this revision, through the change that writes this.
    pub(crate) fn with_tokens_of(&self, revision: i64) -> Self {
        Self { drawn: self.drawn.map(|_| revision), ..self.clone() }
    }

    /// The value of an entry whose tokens come from the change that writes this.
    pub(crate) fn drawn_anew(&self) -> Self {
        Self { drawn: Some(0), ..self.clone() }
    }

    /// The same, with these slots, under this limit.
    pub(crate) fn granted_with(&self, slots: &[u32], limit: Option<Limit>) -> Self {
        let permits = self.permits.map(|(count, known)| (count, limit.map_or(known, Limit::get)));
        Self { slots: slots.to_vec(), permits, ..self.granted_now().drawn_anew() }
    }

    /// The value of an entry that takes the place of this one.
    pub(crate) fn replaced_by(&self, claim: &Claim) -> Self {
        let new = Self::of(claim);
        let count = usize::try_from(claim.terms.mode.count()).unwrap_or(usize::MAX);
        let slots: Vec<u32> = self.slots.iter().copied().take(count).collect();
        let has_same_kind = self.mode().kind() == claim.terms.mode.kind();
        let anew = new.granted_with(&slots, self.mode().limit());
        Self { granted: if has_same_kind { self.granted.or(anew.granted) } else { anew.granted }, ..anew }
    }

    /// The value of an entry whose lock is kept for this owner.
    pub(crate) fn kept_for(&self, owner: OwnerHash) -> Self {
        Self { owner, ..self.clone() }
    }

    pub(crate) const fn is_granted(&self) -> bool {
        self.granted.is_some()
    }

    pub(crate) fn mode(&self) -> Mode {
        match self.permits {
            Some((count, limit)) => Mode::permits(count, limit).unwrap_or(Mode::Exclusive),
            None if self.shared => Mode::Shared,
            None => Mode::Exclusive,
        }
    }

    pub(crate) fn to_wire(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn is_false(value: &bool) -> bool {
    !*value
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A version of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// The revision that created the entry.
    pub(crate) created: i64,
    /// That of its latest change.
    pub(crate) modified: i64,
}

/// An entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) version: Version,
    pub(crate) lease: i64,
    /// `None` if it belongs to another library.
    pub(crate) value: Option<Value>,
}

impl Entry {
    pub(crate) fn read(kv: &KeyValue) -> Self {
        let value = serde_json::from_slice(&kv.value).ok();
        let version = Version { created: kv.create_revision, modified: kv.mod_revision };
        Self { key: kv.key.clone(), version, lease: kv.lease, value }
    }

    /// Whether it is that of this owner.
    pub(crate) fn is_of(&self, owner: &OwnerHash) -> bool {
        self.value.as_ref().is_some_and(|value| value.owner == *owner)
    }

    /// Whether its holder is alone.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.mode() == Mode::Exclusive
    }

    pub(crate) fn mode(&self) -> Mode {
        self.value.as_ref().map_or(Mode::Exclusive, Value::mode)
    }

    /// The revision that its tokens come from.
    pub(crate) fn drawn_at(&self) -> i64 {
        match self.value.as_ref().and_then(|value| value.drawn) {
            None => self.version.created,
            Some(0) => self.version.modified,
            Some(revision) => revision,
        }
    }

    /// The slots of its permits, if it holds them.
    pub(crate) fn slots(&self) -> &[u32] {
        self.value.as_ref().map_or(&[], |value| &value.slots)
    }

    /// Its lease as it is shown.
    pub(crate) fn held(&self, base: Base) -> Held {
        let holder = self.value.as_ref().and_then(|value| {
            let tokens = base.tokens(self.drawn_at(), Width::for_waiters(value.width)).ok()?;
            Some(Holder::Leasehold { tokens, note: Note::from_wire(&value.note) })
        });
        let holder = holder.unwrap_or(Holder::Foreign);
        let granted = self.value.as_ref().and_then(|value| value.granted).map(Duration::from_secs);
        let age = granted.map(|granted| Duration::from_secs(now().saturating_sub(granted).as_secs()));
        Held { holder, mode: self.mode(), slots: Slots::new(self.slots().iter().copied()), age, remaining: None }
    }
}

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

    /// Whether this listed entry holds. One whose turn has come after a replacement does not before it has drawn higher tokens.
    pub(crate) fn holds(&self, entry: &Entry) -> bool {
        if entry.mode().limit().is_some() {
            return !entry.slots().is_empty();
        }
        entry.drawn_at() >= self.changes.floor(entry.version.created)
            && self.turn(&entry.key, entry.mode()) == Some(Turn::Granted)
    }

    /// The listed entry with this key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Whether somebody waits, as far as the list tells.
    pub(crate) fn is_wanted(&self) -> bool {
        self.entries
            .last()
            .is_some_and(|last| last.slots().is_empty() && self.turn(&last.key, last.mode()) != Some(Turn::Granted))
    }

    /// The entry that waits first.
    pub(crate) fn first_waiter(&self) -> Option<&Entry> {
        self.entries.iter().find(|entry| !self.holds(entry))
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
