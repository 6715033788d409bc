//! The policy of single flight: its lock, what a cached value is worth, and for how long one is kept.

mod cached;

use std::time::Duration;

use lock_core::{AcquireError, Capabilities, Invalid, Mode, Moment, to_the_millisecond};
use lock_host::{LockOptions, Member, Outage, SharedClock};

pub use self::cached::{Entry, Found};

/// Cached values are kept for so long if the user does not say otherwise.
const VALUE_TTL: Duration = Duration::from_secs(60);
/// By so many hundredths is a ttl shortened at most, if the user does not say otherwise.
const JITTER: u8 = 10;
/// The shortest ttl: what caches count in.
const SHORTEST: Duration = Duration::from_millis(1);

/// How a value is looked up, computed and kept.
#[derive(Clone, Debug)]
pub(crate) struct FlightPlan {
    pub(crate) key: String,
    pub(crate) options: LockOptions,
    pub(crate) value_ttl: Duration,
    /// That of values, if not set.
    pub(crate) absent_ttl: Option<Duration>,
    pub(crate) jitter_percent: u8,
    pub(crate) stale_for: Duration,
}

/// The result of a read of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheState<V> {
    /// A value to be used.
    Fresh(V),
    /// A value to be used while it is computed anew.
    Stale(V),
    /// Nothing.
    Missing,
}

/// How callers wait for the one that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitMode {
    /// All in shared mode, so that they continue together.
    Together,
    /// For the lock itself, so that they continue one by one.
    OneByOne,
}

/// The time that a call has for waiting.
#[derive(Debug)]
pub(crate) struct RemainingWait {
    clock: SharedClock,
    since: Moment,
    wait: Option<Duration>,
    outage: Outage,
}

impl FlightPlan {
    pub(crate) fn new(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            options: LockOptions::default(),
            value_ttl: VALUE_TTL,
            absent_ttl: None,
            jitter_percent: JITTER,
            stale_for: Duration::ZERO,
        }
    }

    /// The name of the lock. It is not the key: a store without a prefix has its locks at their names, and the cache may be in the
    /// same database.
    pub(crate) fn name(&self) -> String {
        format!("single-flight:{}", self.key)
    }

    /// Refuses what cannot be done, before the cache is asked.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        for (what, ttl) in [("value_ttl", Some(self.value_ttl)), ("absent_ttl", self.absent_ttl)] {
            if let Some(ttl) = ttl.filter(|&ttl| ttl < SHORTEST) {
                let problem = "it is less than 1ms, so nothing would be cached";
                return Err(Invalid::new(what, humantime::format_duration(ttl), problem, "give a longer duration"));
            }
        }
        if self.jitter_percent > 100 {
            let problem = "a ttl cannot be shortened by more than 100 %";
            return Err(Invalid::new("jitter_percent", self.jitter_percent, problem, "give 0 to 100"));
        }
        Ok(())
    }

    /// Judges an entry of the cache.
    pub(crate) fn judge<V>(&self, found: Option<Found<V>>) -> CacheState<V> {
        match found {
            None => CacheState::Missing,
            // Entries are kept for longer than they are fresh, by `stale_for`.
            Some(Found { value, left: Some(left) }) if !self.stale_for.is_zero() && left <= self.stale_for => {
                CacheState::Stale(value)
            }
            Some(Found { value, .. }) => CacheState::Fresh(value),
        }
    }

    pub(crate) fn wait_mode(&self, store: &Capabilities) -> WaitMode {
        match store.check_mode(Mode::Shared) {
            Ok(()) => WaitMode::Together,
            Err(_) => WaitMode::OneByOne,
        }
    }

    /// For how long the cache is to keep a value that says that there is none.
    pub(crate) fn absent_ttl(&self) -> Duration {
        self.absent_ttl.unwrap_or(self.value_ttl)
    }

    /// A ttl, shortened at random, and with the time for which the value may be used while it is computed anew.
    pub(crate) fn spread(&self, ttl: Duration, random: u64) -> Duration {
        let most = ttl / 100 * u32::from(self.jitter_percent);
        // A thousand steps are fine enough.
        let cut = most / 1000 * u32::try_from(random % 1000).unwrap_or_default();
        ttl.saturating_sub(cut).max(SHORTEST).saturating_add(self.stale_for)
    }
}

impl RemainingWait {
    /// Begins now, for this lock.
    pub(crate) fn of(lock: Member) -> Self {
        Self { since: lock.clock.now(), wait: lock.wait, clock: lock.clock, outage: lock.outage }
    }

    /// Whether a stale value is used without asking the store, because another caller found it away a moment ago.
    pub(crate) fn is_store_away(&self) -> bool {
        self.outage.believed(self.clock.now()).is_some()
    }

