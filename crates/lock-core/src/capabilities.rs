//! Capabilities of a store.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::{BackendError, Effect, ErrorKind, Mode, ModeKind, Operation, Ttl, WriteSide};

/// How a waiter learns that its turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Waiting {
    /// First come, first served, and the store notifies the next waiter.
    QueueWithPush,
    /// First come, first served; the next waiter finds out when it asks again.
    Queue,
    /// No queue: the first to ask after the release.
    Poll,
}

/// Whether the client's requests for one lock take effect in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestOrder {
    /// Requests for one lock take effect in the order in which they were handed over. Those for different locks need not.
    InOrder,
    /// Requests may overtake each other, for instance on the connections of a pool.
    Unordered,
}

/// The isolation of the keeper's renewals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// The keeper has its own connection: nothing that the user does can starve a renewal.
    Isolated,
    /// Renewals share the client that the user passed in.
    Shared,
}

/// Whether tokens still rise after the store restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Durability {
    /// Tokens survive a crash of the store and of its machine.
    Durable,
    /// After a loss of data, tokens continue above the old ones as long as the store's clock does.
    ClockFloor,
    /// Tokens survive a crash. After a loss of data, an operator has to raise them above the old ones.
    ByOperator,
    /// Tokens and locks live as long as this process.
    Process,
}

/// The counter of the tokens of a store's locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    /// Each lock may have a counter of its own.
    PerName,
    /// All locks draw from one counter, so each token is above all that were drawn before it, for any lock.
    Shared,
}

/// How many servers keep a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Copies {
    /// One: a lease that it denies excludes nobody.
    One,
    /// Several, and a majority decides: a lease that it denies may still exclude others at the rest. While the holder's work
    /// ends, that keeps others out longer, so a station does not release such a lease. It expires.
    Several,
}

/// When the store removes an entry (a lease or a place) that nobody releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntriesEnd {
    /// After its ttl, counted from the last request for it that was answered.
    WithTtl,
    /// When the session of the backend ends. Until then an entry lasts, whatever its ttl, and a late claim may still create one. So the
    /// client repeats a release until it is answered. If that takes too long, the client has the backend
    /// [end the session](crate::Backend::end_session).
    WithSession,
}

/// Something that a store may be able to do beyond acquiring, renewing, releasing and fencing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Ability {
    /// A release can keep the lock for a while: see [`ReleaseRequest::keep`](crate::ReleaseRequest::keep).
    Keep,
    /// A claim can replace a lease: see [`Claim::replaces`](crate::Claim::replaces).
    Replace,
    /// The limit of a semaphore can be changed while permits are held: see [`limit`](crate::limit).
    SetLimit,
    /// A claim can be granted ahead of waiters: see [`Fairness::Barging`](crate::Fairness::Barging).
    Barge,
    /// Arrivals can be counted: see [`latch`](crate::latch).
    Latch,
    /// Locks can be listed, and leases revoked: see [`inspect`](crate::inspect).
    Inspect,
}

impl Ability {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Keep, Self::Replace, Self::SetLimit, Self::Barge, Self::Latch, Self::Inspect];

    /// Which verb it affects, and what a store without it cannot do.
    const fn described(self) -> (Operation, &'static str) {
        match self {
            Self::Keep => (Operation::Release, "keep a released lock for a while"),
            Self::Replace => (Operation::Acquire, "replace a lease in one step"),
            Self::SetLimit => (Operation::Limit, "change the limit of a semaphore, or count its free permits"),
            Self::Barge => (Operation::Acquire, "grant a lock ahead of its waiters"),
            Self::Latch => (Operation::Latch, "count the arrivals of a latch"),
            Self::Inspect => (Operation::Inspect, "list its locks"),
        }
    }
}

/// How long a store should keep a lock after its last turn: see [`ReleaseRequest::keep`](crate::ReleaseRequest::keep).
/// Only [`Capabilities::keep`] makes one, so a station never gets a wish that its store cannot fulfil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep(Duration);

impl Keep {
    /// How long the store keeps the lock.
    pub fn get(self) -> Duration {
        self.0
    }
}

/// Capabilities of a store, known once it is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Capabilities {
    /// The backend's name, such as `sqlite`.
    pub backend: &'static str,
    /// How waiters are woken.
    pub waiting: Waiting,
    /// Whether requests may overtake each other.
    pub ordering: RequestOrder,
    /// Whether renewals are isolated.
    pub isolation: Isolation,
    /// Whether tokens survive a restart.
    pub durability: Durability,
    /// Where the tokens come from.
    pub counter: Counter,
    /// How many servers keep a lease.
    pub copies: Copies,
    /// When the store removes what nobody releases.
    pub entries_end: EntriesEnd,
    /// How long a lease lasts at most; a longer ttl is shortened to that. `None` if leases last as long as they are asked for.
    pub lease_max: Option<Ttl>,
    /// Whether the write side of a read-write lock is the mutex of the same name.
    pub write_side: WriteSide,
    /// The modes that it can grant. A station refuses any other mode without sending a request.
    pub modes: &'static [ModeKind],
    /// What else it can do. A station refuses anything else without sending a request.
    pub abilities: &'static [Ability],
}

