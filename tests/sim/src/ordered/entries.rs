//! The entries of all locks in the order in which they came, and what that says: who holds, and who waits for whom.

use lock_core::{Claim, FencingToken, Holder, Lease, LockName, Mode, Owner, Released, Slots, TokenRange};
use lock_rules::entries::{self, Decision, WHOLE, weight};

use crate::one::Refused;

/// As the leader has them, or as a follower did at some time.
#[derive(Clone, Debug)]
pub(crate) struct Entries<T>(Vec<Entry<T>>);

#[derive(Clone, Debug)]
pub(crate) struct Entry<T> {
    /// What the store knows of it besides: with what it ends.
    pub(crate) tie: T,
    claim: Claim,
    pub(crate) tokens: TokenRange,
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// What the order means for an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Holds,
    /// It waits at this position until one of these ends.
    Waits {
        position: u32,
        watched: Vec<FencingToken>,
    },
}

impl Turn {
    /// What the release of an entry is told that was there or not.
    pub(crate) fn released(own: Option<&Self>) -> Released {
        match own {
            Some(Self::Holds) => Released::Released,
            Some(Self::Waits { .. }) => Released::Left,
            None => Released::NotHeld,
        }
    }
}

impl<T> Entry<T> {
    pub(crate) fn new(tie: T, claim: &Claim, tokens: TokenRange) -> Self {
        Self { tie, claim: claim.clone(), tokens }
    }

    /// Keeps the lock for the owner that has left.
    pub(crate) fn keep(&mut self) {
        self.claim.owner = Owner::kept(self.claim.owner);
    }

    /// Is that of this lease, whatever it was.
    pub(crate) fn put(&mut self, lease: &Lease) {
        (self.claim.owner, self.claim.terms, self.tokens) = (lease.owner, lease.terms, lease.tokens);
    }

    /// Has tokens that are higher by this much.
    pub(crate) fn raise(&mut self, by: u64) {
        let below = self.tokens.low().get() - 1 + by;
        self.tokens = TokenRange::above(below, self.tokens.width()).unwrap_or(self.tokens);
    }

    pub(crate) fn name(&self) -> &LockName {
        &self.claim.name
    }

    pub(crate) fn owner(&self) -> Owner {
        self.claim.owner
    }

    /// What no other entry has. Its owner may create another one when it is gone.
    pub(crate) fn key(&self) -> FencingToken {
        self.tokens.low()
    }

    pub(crate) fn lease(&self) -> Lease {
        let Claim { name, owner, terms, .. } = self.claim.clone();
        Lease { name, owner, tokens: self.tokens, terms, slots: Slots::NONE }
    }
}

impl<T> Entries<T> {
    pub(crate) fn add(&mut self, entry: Entry<T>) {
        self.0.push(entry);
    }

    /// Removes and returns some.
    pub(crate) fn remove(&mut self, which: impl Fn(&Entry<T>) -> bool) -> Vec<Entry<T>> {
        self.0.extract_if(.., |entry| which(entry)).collect()
    }

    pub(crate) fn all(&self) -> &[Entry<T>] {
        &self.0
    }

    pub(crate) fn all_mut(&mut self) -> &mut [Entry<T>] {
        &mut self.0
    }

    pub(crate) fn has(&self, key: FencingToken) -> bool {
        self.0.iter().any(|entry| entry.key() == key)
    }

    pub(crate) fn entry(&self, owner: Owner) -> Option<&Entry<T>> {
        self.0.iter().find(|entry| entry.owner() == owner)
    }

    pub(crate) fn find_mut(&mut self, which: impl Fn(&Entry<T>) -> bool) -> Option<&mut Entry<T>> {
        self.0.iter_mut().find(|entry| which(entry))
    }

    /// Those of one lock.
    pub(crate) fn of(&self, name: &LockName) -> impl DoubleEndedIterator<Item = &Entry<T>> {
        self.0.iter().filter(move |entry| entry.name() == name)
    }

    /// What the order means for the entry with this key, if it is there.
    pub(crate) fn turn(&self, name: &LockName, key: FencingToken) -> Option<Turn> {
        Some(match entries::decide(&self.weighed(name), &key, WHOLE)? {
            Decision::Granted => Turn::Holds,
            Decision::Waits { position, watched } => {
                Turn::Waits { position, watched: watched.into_iter().copied().collect() }
            }
        })
    }

    /// Whether an entry that came now would hold.
    pub(crate) fn is_free_for(&self, name: &LockName, mode: Mode) -> bool {
        let taken: u64 = self.weighed(name).iter().map(|entry| u64::from(entry.weight)).sum();
        taken + u64::from(weight(mode)) <= u64::from(WHOLE)
    }

    /// Whether somebody waits.
    pub(crate) fn is_wanted(&self, name: &LockName) -> bool {
        let last = self.of(name).next_back();
        last.is_some_and(|last| self.turn(name, last.key()) != Some(Turn::Holds))
    }

    /// Who has the first entry, and its highest token.
    pub(crate) fn first(&self, claim: &Claim) -> Result<(Holder, Option<FencingToken>), Refused> {
        let first = self.of(&claim.name).next().ok_or(Refused::GivenUp)?;
        Ok((Holder::Leasehold { tokens: first.tokens, note: claim.note.clone() }, Some(first.tokens.high())))
    }

    /// Who holds the lease that spans a token.
    pub(crate) fn holder_with(&self, name: &LockName, token: FencingToken) -> Option<Owner> {
        let spans = |tokens: TokenRange| tokens.low() <= token && token <= tokens.high();
        self.holders(name).find(|entry| spans(entry.tokens)).map(Entry::owner)
    }

    /// Those that hold.
    pub(crate) fn holders(&self, name: &LockName) -> impl Iterator<Item = &Entry<T>> {
        let holders = entries::holders(&self.weighed(name), WHOLE).count();
        self.of(name).take(holders)
    }

    fn weighed(&self, name: &LockName) -> Vec<entries::Entry<FencingToken>> {
        let weighed = |entry: &Entry<T>| {
            let (key, weight) = (entry.key(), weight(entry.claim.terms.mode));
            entries::Entry { key, weight, is_granted: false }
        };
        self.of(name).map(weighed).collect()
    }
}
