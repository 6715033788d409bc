//! The entries of a lock: how Curator's recipes name them, and what that says.

use std::fmt;

use lock_core::{BackendError, Claim, LockName, Mode, NameKind, Owner};
use lock_rules::entries;
use sha2::{Digest, Sha256};

use crate::error::{self, BACKEND};
use crate::path::OF_ENTRIES;

/// What an entry asks for, as its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A mutex: `lock-`.
    Lock,
    /// The read side of a read-write lock: `__READ__`.
    Read,
    /// Its write side: `__WRIT__`.
    Write,
    /// Some permits of a semaphore: `permits-2-of-8-`. This is our own layout.
    Permits { count: u32, limit: u32 },
}

impl Role {
    /// What a claim asks for. Here a mutex is not the write side of a read-write lock.
    pub(crate) const fn of(claim: &Claim) -> Self {
        match (claim.terms.mode, claim.kind) {
            (Mode::Shared, _) => Self::Read,
            (Mode::Permits { count, limit, .. }, _) => Self::Permits { count: count.get(), limit: limit.get() },
            (_, NameKind::ReadWriteLock) => Self::Write,
            (_, NameKind::Lock | NameKind::Semaphore) => Self::Lock,
        }
    }

    /// What precedes the number in a name.
    ///
    /// # Source
    /// Curator: `LockInternals` and `InterProcessReadWriteLock`.
    fn marker(self) -> String {
        match self {
            Self::Lock => "lock-".to_owned(),
            Self::Read => "__READ__".to_owned(),
            Self::Write => "__WRIT__".to_owned(),
            Self::Permits { count, limit } => format!("permits-{count}-of-{limit}-"),
        }
    }

    /// Reads what precedes the number in a name.
    fn parse(beginning: &str) -> Option<Self> {
        if let Some(found) =
            [Self::Lock, Self::Read, Self::Write].into_iter().find(|role| beginning.ends_with(&role.marker()))
        {
            return Some(found);
        }
        let (_, numbers) = beginning.strip_suffix('-')?.rsplit_once("-permits-")?;
        let (count, limit) = numbers.split_once("-of-")?;
        let (count, limit) = (count.parse().ok()?, limit.parse().ok()?);
        Mode::permits(count, limit).ok().map(|_| Self::Permits { count, limit })
    }

    /// Whether an entry with this role that came now would hold.
    pub(crate) fn is_free_in(self, listed: &[Listed]) -> bool {
        let taken: u64 = listed.iter().map(|entry| u64::from(entry.role.weight_for(self))).sum();
        taken.saturating_add(self.weight().into()) <= self.capacity().into()
    }

    /// What it takes of the lock.
    const fn weight(self) -> u32 {
        match self {
            Self::Read => entries::weight(Mode::Shared),
            Self::Permits { count, .. } => count,
            Self::Lock | Self::Write => entries::WHOLE,
        }
    }

    /// How much of the lock it takes from a claim with this role. An entry of another use takes all of it.
    fn weight_for(self, role: Self) -> u32 {
        if self.suits(role) { self.weight() } else { entries::WHOLE }
    }

    /// How much of the lock there is.
    const fn capacity(self) -> u32 {
        match self {
            Self::Permits { limit, .. } => limit,
            Self::Lock | Self::Read | Self::Write => entries::WHOLE,
        }
    }

    /// How many permits it takes; `None` of a lock.
    pub(crate) const fn permits(self) -> Option<u32> {
        match self {
            Self::Permits { count, .. } => Some(count),
            Self::Lock | Self::Read | Self::Write => None,
        }
    }

    /// Whether its holder is alone.
    pub(crate) const fn is_exclusive(self) -> bool {
        matches!(self, Self::Lock | Self::Write)
    }

    /// Whether both can be in one directory.
    fn suits(self, other: Self) -> bool {
        self.capacity() == other.capacity() && (self == Self::Lock) == (other == Self::Lock)
    }

