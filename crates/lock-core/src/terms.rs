//! Terms of a lease: who else may hold the lock at the same time, and how long the store keeps the lease.

use std::fmt;
use std::num::NonZeroU32;

use serde::Serialize;

use crate::{Invalid, Slots, Ttl, Width};

/// How many permits a semaphore has: from 1 to [`Mode::LIMIT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit(NonZeroU32);

impl Limit {
    /// One permit.
    pub const ONE: Self = Self(NonZeroU32::MIN);

    /// Takes a number.
    ///
    /// # Errors
    /// `Invalid` for 0, and for more than [`Mode::LIMIT_MAX`].
    pub fn new(limit: u32) -> Result<Self, Invalid> {
        NonZeroU32::new(limit).filter(|limit| limit.get() <= Mode::LIMIT_MAX).map(Self).ok_or_else(|| {
            let problem = format!("it is not between 1 and {}", Mode::LIMIT_MAX);
            Invalid::new("limit of a semaphore", limit, problem, "say how many permits there are")
        })
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl TryFrom<u32> for Limit {
    type Error = Invalid;

    fn try_from(limit: u32) -> Result<Self, Invalid> {
        Self::new(limit)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How the lock is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Nobody else.
    #[default]
    Exclusive,
    /// Everybody else who asks for this mode.
    Shared,
    /// As many others as there are permits for. [`Mode::permits`] makes it.
    #[non_exhaustive] // so that its numbers are always checked
    Permits {
        /// How many permits this lease takes: at most `limit`, unless that was lowered since.
        count: NonZeroU32,
        /// How many there are.
        limit: NonZeroU32,
    },
}

impl Mode {
    /// The most permits that a name can have. Chosen: 2^31 - 1 stands for readers in the layout of a store.
    pub const LIMIT_MAX: u32 = (1 << 31) - 2;

    /// Permits: `count` of the `limit` that there are.
    ///
    /// # Errors
    /// `Invalid` if either is zero, if `count` is above `limit` or above the 64 permits that one lease can take, or if
    /// `limit` is above [`Mode::LIMIT_MAX`].
    pub fn permits(count: u32, limit: u32) -> Result<Self, Invalid> {
        let refused = |what, given, problem: String, remedy| Err(Invalid::new(what, given, problem, remedy));
        let Limit(limit) = Limit::new(limit)?;
        let Some(count) = NonZeroU32::new(count) else {
            return refused("number of permits", count, "it is zero".into(), "ask for at least one permit");
        };
        if count > limit {
            let problem = format!("the limit is {limit}");
            return refused("number of permits", count.get(), problem, "ask for at most as many as there are");
        }
        if u64::from(count.get()) > Width::MAX.get() {
            let problem = format!("one lease takes at most {} permits", Width::MAX.get());
            return refused("number of permits", count.get(), problem, "acquire several leases");
        }
        Ok(Self::Permits { count, limit })
    }

    /// One permit of a semaphore with this limit.
    pub const fn one_permit(Limit(limit): Limit) -> Self {
        Self::Permits { count: NonZeroU32::MIN, limit }
    }

    /// The same for another number of permits; a lock stays what it is.
    ///
    /// # Errors
    /// As [`permits`](Self::permits).
    pub fn with_count(self, count: u32) -> Result<Self, Invalid> {
        match self {
            Self::Exclusive | Self::Shared => Ok(self),
            Self::Permits { limit, .. } => Self::permits(count, limit.get()),
        }
    }

    /// Whether leases of this mode use a name as a lock or as a semaphore. It does not tell a mutex from a read-write lock.
    pub const fn name_kind(self) -> NameKind {
        match self {
            Self::Exclusive | Self::Shared => NameKind::Lock,
            Self::Permits { .. } => NameKind::Semaphore,
        }
    }

    /// Whether leases of both modes can be held or waited for under one name, where a mutex is the [write side](WriteSide::Mutex) of its
    /// read-write lock: both use it as a lock, or both as a semaphore of one limit.
    pub fn suits(self, other: Self) -> bool {
        match (self, other) {
            (Self::Permits { limit, .. }, Self::Permits { limit: others, .. }) => limit == others,
            _ => self.name_kind() == other.name_kind(),
        }
    }

    /// How many permits there are; `None` of a lock.
    pub const fn limit(self) -> Option<Limit> {
        match self {
            Self::Exclusive | Self::Shared => None,
            Self::Permits { limit, .. } => Some(Limit(limit)),
        }
    }

    /// The same permits under another limit. It may be below their number: nobody loses permits when the limit is lowered.
    /// A lock stays what it is.
    #[must_use]
    pub const fn under(self, limit: Limit) -> Self {
        match self {
            Self::Exclusive | Self::Shared => self,
            Self::Permits { count, .. } => Self::Permits { count, limit: limit.0 },
        }
    }

    /// The same with a limit above all of these slots, which a holder keeps when the limit is lowered. So a store states the
    /// mode of a lease.
    #[must_use]
    pub fn covering(self, slots: &Slots) -> Self {
        let needed = slots.get().last().and_then(|last| Limit::new(last.saturating_add(1)).ok());
        match (self.limit(), needed) {
            (Some(limit), Some(needed)) => self.under(limit.max(needed)),
            (_, _) => self,
        }
    }

    /// Whether both are the same but for the limit, which can be changed between a claim and its grant.
    pub fn is_like(self, other: Self) -> bool {
        self.kind() == other.kind() && self.count() == other.count()
    }

    /// How many permits it takes; 0 of a lock.
    pub const fn count(self) -> u32 {
        match self {
            Self::Exclusive | Self::Shared => 0,
            Self::Permits { count, .. } => count.get(),
        }
    }

    /// How many tokens a turn under a lease of this mode takes: one, or one for each permit.
    pub(crate) fn width(self) -> Width {
        Width::for_waiters(usize::try_from(self.count()).unwrap_or(usize::MAX))
    }

    /// The kind of this mode, whatever its numbers.
    pub const fn kind(self) -> ModeKind {
        match self {
            Self::Exclusive => ModeKind::Exclusive,
            Self::Shared => ModeKind::Shared,
            Self::Permits { .. } => ModeKind::Permits,
        }
    }
}

/// A [`Mode`] without its numbers: what a store can or cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ModeKind {
    /// [`Mode::Exclusive`].
    Exclusive,
    /// [`Mode::Shared`].
    Shared,
    /// [`Mode::Permits`].
    Permits,
}

impl fmt::Display for ModeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
            Self::Permits => "permits",
        })
    }
}

