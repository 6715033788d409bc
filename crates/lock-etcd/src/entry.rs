//! The entries of a lock, in the order of their creation.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_core::inspect::Held;
use lock_core::{Claim, Holder, Limit, Mode, Note, Slots, Width};
use lock_rules::entries::{self, Decision};
use serde::{Deserialize, Serialize};

use crate::directory::OwnerHash;
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

    /// The same, with these slots.
    pub(crate) fn granted_with(&self, slots: &[u32]) -> Self {
        Self { slots: slots.to_vec(), ..self.granted_now() }
    }

    pub(crate) const fn is_granted(&self) -> bool {
        self.granted.is_some()
    }

    fn mode(&self) -> Mode {
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

/// An entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) created: i64,
    modified: i64,
    pub(crate) lease: i64,
    /// `None` if it belongs to another library.
    pub(crate) value: Option<Value>,
}

impl Entry {
    pub(crate) fn read(kv: &KeyValue) -> Self {
        let value = serde_json::from_slice(&kv.value).ok();
        Self { key: kv.key.clone(), created: kv.create_revision, modified: kv.mod_revision, lease: kv.lease, value }
    }

    /// What it takes from a claim of this mode: one of another use takes all.
    fn weighed(&self, mode: Mode) -> entries::Entry<Vec<u8>> {
        let weight = if self.mode().suits(mode) { entries::weight(self.mode()) } else { entries::WHOLE };
        entries::Entry { key: self.key.clone(), weight, is_granted: !self.slots().is_empty() }
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

    /// The revision that its tokens come from: that of its creation or, for permits, of the change that took the slots.
    pub(crate) fn drawn_at(&self) -> i64 {
        if self.mode().limit().is_some() { self.modified } else { self.created }
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

/// The first entries of a lock, in their order.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) entries: Vec<Entry>,
    /// How many there are in all.
    pub(crate) count: u32,
    /// The state of the cluster that they are of.
    pub(crate) revision: i64,
    pub(crate) base: Base,
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
        Self { entries, count: u32::try_from(list.count).unwrap_or(u32::MAX), revision, base }
    }

    /// What the order means for an entry with this key and mode. One that is not listed stands behind all that are. `None` if the list is
    /// too short to tell.
    pub(crate) fn turn(&self, key: &[u8], mode: Mode) -> Option<Turn> {
        let mut all: Vec<_> = self.entries.iter().map(|listed| listed.weighed(mode)).collect();
        let is_listed = all.iter().any(|listed| listed.key == key);
        if !is_listed {
            all.push(entries::Entry { key: key.to_vec(), weight: entries::weight(mode), is_granted: false });
        }
        let capacity = mode.limit().map_or(entries::WHOLE, Limit::get);
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

    fn unlisted(&self) -> u32 {
        self.count.saturating_sub(u32::try_from(self.entries.len()).unwrap_or(u32::MAX))
    }

    /// Whether all entries are listed.
    pub(crate) fn is_complete(&self) -> bool {
        self.unlisted() == 0
    }

    /// Whether this listed entry holds.
    pub(crate) fn holds(&self, entry: &Entry) -> bool {
        if entry.mode().limit().is_some() {
            return !entry.slots().is_empty();
        }
        self.turn(&entry.key, entry.mode()) == Some(Turn::Granted)
    }

    /// The listed entry with this key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Whether somebody waits, as far as the list tells.
    pub(crate) fn is_wanted(&self) -> bool {
        self.entries.last().is_some_and(|last| !self.holds(last))
    }

    /// Whether another client has written an entry of the same owner before the one with this key.
    pub(crate) fn is_second(&self, key: &[u8]) -> bool {
        let Some(at) = self.entries.iter().position(|entry| entry.key == key) else { return false };
        let owner = |entry: &Entry| entry.value.as_ref().map(|value| value.owner.clone());
        self.entries.iter().take(at).any(|earlier| owner(earlier) == owner(&self.entries[at]))
    }

    /// The first entry.
    pub(crate) fn first(&self) -> Option<&Entry> {
        self.entries.first()
    }
}