    /// The mode of its leases.
    pub(crate) fn mode(self) -> Mode {
        match self {
            Self::Lock | Self::Write => Mode::Exclusive,
            Self::Read => Mode::Shared,
            Self::Permits { count, limit } => Mode::permits(count, limit).unwrap_or(Mode::Exclusive),
        }
    }

    /// Refuses a claim for a directory whose first entry makes it another kind of lock.
    pub(crate) fn check_use(self, name: &LockName, listed: &[Listed]) -> Result<(), BackendError> {
        let Some(used) = listed.first().map(|first| first.role).filter(|first| !first.suits(self)) else {
            return Ok(());
        };
        let (used_as, asked) = (used.mode(), self.mode());
        if used_as.limit() != asked.limit() {
            let refused = BackendError::in_other_use(BACKEND, used_as, asked).with_name(name);
            // Nobody can change a limit here.
            return Err(refused.with_remedy("use the same kind and limit everywhere, or choose another name"));
        }
        Err(error::of_other_layout(name, used.usage(), self.usage()))
    }

    /// The kind of lock that the directory is used as.
    const fn usage(self) -> &'static str {
        match self {
            Self::Lock => "a mutex",
            Self::Read | Self::Write => "a read-write lock",
            Self::Permits { .. } => "a semaphore",
        }
    }
}

/// What makes the name of an entry that of its owner, who finds it by this although the answer to its creation was lost. It does not tell
/// the owner.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryId(u128);

impl EntryId {
    pub(crate) fn of(owner: Owner) -> Self {
        let hash = Sha256::digest(owner.to_wire());
        Self(hash.iter().take(16).fold(0, |id, byte| (id << 8) | u128::from(*byte)))
    }

    /// The beginning of an entry's name. The store appends the number.
    ///
    /// # Source
    /// Curator, `ProtectedUtils`: `_c_` and a UUID.
    pub(crate) fn beginning(self, role: Role) -> String {
        format!("{self}-{}", role.marker())
    }

    /// Whether an entry is this one.
    pub(crate) fn is_of(self, child: &str) -> bool {
        child.starts_with(&self.to_string())
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
        write!(f, "{OF_ENTRIES}{a}-{b}-{c}-{d}-{e}")
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An entry in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Its number, which orders the entries.
    pub(crate) number: u32,
    pub(crate) role: Role,
    /// Its name in the directory.
    pub(crate) child: String,
}

impl Listed {
    /// Reads the name of a child; `None` if it is no entry. That of a directory of another lock may end like one.
    fn read(child: &str) -> Option<Self> {
        if !child.starts_with(OF_ENTRIES) {
            return None;
        }
        let (beginning, digits) = child.split_at_checked(child.len().checked_sub(10)?)?;
        let role = Role::parse(beginning)?;
        let number = digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())??;
        Some(Self { number, role, child: child.to_owned() })
    }
}

/// The entries among the children of a directory, in their order.
pub(crate) fn in_order<'a>(children: impl IntoIterator<Item = &'a String>) -> Vec<Listed> {
    let mut listed: Vec<_> = children.into_iter().filter_map(|child| Listed::read(child)).collect();
    // Since Curator 5.9, a writer that goes on as a reader does so under its own number.
    listed.sort_by_key(|entry| (entry.number, !entry.role.is_exclusive()));
    listed
}

/// Whether somebody waits.
pub(crate) fn is_wanted(listed: &[Listed]) -> bool {
    listed.last().is_some_and(|last| !matches!(decide(listed, &last.child), Some(Turn::Granted)))
}

/// The first of these entries, which hold, and the others, which wait.
pub(crate) fn holders_and_waiters(listed: &[Listed]) -> (&[Listed], &[Listed]) {
    let holds = |entry: &&Listed| matches!(decide(listed, &entry.child), Some(Turn::Granted));
    listed.split_at(listed.iter().take_while(holds).count())
}

