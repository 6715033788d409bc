//! Events for observers.

use std::fmt;
use std::time::Duration;

use super::level::Level;
use super::outcome::Outcome;
use crate::{BackendError, FencingToken, Holder, LockName, LossReason};

/// Something that happened to a lock of a client, or to its store. Contains no secret.
///
/// Its `Display` is a sentence for a log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A waiter got the lock.
    #[non_exhaustive]
    Acquired {
        /// The lock.
        lock: LockName,
        /// The token of the hold.
        token: FencingToken,
        /// How long it waited.
        waited: Duration,
        /// For how much of this time others are known to have had the lock; `None` if it was not found taken.
        contended: Option<Duration>,
        /// Its first position in the store's queue, 1 for the next waiter, if the store queued it.
        position: Option<u32>,
    },
    /// A waiter did not get the lock. A call that fails before it waits, for an invalid name or option, is not reported.
    #[non_exhaustive]
    NotAcquired {
        /// The lock.
        lock: LockName,
        /// How long it waited.
        waited: Duration,
        /// For how much of this time others are known to have had the lock; `None` if it was not found taken.
        contended: Option<Duration>,
        /// The outcome.
        outcome: Outcome,
    },
    /// A waiter has waited for 10 s; reported again after 20 s, 40 s and so on. Candidates of an election wait for as long as another
    /// one leads, so theirs are not reported.
    #[non_exhaustive]
    WaitingLong {
        /// The lock.
        lock: LockName,
        /// How long it has waited so far.
        waited: Duration,
        /// The holder, if known.
        holder: Option<Holder>,
        /// Why the store does not grant the lock, if it fails.
        error: Option<BackendError>,
    },
    /// A lease was renewed, but so late that less than about half of it was left. The machine or the store is too slow
    /// for the ttl, or was unavailable.
    #[non_exhaustive]
    RenewedLate {
        /// The lock.
        lock: LockName,
        /// The token of the hold.
        token: FencingToken,
        /// How long after the renewal was due it was confirmed.
        late: Duration,
        /// How much longer the hold would have lasted without it.
        remaining: Duration,
    },
    /// A hold was lost. That is also reported of a leader that stepped down because its lease was not renewed in time.
    #[non_exhaustive]
    Lost {
        /// The lock.
        lock: LockName,
        /// The token of the hold.
        token: FencingToken,
        /// How long the lock was held.
        held: Duration,
        /// Why it was lost.
        reason: LossReason,
    },
    /// A lock was released, or passed on to the next waiter of the same client, or the program closed the client that held it.
    #[non_exhaustive]
    Released {
        /// The lock.
        lock: LockName,
        /// The token of the hold.
        token: FencingToken,
        /// How long the lock was held.
        held: Duration,
        /// How long its release was pending; `None` if it was confirmed at once.
        pending: Option<Duration>,
    },
    /// A hold was detached: its lease stays at the store, until its ticket is adopted, or until its ttl has expired.
    #[non_exhaustive]
    Detached {
        /// The lock.
        lock: LockName,
        /// The token of the hold.
        token: FencingToken,
        /// How long the lock was held.
        held: Duration,
    },
    /// The store did not confirm a release. If the error is transient, the release is repeated in the background.
    /// `Released` follows once it is confirmed, or `ReleaseGivenUp`.
    #[non_exhaustive]
    ReleasePending {
        /// The lock.
        lock: LockName,
        /// The token of the hold.
        token: FencingToken,
        /// How long the lock was held.
        held: Duration,
        /// Why it was not confirmed.
        error: BackendError,
    },
    /// A pending release is not repeated any more: its lease has expired, or will expire with its ttl.
    #[non_exhaustive]
    ReleaseGivenUp {
        /// The lock.
        lock: LockName,
        /// The token of the hold.
        token: FencingToken,
        /// How long the release was pending.
        pending: Duration,
    },
    /// The store was unreachable, and the caller had chosen to continue with a process-local lock: other processes may hold the
    /// lock at the same time.
    #[non_exhaustive]
    Degraded {
        /// The lock.
        lock: LockName,
        /// How long it waited.
        waited: Duration,
        /// Why the store did not grant the lock.
        error: BackendError,
    },
    /// A request for a lock failed, or was not answered in time. Renewals that fail together are reported for each lock.
    #[non_exhaustive]
    RequestFailed {
        /// The lock.
        lock: LockName,
        /// Why it failed.
        error: BackendError,
    },
    /// The store did not answer a request in time, or cannot serve. Reported once for the client, not for each lock,
    /// until it answers again.
    #[non_exhaustive]
    StoreUnavailable {
        /// The first error.
        error: BackendError,
    },
    /// The store answers again.
    #[non_exhaustive]
    StoreAvailable {
        /// The time since it was found to be unavailable.
        after: Duration,
    },
}

/// The events that a client adds to those of its stations.
#[doc(hidden)]
impl Event {
    pub fn not_waited(lock: LockName, outcome: Outcome) -> Self {
        Self::NotAcquired { lock, waited: Duration::ZERO, contended: None, outcome }
    }

    pub fn degraded(lock: LockName, waited: Duration, error: BackendError) -> Self {
        Self::Degraded { lock, waited, error }
    }

    pub fn request_failed(lock: LockName, error: BackendError) -> Self {
        Self::RequestFailed { lock, error }
    }