/// The relation of mutexes and the write sides of read-write locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteSide {
    /// The mutex of the same name.
    Mutex,
    /// Something else: while a name is used as a mutex, a claim for the read-write lock of that name fails with
    /// [`OtherKind`](crate::ErrorKind::OtherKind), and the other way round.
    Apart,
}

/// The kind of a name, while anybody holds it or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameKind {
    /// As a lock, by exclusive and shared leases. With [`WriteSide::Apart`], as a mutex, by exclusive leases only.
    Lock,
    /// As a read-write lock. Only with [`WriteSide::Apart`]; elsewhere this use is [`Lock`](Self::Lock).
    ReadWriteLock,
    /// As a semaphore, by permits.
    Semaphore,
}

impl NameKind {
    /// The same use in a store whose read-write locks have this write side.
    #[must_use]
    pub const fn where_write_side_is(self, write_side: WriteSide) -> Self {
        match (self, write_side) {
            (Self::ReadWriteLock, WriteSide::Mutex) => Self::Lock,
            (kind, _) => kind,
        }
    }
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lock => "lock",
            Self::ReadWriteLock => "read-write lock",
            Self::Semaphore => "semaphore",
        })
    }
}

/// The terms of a lease. Turns share a lease only if their terms are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// How the lock is shared.
    pub mode: Mode,
    /// How long the store keeps the lease when nobody renews it.
    pub ttl: Ttl,
}

impl Terms {
    /// An exclusive lease with this ttl.
    pub const fn exclusive(ttl: Ttl) -> Self {
        Self { mode: Mode::Exclusive, ttl }
    }

    /// Whether both are the same but for the limit of permits, which can be changed between a claim and its grant.
    pub(crate) fn are_like(self, other: Self) -> bool {
        self.ttl == other.ttl && self.mode.is_like(other.mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_named_in_messages() {
        let modes = [Mode::default(), Mode::Shared, Mode::permits(1, 1).unwrap()];
        assert_eq!(modes.map(|mode| mode.kind().to_string()), ["exclusive", "shared", "permits"]);
        assert_eq!(modes.map(|mode| mode.name_kind().to_string()), ["lock", "lock", "semaphore"]);
    }

    #[test]
    fn permits_are_checked() {
        let refused = |count, limit| Mode::permits(count, limit).unwrap_err().to_string();
        for (count, limit, problem) in [
            (0, 4, "number of permits \"0\" is not valid: it is zero"),
            (5, 4, "number of permits \"5\" is not valid: the limit is 4"),
            (65, 100, "one lease takes at most 64 permits"),
            (1, 0, "limit of a semaphore \"0\" is not valid"),
            (1, Mode::LIMIT_MAX + 1, "it is not between 1 and 2147483646"),
        ] {
            assert!(refused(count, limit).contains(problem), "{}", refused(count, limit));
        }
        assert_eq!(Mode::permits(64, Mode::LIMIT_MAX).map(Mode::count), Ok(64));
    }

    #[test]
    fn permits_can_be_stated_under_another_limit() {
        let (mode, limit) = (Mode::permits(3, 8).unwrap(), |limit| Limit::new(limit).unwrap());
        let lowered = mode.under(limit(2));
        assert_eq!((lowered.count(), lowered.limit()), (3, Some(limit(2))));
        assert!(lowered.is_like(mode) && !lowered.suits(mode) && !mode.is_like(Mode::permits(2, 8).unwrap()));
        assert_eq!(lowered.covering(&Slots::new([0, 1, 6])).limit(), Some(limit(7)));
        assert_eq!(mode.covering(&Slots::new([0, 1, 6])), mode);
        assert_eq!(Mode::Shared.under(limit(2)).covering(&Slots::new([4])), Mode::Shared);
    }

    #[test]
    fn a_name_is_used_in_one_way() {
        let permits = |count, limit| Mode::permits(count, limit).unwrap();
        assert!(Mode::Shared.suits(Mode::Exclusive) && permits(1, 4).suits(permits(2, 4)));
        assert!(!Mode::Shared.suits(permits(1, 4)) && !permits(1, 4).suits(permits(1, 5)));
    }
}
