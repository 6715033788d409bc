//! The entries of a lock, in the order of their creation.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_core::inspect::{Held, Waiter};
use lock_core::{Claim, Holder, Limit, Mode, Note, Slots, Width};
use serde::{Deserialize, Serialize};

use crate::directory::OwnerHash;
use crate::proto::KeyValue;
use crate::tokens::Base;

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
    /// When its claim came, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    joined: Option<u64>,
}

impl Value {
    /// The value of an entry that waits.
    pub(crate) fn of(claim: &Claim) -> Self {
        Self {
            granted: None,
            joined: Some(now().as_secs()),
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

/// How long ago this second since 1970 was.
fn time_since(second: u64) -> Duration {
    Duration::from_secs(now().as_secs().saturating_sub(second))
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
        let age = self.value.as_ref().and_then(|value| value.granted).map(time_since);
        Held { holder, mode: self.mode(), slots: Slots::new(self.slots().iter().copied()), age, remaining: None }
    }

    /// Its waiter as it is shown.
    pub(crate) fn waiter(&self) -> Waiter {
        let value = self.value.as_ref();
        let age = value.and_then(|value| value.joined).map(time_since);
        Waiter { note: value.map(|value| Note::from_wire(&value.note)), mode: self.mode(), age }
    }
}
