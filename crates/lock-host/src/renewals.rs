//! The queue of leases that the keeper has to renew.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use lock_core::{Admission, BackendError, Batch, ByOwner, Keeper, Lateness, Lease, Moment, Owner, Renewal, Renewed};

use crate::alarms::NAP_MAX;
use crate::clock::SharedClock;
use crate::sharded::Sharded;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The wake-up time of a keeper that is reading the queue: it has to be woken for each new lease.
const READING: u64 = u64::MAX;

/// The leases of one client that have to be renewed. Stations add and remove leases; one thread, the keeper, takes what
/// is due [`next`](Self::next).
///
/// Most leases are released before the keeper reads the queue, and never reach it. It is woken only for leases that are due before
/// it would read the queue again.
pub struct RenewalQueue {
    clock: SharedClock,
    changes: Sharded<Changes>,
    /// When the keeper reads the queue again by itself, in nanoseconds of the clock.
    asleep_until: AtomicU64,
    state: Mutex<KeeperState>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// The keeper, and whether it has to end.
pub struct KeeperState {
    keeper: Keeper,
    phase: Phase,
}

#[derive(PartialEq, Eq)]
enum Phase {
    Open,
    Ended,
}

/// The next step of the keeper.
#[derive(Debug)]
pub enum KeeperStep {
    /// Renew these leases.
    Send(Batch),
    /// Tell the backend that this lease lasts.
    Lasts(Arc<Lease>),
    /// Sleep for this long, or until woken.
    Sleep(Duration),
    /// The client is gone.
    End,
}

/// Changes that the keeper has not read.
#[derive(Default)]
struct Changes {
    started: BTreeMap<ByOwner, Admission>,
    urgent: Vec<Owner>,
    stopped: Vec<Owner>,
}

impl RenewalQueue {
    /// A queue whose keeper is woken by `wake`. A keeper that waits while it holds the [`KeeperState`] misses no wake-up.
    pub fn new(keeper: Keeper, clock: SharedClock, wake: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let state = Mutex::new(KeeperState { keeper, phase: Phase::Open });
        let (changes, asleep_until) = (Sharded::default(), AtomicU64::new(READING));
        let queue = Arc::new(Self { clock, changes, asleep_until, state, wake: Box::new(wake) });
        let leaps = Arc::downgrade(&queue);
        queue.clock.on_leap(Box::new(move || {
            if let Some(queue) = leaps.upgrade() {
                queue.wake();
            }
        }));
        queue
    }