/// What the order means for one of these entries. `None` if it is not there.
pub(crate) fn decide(listed: &[Listed], child: &str) -> Option<Turn> {
    let role = listed.iter().find(|entry| entry.child == child)?.role;
    let entry =
        |of: &Listed| entries::Entry { key: of.child.clone(), weight: of.role.weight_for(role), is_granted: false };
    let all: Vec<_> = listed.iter().map(entry).collect();
    Some(match entries::decide(&all, &child.to_owned(), role.capacity())? {
        entries::Decision::Granted => Turn::Granted,
        entries::Decision::Waits { position, watched } => {
            Turn::Waits { position, watched: watched.into_iter().cloned().collect() }
        }
    })
}

/// What the order means for an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It holds.
    Granted,
    /// It waits at this position until one of these children ends.
    Waits { position: u32, watched: Vec<String> },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(children: &[&str]) -> Vec<Listed> {
        in_order(&children.iter().map(|&child| child.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn names_are_those_of_curator() {
        let id = EntryId(0xc9a0_2f1e_0000_4000_8000_0000_0000_00ff);
        assert_eq!(id.beginning(Role::Lock), "_c_c9a02f1e-0000-4000-8000-0000000000ff-lock-");
        assert!(id.is_of("_c_c9a02f1e-0000-4000-8000-0000000000ff-lock-0000000003"));
    }

    #[test]
    fn entries_are_ordered_by_their_number_and_nothing_else_is_one() {
        let all = listed(&[
            "_c_a-lock-0000000010",
            "leases",
            "lock-0000000001",
            "_c_b-lock-0000000009",
            "_c_lock-1",
            "_c_c-__READ__0000000011",
        ]);
        let numbers: Vec<_> = all.iter().map(|entry| (entry.number, entry.role)).collect();
        assert_eq!(numbers, [(9, Role::Lock), (10, Role::Lock), (11, Role::Read)]);
    }

    #[test]
    fn a_mutex_waits_for_the_entry_before_it() {
        let all = listed(&["_c_c-lock-0000000003", "_c_a-lock-0000000001", "_c_b-lock-0000000002"]);
        assert_eq!(decide(&all, "_c_a-lock-0000000001"), Some(Turn::Granted));
        let watched = vec!["_c_b-lock-0000000002".to_owned()];
        assert_eq!(decide(&all, "_c_c-lock-0000000003"), Some(Turn::Waits { position: 2, watched }));
        assert_eq!(decide(&all, "_c_d-lock-0000000004"), None);
    }

    #[test]
    fn a_writer_that_becomes_a_reader_under_its_number_stays_before_the_next_one() {
        let mut all = vec!["_c_n-__WRIT__0000000004", "_c_r-__READ__0000000003", "_c_w-__WRIT__0000000003"];
        let next = |all: &[&str]| decide(&listed(all), "_c_n-__WRIT__0000000004");
        let watches = |child: &str, position| Some(Turn::Waits { position, watched: vec![child.to_owned()] });
        assert_eq!(decide(&listed(&all), "_c_w-__WRIT__0000000003"), Some(Turn::Granted));
        assert_eq!(next(&all), watches("_c_r-__READ__0000000003", 2));
        all.pop();
        assert_eq!(next(&all), watches("_c_r-__READ__0000000003", 1));
    }

    #[test]
    fn readers_hold_together_and_wait_for_the_last_writer_before_them() {
        let all = listed(&[
            "_c_a-__READ__0000000001",
            "_c_b-__READ__0000000002",
            "_c_c-__WRIT__0000000003",
            "_c_d-__READ__0000000004",
        ]);
        assert_eq!(decide(&all, "_c_b-__READ__0000000002"), Some(Turn::Granted));
        let watched = vec!["_c_b-__READ__0000000002".to_owned()];
        assert_eq!(decide(&all, "_c_c-__WRIT__0000000003"), Some(Turn::Waits { position: 1, watched }));
        let watched = vec!["_c_c-__WRIT__0000000003".to_owned()];
        assert_eq!(decide(&all, "_c_d-__READ__0000000004"), Some(Turn::Waits { position: 2, watched }));
    }
}