/// Setters of single fields.
macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident($field:ident: $type:ty);)*) => {
        $($(#[$doc])*
        #[must_use]
        pub const fn $setter(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        })*
    };
}

impl Capabilities {
    /// Describes a store, with the weakest of everything that is not given here.
    pub const fn new(backend: &'static str, waiting: Waiting, durability: Durability) -> Self {
        let (ordering, isolation, counter) = (RequestOrder::Unordered, Isolation::Shared, Counter::PerName);
        let (modes, abilities): (&[ModeKind], &[Ability]) = (&[ModeKind::Exclusive], &[]);
        let (copies, entries_end, write_side) = (Copies::One, EntriesEnd::WithTtl, WriteSide::Mutex);
        Self {
            backend,
            waiting,
            ordering,
            isolation,
            durability,
            counter,
            copies,
            entries_end,
            lease_max: None,
            write_side,
            modes,
            abilities,
        }
    }

    setters! {
        /// With this order of requests.
        with_ordering(ordering: RequestOrder);
        /// With these modes.
        with_modes(modes: &'static [ModeKind]);
        /// With these abilities.
        with_abilities(abilities: &'static [Ability]);
        /// With this isolation of the keeper.
        with_isolation(isolation: Isolation);
        /// With entries that end like this.
        with_entries_end(entries_end: EntriesEnd);
        /// Whose leases last this long at most.
        with_lease_max(lease_max: Option<Ttl>);
        /// Says whether the write side of a read-write lock is the mutex of the same name.
        with_write_side(write_side: WriteSide);
    }

    /// With one counter for all locks.
    #[must_use]
    pub const fn with_shared_counter(mut self) -> Self {
        self.counter = Counter::Shared;
        self
    }

    /// With leases that several servers keep.
    #[must_use]
    pub const fn with_several_copies(mut self) -> Self {
        self.copies = Copies::Several;
        self
    }

    /// Refuses a mode that the store cannot grant.
    ///
    /// # Errors
    /// `Unsupported`, with effect `None`: nothing was sent.
    pub fn check_mode(&self, mode: Mode) -> Result<(), BackendError> {
        if self.modes.contains(&mode.kind()) {
            return Ok(());
        }
        let what = match mode.kind() {
            ModeKind::Exclusive => "grant exclusive locks",
            ModeKind::Shared => "grant read locks",
            ModeKind::Permits => "grant the permits of a semaphore",
        };
        Err(self.unsupported(Operation::Acquire, what).with_remedy("choose another store, or use a mutex"))
    }

    /// How long a lease lasts that is asked for with this ttl.
    pub fn shortened(&self, ttl: Ttl) -> Ttl {
        self.lease_max.map_or(ttl, |most| ttl.min(most))
    }

    /// Refuses an ability that the store does not declare.
    ///
    /// # Errors
    /// `Unsupported`, with effect `None`: nothing was sent.
    pub fn check_ability(&self, ability: Ability) -> Result<(), BackendError> {
        if self.abilities.contains(&ability) {
            return Ok(());
        }
        Err(self.unable(ability))
    }

    /// A wish to have a lock kept for this time after its last turn.
    ///
    /// # Errors
    /// `Unsupported` if the store cannot do that.
    pub fn keep(&self, time: Duration) -> Result<Keep, BackendError> {
        self.check_ability(Ability::Keep).map(|()| Keep(time))
    }

    /// The error of a store without this ability.
    pub fn unable(&self, ability: Ability) -> BackendError {
        let (operation, what) = ability.described();
        self.unsupported(operation, what).with_remedy("choose another store")
    }

    fn unsupported(&self, operation: Operation, what: &str) -> BackendError {
        let message = format!("{} cannot {what}", self.backend);
        BackendError::new(self.backend, operation, ErrorKind::Unsupported, Effect::None, message)
    }
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { backend, waiting, ordering, isolation, durability, .. } = self;
        write!(f, "{backend}: waiting {waiting:?}, order {ordering:?}, keeper {isolation:?}, tokens {durability:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_modest_unless_a_store_says_more() {
        let modest = Capabilities::new("test", Waiting::Poll, Durability::Process);
        assert_eq!(modest.to_string(), "test: waiting Poll, order Unordered, keeper Shared, tokens Process");
        assert_eq!(modest.counter, Counter::PerName);
        let able =
            modest.with_ordering(RequestOrder::InOrder).with_isolation(Isolation::Isolated).with_shared_counter();
        assert_eq!(able.to_string(), "test: waiting Poll, order InOrder, keeper Isolated, tokens Process");
        assert_eq!(able.counter, Counter::Shared);
    }

    #[test]
    fn a_lock_is_kept_only_where_the_store_can_keep_it() {
        let store = Capabilities::new("test", Waiting::Poll, Durability::Process);
        let error = store.keep(Duration::from_secs(1)).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unsupported, Effect::None));
        let able = store.with_abilities(&[Ability::Keep]);
        assert_eq!(able.keep(Duration::from_secs(1)).map(Keep::get), Ok(Duration::from_secs(1)));
    }
}
