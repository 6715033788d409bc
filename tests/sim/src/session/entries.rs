//! The entries of all locks in the order in which they came, and what that says: who holds, and who waits for whom.

use lock_core::{Claim, FencingToken, Lease, LockName, Mode, Owner, Slots, TokenRange};
use lock_rules::entries::{self, Decision, WHOLE, weight};

use crate::one::SessionId;

/// As the leader has them, or as a follower did at some time.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries(Vec<Entry>);

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) session: SessionId,
    claim: Claim,
    pub(super) tokens: TokenRange,
}

/// What the order means for an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Holds,
    /// It waits at this position until one of these ends.
    Waits {
        position: u32,
        watched: Vec<FencingToken>,
    },
}

impl Entry {
    pub(super) fn new(session: SessionId, claim: &Claim, tokens: TokenRange) -> Self {
        Self { session, claim: claim.clone(), tokens }
    }

    pub(super) fn name(&self) -> &LockName {
        &self.claim.name
    }

    pub(super) fn owner(&self) -> Owner {
        self.claim.owner
    }

    /// What no other entry has. Its owner may create another one when it is gone.
    pub(super) fn key(&self) -> FencingToken {
        self.tokens.low()
    }

    pub(super) fn lease(&self) -> Lease {
        let Claim { name, owner, terms, .. } = self.claim.clone();
        Lease { name, owner, tokens: self.tokens, terms, slots: Slots::NONE }
    }
}

impl Entries {
    pub(super) fn add(&mut self, entry: Entry) {
        self.0.push(entry);
    }

    /// Removes and returns some.
    pub(super) fn remove(&mut self, which: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        self.0.extract_if(.., |entry| which(entry)).collect()
    }

    pub(super) fn all(&self) -> &[Entry] {
        &self.0
    }

    pub(super) fn has(&self, key: FencingToken) -> bool {
        self.0.iter().any(|entry| entry.key() == key)
    }

    pub(super) fn entry(&self, owner: Owner) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.owner() == owner)
    }

    /// Those of one lock.
    pub(super) fn of(&self, name: &LockName) -> impl DoubleEndedIterator<Item = &Entry> {
        self.0.iter().filter(move |entry| entry.name() == name)
    }

    /// What the order means for the entry with this key, if it is there.
    pub(super) fn turn(&self, name: &LockName, key: FencingToken) -> Option<Turn> {
        Some(match entries::decide(&self.weighed(name), &key, WHOLE)? {
            Decision::Granted => Turn::Holds,
            Decision::Waits { position, watched } => {
                Turn::Waits { position, watched: watched.into_iter().copied().collect() }
            }
        })
    }

    /// Whether an entry that came now would hold.
    pub(super) fn is_free_for(&self, name: &LockName, mode: Mode) -> bool {
        let taken: u64 = self.weighed(name).iter().map(|entry| u64::from(entry.weight)).sum();
        taken + u64::from(weight(mode)) <= u64::from(WHOLE)
    }

    /// Whether somebody waits.
    pub(super) fn is_wanted(&self, name: &LockName) -> bool {
        let last = self.of(name).next_back();
        last.is_some_and(|last| self.turn(name, last.key()) != Some(Turn::Holds))
    }

    /// Those that hold.
    pub(super) fn holders(&self, name: &LockName) -> impl Iterator<Item = &Entry> {
        let holders = entries::holders(&self.weighed(name), WHOLE).count();
        self.of(name).take(holders)
    }

    fn weighed(&self, name: &LockName) -> Vec<entries::Entry<FencingToken>> {
        let weighed = |entry: &Entry| {
            let (key, weight) = (entry.key(), weight(entry.claim.terms.mode));
            entries::Entry { key, weight, is_granted: false }
        };
        self.of(name).map(weighed).collect()
    }
}
