//! The numbers behind the rules, each with its reason.

use std::time::Duration;

use crate::{Capabilities, EntriesEnd, Invalid, Ttl};

/// The longest time that one request to the store may take by default.
const OP_TIMEOUT_MAX: Duration = Duration::from_secs(1);
/// The default is also at most this part of the ttl, so that several attempts fit into a lease.
const OP_TIMEOUT_PART: u32 = 6;
/// A configured timeout is limited to this part of the ttl: a grant that takes longer is hardly useful.
const OP_TIMEOUT_PART_MAX: u32 = 3;
/// No timeout is shorter, so that every request has a chance.
const OP_TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// How many times a lease is passed on locally before other processes get their turn.
///
/// Chosen: it divides the store's work by about ten. If the store has a queue, a waiter elsewhere waits for at most
/// this many extra turns. If it has none, no waiter elsewhere is sure of a turn: after this many the lock is free for a
/// moment, and the first to ask gets it.
pub const CHAIN_DEFAULT: u32 = 16;

/// How many unanswered releases a station has at most. Chosen: enough that a momentary outage delays no waiter, and so
/// few that they hardly burden a store that hangs.
const OWED_MAX: usize = 4;

/// For how long a reader joins the readers of its process without asking the store, once the store has said that nobody
/// waits. Chosen: a writer elsewhere hardly notices it, and it bounds the cost of overlapping readers to 50 requests a
/// second for each lock, whatever their rate.
pub(crate) const WANTED_FRESH_FOR: Duration = Duration::from_millis(20);

/// How many waiters at a semaphore ask the store at the same time. Chosen: enough that waiters are admitted without a round
/// trip between one and the next, and so few that a client with a long line hardly burdens the store's queue.
pub(crate) const ATTEMPTS_MAX: usize = 16;

/// How long after it was handed out a claim that nobody wants any more may stay unanswered before its owner is released.
/// Chosen: longer than most stores take to answer, because a release that may overtake a claim costs the store more; and short
/// beside a lease.
pub(crate) const ABANDONED_CLAIM_FOR: Duration = Duration::from_millis(100);

/// How long a client that ends waits for its background work. Chosen: the longest time that one request takes by
/// default.
pub const FLUSH_WITHIN: Duration = OP_TIMEOUT_MAX;

/// How a station behaves at one store: what may be tuned, and what follows from the store's capabilities.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Policy {
    /// How long one request may take: at least a millisecond, and at most a third of the ttl, whatever is set here.
    /// `None` means a sixth of the ttl, at most a second.
    pub op_timeout: Option<Duration>,
    /// How many times a lease from the store is passed on locally; 0 disables passing on.
    pub chain: u32,
    /// What the store can do.
    pub store: Capabilities,
    /// With this many unanswered releases of leases that are passed on, no new claim for one is sent: 4, and never less, as a shared
    /// lease, its replacement and a waiter beside it may end in three. Private leases may have fifteen more.
    pub owed_max: usize,
}

impl Policy {
    /// The defaults for a store.
    pub fn new(store: Capabilities) -> Self {
        Self { op_timeout: None, chain: CHAIN_DEFAULT, store, owed_max: OWED_MAX }
    }

    /// Refuses an operation timeout that no request could meet.
    ///
    /// # Errors
    /// `Invalid` for zero.
    pub fn check_op_timeout(op_timeout: Option<Duration>) -> Result<Option<Duration>, Invalid> {
        if op_timeout != Some(Duration::ZERO) {
            return Ok(op_timeout);
        }
        let (problem, remedy) = ("it is shorter than any request takes", "use a longer time, such as 500ms");
        Err(Invalid::new("op_timeout", "0s", problem, remedy))
    }

    /// How long an entry with this ttl may last after the last request for it has arrived.
    pub(crate) fn lasts(&self, ttl: Ttl) -> Duration {
        match self.store.entries_end {
            EntriesEnd::WithTtl => ttl.get() + drift(ttl.get()),
            EntriesEnd::WithSession => Duration::MAX,
        }
    }