    /// Has a lease renewed that was admitted like this.
    pub fn start(&self, lease: Arc<Lease>, admission: Admission) {
        let due = Keeper::soonest_due(&lease, admission).as_nanos();
        let mut changes = self.changes.of(&lease.owner);
        changes.started.remove(&lease.owner); // otherwise the earlier lease would stay, as the key
        changes.started.insert(ByOwner(lease), admission);
        drop(changes);
        // Read after the lease was added: a keeper that has missed it has marked before that it is reading.
        if due < self.asleep_until.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Has a lease renewed now.
    pub fn renew_now(&self, owner: Owner) {
        self.changes.of(&owner).urgent.push(owner);
        self.wake();
    }

    /// Stops renewing a lease. The keeper reads this before it renews anything else.
    pub fn stop(&self, owner: Owner) {
        let mut changes = self.changes.of(&owner);
        if changes.started.remove(&owner).is_none() {
            changes.stopped.push(owner);
        }
    }

    /// How late renewals are sent.
    pub fn lateness(&self) -> Lateness {
        self.lock().keeper.lateness()
    }

    /// Ends the keeper.
    pub fn end(&self) {
        self.lock().phase = Phase::Ended;
        self.wake();
    }

    /// Wakes the keeper.
    pub fn wake(&self) {
        // Once this has the state, a keeper that waits while it holds it is asleep, or has not read the queue yet.
        drop(self.lock());
        (self.wake)();
    }

    /// The keeper's state, for the keeper's thread.
    pub fn lock(&self) -> MutexGuard<'_, KeeperState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next step of the keeper, at present.
    pub fn next(&self, state: &mut KeeperState) -> KeeperStep {
        if state.phase == Phase::Ended {
            return KeeperStep::End;
        }
        let urgent = self.take_changes(&mut state.keeper);
        // Read afterwards: a renewal counts for a station only if it was sent after the station had asked for it.
        let now = self.clock.now();
        urgent.into_iter().for_each(|owner| state.keeper.renew_now(now, owner));
        let keeper = &mut state.keeper;
        let lasting = |keeper: &mut Keeper| keeper.take_lasting(now).map(KeeperStep::Lasts);
        let next = keeper.take_due(now).map(KeeperStep::Send).or_else(|| lasting(keeper));
        next.unwrap_or_else(|| KeeperStep::Sleep(self.sleep(keeper, now)))
    }

    /// Processes the answer to a batch, and returns what each station has to know.
    pub fn answered(&self, batch: Batch, result: Result<Vec<Renewed>, BackendError>) -> Vec<Renewal> {
        self.lock().keeper.answered(self.clock.now(), batch, result)
    }

    /// Applies the changes, and returns whose leases are to be renewed now.
    fn take_changes(&self, keeper: &mut Keeper) -> Vec<Owner> {
        let mut urgent = Vec::new();
        self.asleep_until.store(READING, Ordering::SeqCst);
        for mut changes in self.changes.all() {
            std::mem::take(&mut changes.stopped).into_iter().for_each(|owner| keeper.stop(owner));
            for (ByOwner(lease), admission) in std::mem::take(&mut changes.started) {
                keeper.start(lease, admission);
            }
            urgent.append(&mut changes.urgent);
        }
        urgent
    }

    /// How long the keeper sleeps unless it is woken.
    fn sleep(&self, keeper: &Keeper, now: Moment) -> Duration {
        let next = keeper.next_due().into_iter().chain(keeper.next_lasting()).min();
        let nap = next.map_or(NAP_MAX, |next| next.since(now).min(NAP_MAX));
        self.asleep_until.store((now + nap).as_nanos(), Ordering::SeqCst);
        nap
    }

    fn len(&self) -> usize {
        self.changes.all().map(|changes| changes.started.len()).sum::<usize>() + self.lock().keeper.len()
    }
}

impl fmt::Debug for RenewalQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenewalQueue").field("leases", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Capabilities, Durability, Policy, Slots, Terms, TokenRange, Ttl, Waiting, Width};

    use super::*;
    use crate::clock::{Clock, ManualClock};
    use crate::sync::atomic::AtomicUsize;

    const TTL: Duration = Duration::from_secs(30);

    struct Bench {
        clock: ManualClock,
        queue: Arc<RenewalQueue>,
        wakes: Arc<AtomicUsize>,
    }

    impl Bench {
        fn new() -> Self {
            let policy = Policy::new(Capabilities::new("test", Waiting::Poll, Durability::Process));
            let (clock, wakes) = (ManualClock::new(), Arc::new(AtomicUsize::new(0)));
            let woken = Arc::clone(&wakes);
            let wake = move || _ = woken.fetch_add(1, Ordering::SeqCst);
            let queue = RenewalQueue::new(Keeper::new(policy, 7), Arc::new(clock.clone()), wake);
            Self { clock, queue, wakes }
        }

        fn next(&self) -> KeeperStep {
            self.queue.next(&mut self.queue.lock())
        }

        /// Admits a lease that was granted for this long a moment ago.
        fn keep(&self, lease: Arc<Lease>, valid_for: Duration) {
            let now = self.clock.now();
            self.queue.start(lease, Admission { at: now, asked_at: now, valid_for });
        }

        /// Whether the keeper is woken for a lease that was granted for this long.
        fn wakes_for(&self, n: u8, valid_for: Duration) -> bool {
            let before = self.wakes.load(Ordering::SeqCst);
            self.keep(lease(n), valid_for);
            self.wakes.load(Ordering::SeqCst) > before
        }
    }

    fn lease(n: u8) -> Arc<Lease> {
        let tokens = TokenRange::above(u64::from(n), Width::ONE).unwrap();
        Arc::new(Lease {
            name: format!("{n}").parse().unwrap(),
            owner: Owner::from_random([n; 16]),
            tokens,
            terms: Terms::exclusive(Ttl::DEFAULT),
            slots: Slots::NONE,
        })
    }