    pub fn store_unavailable(error: BackendError) -> Self {
        Self::StoreUnavailable { error }
    }

    pub fn store_available(after: Duration) -> Self {
        Self::StoreAvailable { after }
    }
}

impl Event {
    /// The level at which this is logged.
    pub fn level(&self) -> Level {
        match self {
            Self::NotAcquired { outcome: Outcome::Failed(_), .. } => Level::Warn,
            Self::Acquired { .. } | Self::NotAcquired { .. } | Self::Released { .. } | Self::Detached { .. } => {
                Level::Debug
            }
            Self::RequestFailed { .. } => Level::Debug,
            Self::ReleaseGivenUp { .. } | Self::StoreAvailable { .. } => Level::Info,
            Self::WaitingLong { .. }
            | Self::RenewedLate { .. }
            | Self::ReleasePending { .. }
            | Self::Degraded { .. }
            | Self::StoreUnavailable { .. } => Level::Warn,
            Self::Lost { .. } => Level::Error,
        }
    }

    /// What happened, in a few fixed words, for counting.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Acquired { .. } => "acquired",
            Self::NotAcquired { .. } => "not acquired",
            Self::WaitingLong { .. } => "waiting long",
            Self::RenewedLate { .. } => "renewed late",
            Self::Lost { .. } => "lost",
            Self::Released { .. } => "released",
            Self::Detached { .. } => "detached",
            Self::ReleasePending { .. } => "release pending",
            Self::ReleaseGivenUp { .. } => "release given up",
            Self::Degraded { .. } => "degraded",
            Self::RequestFailed { .. } => "request failed",
            Self::StoreUnavailable { .. } => "store unavailable",
            Self::StoreAvailable { .. } => "store available",
        }
    }

    /// The token of the affected hold, if there is one.
    pub fn token(&self) -> Option<FencingToken> {
        match self {
            Self::Acquired { token, .. }
            | Self::RenewedLate { token, .. }
            | Self::Lost { token, .. }
            | Self::Released { token, .. }
            | Self::Detached { token, .. }
            | Self::ReleasePending { token, .. }
            | Self::ReleaseGivenUp { token, .. } => Some(*token),
            Self::NotAcquired { .. } | Self::WaitingLong { .. } | Self::Degraded { .. } => None,
            Self::RequestFailed { .. } | Self::StoreUnavailable { .. } | Self::StoreAvailable { .. } => None,
        }
    }

    /// The affected lock; `None` for the store.
    pub fn lock(&self) -> Option<&LockName> {
        match self {
            Self::Acquired { lock, .. }
            | Self::NotAcquired { lock, .. }
            | Self::WaitingLong { lock, .. }
            | Self::RenewedLate { lock, .. }
            | Self::Lost { lock, .. }
            | Self::Released { lock, .. }
            | Self::Detached { lock, .. }
            | Self::ReleasePending { lock, .. }
            | Self::ReleaseGivenUp { lock, .. }
            | Self::Degraded { lock, .. }
            | Self::RequestFailed { lock, .. } => Some(lock),
            Self::StoreUnavailable { .. } | Self::StoreAvailable { .. } => None,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquired { lock, token, waited, position, .. } => {
                write!(f, "acquired \"{lock}\" (token {token}) after {waited:.1?}")?;
                position.map_or(Ok(()), |position| write!(f, ", from position {position} in the queue"))
            }
            Self::NotAcquired { lock, waited, outcome, .. } => {
                write!(f, "did not get \"{lock}\" after {waited:.1?}: {outcome}")
            }
            Self::WaitingLong { lock, waited, holder, error } => {
                write!(f, "still waiting for \"{lock}\" after {waited:.1?}")?;
                match (error, holder) {
                    (Some(error), _) => write!(f, ": {error}"),
                    (None, Some(_)) => write!(f, ": {}", Holder::obstacle(holder.as_ref())),
                    (None, None) => Ok(()),
                }
            }
            Self::RenewedLate { lock, token, late, remaining } => {
                write!(f, "renewed \"{lock}\" (token {token}) {late:.1?} late, with {remaining:.1?} left")
            }
            Self::Lost { lock, token, held, reason } => {
                write!(f, "lost \"{lock}\" (token {token}) after {held:.1?}: {reason}")
            }
            Self::Released { lock, token, held, .. } => {
                write!(f, "released \"{lock}\" (token {token}) after {held:.1?}")
            }
            Self::Detached { lock, token, held } => {
                write!(f, "detached \"{lock}\" (token {token}) after {held:.1?}")
            }
            Self::ReleasePending { lock, token, error, .. } => {
                write!(f, "the release of \"{lock}\" (token {token}) was not confirmed: {error}")
            }
            Self::ReleaseGivenUp { lock, token, pending } => {
                write!(f, "gave up the release of \"{lock}\" (token {token}) after {pending:.1?}: ")?;
                f.write_str("its lease has expired, or it will with its ttl")
            }
            Self::Degraded { lock, waited, error } => {
                write!(f, "holding \"{lock}\" within this process only, after {waited:.1?}: {error}")
            }
            Self::RequestFailed { lock, error } => write!(f, "a request for \"{lock}\" failed: {error}"),
            Self::StoreUnavailable { error } => write!(f, "the store is unavailable: {error}"),
            Self::StoreAvailable { after } => write!(f, "the store is available again after {after:.1?}"),
        }
    }
}