    /// How long the client repeats a release: until the lease has expired anyway, or until it has the session ended.
    ///
    /// Chosen: others then wait no longer than at other stores. The minimum keeps a short lease from ending all others in an outage that
    /// they would survive.
    pub(crate) fn owed_for(&self, ttl: Ttl) -> Duration {
        let length = match self.store.entries_end {
            EntriesEnd::WithTtl => ttl,
            EntriesEnd::WithSession => ttl.max(Ttl::DEFAULT),
        };
        // A request that is in flight may re-arm the ttl once more before the release arrives.
        self.within(ttl) + length.get() + drift(length.get())
    }

    /// How long one request for a lease of this ttl may take.
    pub fn within(&self, ttl: Ttl) -> Duration {
        let most = ttl.get() / OP_TIMEOUT_PART_MAX;
        let wanted = self.op_timeout.unwrap_or_else(|| OP_TIMEOUT_MAX.min(ttl.get() / OP_TIMEOUT_PART));
        wanted.min(most).max(OP_TIMEOUT_MIN)
    }
}

/// The drift of a lease: two clocks may run at different rates, by 1 % and 2 ms.
///
/// # Source
/// Redis manual, "Distributed locks with Redis", on clock drift; the same allowance as the implementations listed there.
pub fn drift(valid_for: Duration) -> Duration {
    valid_for / 100 + Duration::from_millis(2)
}

/// When asking again makes sense.
pub(crate) mod pace {
    use std::time::Duration;

    /// Polls begin at this distance and double up to [`POLL_MAX`].
    const POLL_MIN: Duration = Duration::from_millis(10);
    const POLL_MAX: Duration = Duration::from_millis(250);
    /// Retries after an error begin at this distance and double up to [`RETRY_MAX`].
    const RETRY_MIN: Duration = Duration::from_millis(50);
    const RETRY_MAX: Duration = Duration::from_secs(1);
    /// If nobody waits for the answer, they double up to this.
    const UNATTENDED_MAX: Duration = Duration::from_secs(5);
    /// How long after a lease's presumed end a waiter asks for the lock, multiplied by its place in the queue.
    const EXPIRY_SLACK: Duration = Duration::from_millis(10);
    /// The largest factor in that.
    const EXPIRY_PLACES_MAX: u32 = 8;
    /// A waiter never asks again sooner than this, whatever times the store reports.
    pub(crate) const SOONEST: Duration = Duration::from_millis(5);
    /// A queued waiter that cannot be notified asks again after this time, multiplied by its position, so that the load
    /// on the store hardly grows with the length of its queue.
    const SILENT_STEP: Duration = Duration::from_millis(10);
    /// It waits at least this long, even near the head.
    const SILENT_MIN: Duration = Duration::from_millis(100);

    /// Poll interval for a latch waiter that relies on notifications, in case one is lost. Chosen: a
    /// hundred waiters are hardly a load.
    pub(crate) const TOLD: Duration = Duration::from_secs(3);

    pub(crate) fn poll(tries: u32) -> Duration {
        doubled(POLL_MIN, tries, POLL_MAX)
    }

    pub(crate) fn retry(tries: u32) -> Duration {
        doubled(RETRY_MIN, tries, RETRY_MAX)
    }

    pub(crate) fn unattended(tries: u32) -> Duration {
        doubled(RETRY_MIN, tries, UNATTENDED_MAX)
    }

    pub(crate) fn silent(position: u32) -> Duration {
        SILENT_STEP.saturating_mul(position).max(SILENT_MIN)
    }

    pub(crate) fn after_expiry(remaining: Duration, position: u32) -> Duration {
        remaining.saturating_add(EXPIRY_SLACK * position.clamp(1, EXPIRY_PLACES_MAX))
    }

    fn doubled(first: Duration, tries: u32, most: Duration) -> Duration {
        first.saturating_mul(1_u32.checked_shl(tries).unwrap_or(u32::MAX)).min(most)
    }
}

