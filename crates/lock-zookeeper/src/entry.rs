//! The entries of a lock: how Curator's recipes name them, and what that says.

use std::fmt;

use lock_core::{Mode, Owner};
use lock_rules::entries;
use sha2::{Digest, Sha256};

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
}

impl Role {
    const ALL: [Self; 3] = [Self::Lock, Self::Read, Self::Write];

    /// What precedes the number in a name.
    ///
    /// # Source
    /// Curator: `LockInternals` and `InterProcessReadWriteLock`.
    pub(crate) const fn marker(self) -> &'static str {
        match self {
            Self::Lock => "lock-",
            Self::Read => "__READ__",
            Self::Write => "__WRIT__",
        }
    }

    /// What a claim in this mode asks for. Here a mutex is not the write side of a read-write lock.
    pub(crate) const fn of(mode: Mode) -> Self {
        match mode {
            Mode::Shared => Self::Read,
            Mode::Exclusive | Mode::Permits { .. } | _ => Self::Lock,
        }
    }

    /// Whether an entry with this role that came now would hold.
    pub(crate) fn is_free_in(self, listed: &[Listed]) -> bool {
        let reads = |entry: &Listed| entry.role == Self::Read;
        listed.is_empty() || (self == Self::Read && listed.iter().all(reads))
    }

    /// What it takes of the lock.
    const fn weight(self) -> u32 {
        match self {
            Self::Read => entries::weight(Mode::Shared),
            Self::Lock | Self::Write => entries::WHOLE,
        }
    }

    /// Whether both can be in one directory.
    pub(crate) fn suits(self, other: Self) -> bool {
        (self == Self::Lock) == (other == Self::Lock)
    }

    /// The kind of lock that the directory is used as.
    pub(crate) const fn usage(self) -> &'static str {
        match self {
            Self::Lock => "a mutex",
            Self::Read | Self::Write => "a read-write lock",
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
        let role = Role::ALL.into_iter().find(|role| beginning.ends_with(role.marker()))?;
        let number = digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())??;
        Some(Self { number, role, child: child.to_owned() })
    }
}

/// The entries among the children of a directory, in their order.
pub(crate) fn in_order<'a>(children: impl IntoIterator<Item = &'a String>) -> Vec<Listed> {
    let mut listed: Vec<_> = children.into_iter().filter_map(|child| Listed::read(child)).collect();
    listed.sort_by_key(|entry| entry.number);
    listed
}

/// Whether somebody waits.
pub(crate) fn is_wanted(listed: &[Listed]) -> bool {
    listed.last().is_some_and(|last| !matches!(decide(listed, &last.child), Some(Turn::Granted)))
}

/// What the order means for one of these entries. `None` if it is not there.
pub(crate) fn decide(listed: &[Listed], child: &str) -> Option<Turn> {
    let entry = |of: &Listed| entries::Entry { key: of.child.clone(), weight: of.role.weight(), is_granted: false };
    let all: Vec<_> = listed.iter().map(entry).collect();
    Some(match entries::decide(&all, &child.to_owned(), entries::WHOLE)? {
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