    #[test]
    fn the_keeper_hears_of_what_is_still_held_when_it_looks() {
        let bench = Bench::new();
        for n in 0..100 {
            bench.keep(lease(n), TTL);
        }
        (0..60).for_each(|n| bench.queue.stop(lease(n).owner));
        assert!(matches!(bench.next(), KeeperStep::Sleep(_)));
        bench.queue.stop(lease(70).owner);
        bench.clock.advance(TTL);
        let KeeperStep::Send(batch) = bench.next() else { panic!("nothing was due") };
        assert_eq!(batch.leases.len(), 39);
        for _ in 0..39 {
            assert!(matches!(bench.next(), KeeperStep::Lasts(_)));
        }
        assert!(matches!(bench.next(), KeeperStep::Sleep(NAP_MAX)));
        bench.queue.end();
        assert!(matches!(bench.next(), KeeperStep::End));
    }

    #[test]
    fn of_two_leases_of_an_owner_the_later_one_is_renewed() {
        let bench = Bench::new();
        let tokens = TokenRange::above(70, Width::ONE).unwrap();
        let later = Arc::new(Lease { tokens, ..Lease::clone(&lease(1)) });
        bench.keep(lease(1), TTL);
        bench.keep(later, TTL);
        assert!(matches!(bench.next(), KeeperStep::Sleep(_)));
        bench.clock.advance(TTL);
        let KeeperStep::Send(batch) = bench.next() else { panic!("nothing was due") };
        assert_eq!(batch.leases.iter().map(|lease| lease.tokens).collect::<Vec<_>>(), [tokens]);
    }

    #[test]
    fn a_hastened_renewal_wakes_the_keeper_and_is_sent_after_it_was_asked_for() {
        let bench = Bench::new();
        bench.keep(lease(1), TTL);
        assert!(matches!(bench.next(), KeeperStep::Sleep(_)));
        bench.clock.advance(Duration::from_secs(1));
        let before = bench.wakes.load(Ordering::SeqCst);
        bench.queue.renew_now(lease(1).owner);
        assert_eq!(bench.wakes.load(Ordering::SeqCst), before + 1);
        let KeeperStep::Send(batch) = bench.next() else { panic!("it was not sent") };
        assert_eq!((batch.asked_at, batch.leases.len()), (bench.clock.now(), 1));
        bench.queue.stop(lease(1).owner);
        bench.queue.renew_now(lease(1).owner);
        assert!(matches!(bench.next(), KeeperStep::Sleep(_)), "it is not renewed any more");
    }

    #[test]
    fn a_lease_that_lasts_is_reported_once_and_a_brief_one_never() {
        let bench = Bench::new();
        (1..=2).for_each(|n| bench.keep(lease(n), TTL));
        assert!(matches!(bench.next(), KeeperStep::Sleep(nap) if nap == Duration::from_millis(500)));
        bench.clock.advance(Duration::from_millis(400));
        assert!(matches!(bench.next(), KeeperStep::Sleep(_)));
        bench.queue.stop(lease(1).owner);
        bench.clock.advance(Duration::from_millis(100));
        let KeeperStep::Lasts(lasting) = bench.next() else { panic!("it is not reported") };
        assert_eq!(lasting, lease(2));
        bench.clock.advance(Duration::from_secs(1));
        assert!(matches!(bench.next(), KeeperStep::Sleep(NAP_MAX)));
    }

    #[test]
    fn only_what_may_be_due_before_it_looks_again_wakes_the_keeper() {
        let bench = Bench::new();
        assert!(bench.wakes_for(1, TTL), "it may be looking, and past this one");
        assert!(matches!(bench.next(), KeeperStep::Sleep(nap) if nap == Duration::from_millis(500)));
        assert!(!bench.wakes_for(2, TTL));
        assert!(bench.wakes_for(3, Duration::from_secs(10)), "handed over, and due in 100 ms");
        assert!(matches!(bench.next(), KeeperStep::Sleep(nap) if nap == Duration::from_millis(100)));
        assert!(!bench.wakes_for(4, Duration::from_secs(10)), "it looks by then");
    }
}