    /// The outcome of a try for the lock. A store that fails for the moment is asked again, as when another caller computes.
    pub(crate) fn tried<G>(&self, outcome: Result<Option<G>, AcquireError>) -> Result<Option<G>, AcquireError> {
        match outcome {
            Err(AcquireError::Backend(error)) if error.kind().is_transient() => {
                self.outage.found(self.clock.now(), &error);
                Ok(None)
            }
            outcome => {
                self.outage.end();
                outcome
            }
        }
    }

    /// The options with what is left of the wait.
    pub(crate) fn left(&self, options: &LockOptions) -> LockOptions {
        match self.wait {
            Some(wait) => options.clone().wait(wait.saturating_sub(self.waited())),
            None => options.clone(),
        }
    }

    /// The error of a wait, of which this may have been the last part.
    pub(crate) fn failed(&self, mut error: AcquireError) -> AcquireError {
        if let AcquireError::TimedOut { waited, .. } = &mut error {
            *waited = to_the_millisecond(self.waited());
        }
        error
    }

    fn waited(&self) -> Duration {
        self.clock.now().since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Durability, ModeKind};
    use lock_host::ManualClock;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn plan() -> FlightPlan {
        FlightPlan { value_ttl: 100 * SECOND, ..FlightPlan::new("user:42") }
    }

    #[test]
    fn a_ttl_is_shortened_by_the_jitter_at_most() {
        assert_eq!(plan().spread(100 * SECOND, 0), 100 * SECOND);
        assert_eq!(plan().spread(100 * SECOND, 7500), 95 * SECOND);
        assert_eq!(plan().spread(100 * SECOND, 999), Duration::from_millis(90_010));
        let stale = FlightPlan { stale_for: 7 * SECOND, jitter_percent: 0, ..plan() };
        assert_eq!(stale.spread(100 * SECOND, u64::MAX), 107 * SECOND);
        let all = FlightPlan { jitter_percent: 100, ..plan() };
        assert_eq!(all.spread(SHORTEST, 999), SHORTEST);
        assert!(all.spread(Duration::MAX, 500) > Duration::MAX / 3);
    }

    /// Only a failure that may pass is as good as another caller who computes; the caller hears of any other one.
    #[test]
    fn an_error_that_stays_is_returned_although_there_is_a_stale_value() {
        use lock_core::{BackendError, Effect, ErrorKind, Operation};
        let failed = |kind| AcquireError::from(BackendError::new("test", Operation::Acquire, kind, Effect::None, "no"));
        let wait = RemainingWait {
            clock: std::sync::Arc::new(ManualClock::new()),
            since: Moment::ORIGIN,
            wait: None,
            outage: Outage::default(),
        };
        let tried = |error| wait.tried::<()>(Err(error));
        assert_eq!(tried(failed(ErrorKind::Denied)), Err(failed(ErrorKind::Denied)));
        assert_eq!(tried(failed(ErrorKind::Unreachable)), Ok(None));
        assert_eq!(tried(AcquireError::Closed), Err(AcquireError::Closed));
    }

    #[test]
    fn a_value_is_stale_when_less_is_left_of_it_than_the_time_for_that() {
        let found = |left| Some(Found { value: 7, left });
        let stale = FlightPlan { stale_for: 10 * SECOND, ..plan() };
        for (plan, left, expected) in [
            (&stale, Some(11 * SECOND), CacheState::Fresh(7)),
            (&stale, Some(10 * SECOND), CacheState::Stale(7)),
            (&stale, None, CacheState::Fresh(7)),
            (&plan(), Some(Duration::ZERO), CacheState::Fresh(7)),
        ] {
            assert_eq!(plan.judge(found(left)), expected, "{left:?}");
        }
        assert_eq!(plan().judge::<u32>(None), CacheState::Missing);
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let told = |plan: FlightPlan| plan.check().map_err(|invalid| invalid.to_string());
        assert_eq!(told(plan()), Ok(()));
        assert!(told(FlightPlan { value_ttl: Duration::ZERO, ..plan() }).unwrap_err().starts_with("value_ttl \"0s\""));
        let absent_ttl = Some(Duration::from_micros(999));
        assert!(told(FlightPlan { absent_ttl, ..plan() }).unwrap_err().starts_with("absent_ttl \"999us\""));
        assert!(told(FlightPlan { jitter_percent: 101, ..plan() }).unwrap_err().contains("0 to 100"));
    }

    #[test]
    fn those_who_wait_go_on_together_where_the_store_can_do_that() {
        let store = Capabilities::new("test", lock_core::Waiting::Poll, Durability::Process);
        assert_eq!(plan().wait_mode(&store), WaitMode::OneByOne);
        assert_eq!(plan().wait_mode(&store.with_modes(&[ModeKind::Exclusive, ModeKind::Shared])), WaitMode::Together);
    }
}