/// A small random source for jitter, seeded from outside. Not for secrets.
///
/// # Source
/// G. Steele et al., "Fast splittable pseudorandom number generators" (2014): the mixing function of SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A duration between half of `duration` and all of it.
    pub(crate) fn jittered(&mut self, duration: Duration) -> Duration {
        let half = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX) / 2;
        Duration::from_nanos(half + self.roll() % (half + 1))
    }

    /// A duration up to `duration`, so that waiters that were refused together return one by one.
    pub(crate) fn spread(&mut self, duration: Duration) -> Duration {
        let all = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.roll() % all.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Waiting};

    #[test]
    fn an_operation_may_take_a_sixth_of_the_ttl_but_at_most_a_second() {
        let mut policy = Policy::new(Capabilities::new("test", Waiting::Poll, Durability::Process));
        assert_eq!(policy.within("3s".parse().unwrap()), Duration::from_millis(500));
        assert_eq!(policy.within(Ttl::DEFAULT), Duration::from_secs(1));
        policy.op_timeout = Some(Duration::from_secs(7));
        assert_eq!(policy.within(Ttl::DEFAULT), Duration::from_secs(7));
    }

    #[test]
    fn a_timeout_that_is_set_leaves_something_of_the_lease() {
        let mut policy = Policy::new(Capabilities::new("test", Waiting::Poll, Durability::Process));
        policy.op_timeout = Some(Duration::MAX);
        assert_eq!(policy.within(Ttl::DEFAULT), Duration::from_secs(10));
        policy.op_timeout = Some(Duration::ZERO);
        assert_eq!(policy.within(Ttl::DEFAULT), Duration::from_millis(1));
    }

    #[test]
    fn drift_is_a_hundredth_and_two_milliseconds() {
        assert_eq!(drift(Duration::from_secs(30)), Duration::from_millis(302));
    }

    #[test]
    fn paces_double_up_to_their_bound() {
        assert_eq!([pace::poll(0), pace::poll(1), pace::poll(40)], [10, 20, 250].map(Duration::from_millis));
        assert_eq!([pace::retry(0), pace::retry(2), pace::retry(9)], [50, 200, 1000].map(Duration::from_millis));
        assert_eq!([1, 10, 200].map(pace::silent), [100, 100, 2000].map(Duration::from_millis));
        assert!(pace::silent(u32::MAX) > pace::silent(1_000_000));
        let second = Duration::from_secs(1);
        assert_eq!(
            [0, 3, 99].map(|place| pace::after_expiry(second, place)),
            [1010, 1030, 1080].map(Duration::from_millis)
        );
        assert_eq!(pace::after_expiry(Duration::MAX, 1), Duration::MAX);
    }

    #[test]
    fn jitter_stays_between_half_and_all_and_varies() {
        let mut dice = Dice::new(1);
        let rolls: Vec<_> = (0..100).map(|_| dice.jittered(Duration::from_millis(100))).collect();
        assert!(rolls.iter().all(|d| (50..=100).contains(&d.as_millis())));
        assert!(rolls.iter().any(|d| d != &rolls[0]));
        assert_eq!(Dice::new(1).jittered(Duration::ZERO), Duration::ZERO);
        assert!(dice.jittered(Duration::MAX) >= Duration::from_nanos(u64::MAX / 2));
    }

    #[test]
    fn a_spread_reaches_from_nothing_to_all_of_it() {
        let mut dice = Dice::new(1);
        let rolls: Vec<_> = (0..100).map(|_| dice.spread(Duration::from_nanos(2))).collect();
        assert!((0..=2).all(|nanos| rolls.contains(&Duration::from_nanos(nanos))), "{rolls:?}");
        assert!(rolls.iter().all(|roll| *roll <= Duration::from_nanos(2)));
        assert!(dice.spread(Duration::MAX) > Duration::ZERO);
    }
}
