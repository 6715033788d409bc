//! Where stations leave word of their leases for the keeper.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use lock_core::{Keeper, Lease, Moment, Owner};

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::{NAP_MAX, Sharded};

/// What is said when the keeper looks itself and so has to be told of everything.
const LOOKING: u64 = u64::MAX;

/// How much room each part of the tray keeps, for the leases that come and go.
const KEPT_MIN: usize = 16;

/// The keeper's tray. A lease that is let go before the keeper looks is never heard of: most are.
///
/// The keeper takes everything in between [`look`](Self::look) and [`nap`](Self::nap), and is woken only for what is
/// due before it would look again.
pub struct Tray {
    words: Sharded<Words>,
    /// When the keeper looks again by itself, in nanoseconds of the clock.
    asleep_until: AtomicU64,
}

#[derive(Default)]
struct Words {
    kept: HashMap<Owner, Kept>,
    gone: Vec<Owner>,
}

struct Kept {
    lease: Lease,
    asked_at: Moment,
    valid_for: Duration,
}

impl Default for Tray {
    fn default() -> Self {
        Self { words: Sharded::default(), asleep_until: AtomicU64::new(LOOKING) }
    }
}

impl Tray {
    /// Has a lease kept that was asked for at `asked_at` and granted for `valid_for`. Tells whether the keeper has to be
    /// woken for it.
    #[must_use]
    pub fn keep(&self, lease: Lease, asked_at: Moment, valid_for: Duration) -> bool {
        self.words.of(&lease.owner).kept.insert(lease.owner, Kept { lease, asked_at, valid_for });
        // Read after the word was left: a keeper that did not find it yet has said before that it looks.
        Keeper::soonest_due(asked_at, valid_for).as_nanos() < self.asleep_until.load(Ordering::SeqCst)
    }

    /// Has a lease let go. The keeper hears of it before it renews anything.
    pub fn forget(&self, owner: Owner) {
        let mut words = self.words.of(&owner);
        if words.kept.remove(&owner).is_none() {
            words.gone.push(owner);
        }
    }

    /// Gives the keeper what was left for it.
    pub fn look(&self, keeper: &mut Keeper) {
        self.asleep_until.store(LOOKING, Ordering::SeqCst);
        for mut words in self.words.all() {
            std::mem::take(&mut words.gone).into_iter().for_each(|owner| keeper.forget(owner));
            words.kept.drain().for_each(|(_, kept)| keeper.keep(kept.lease, kept.asked_at, kept.valid_for));
            words.kept.shrink_to(KEPT_MIN);
        }
    }

    /// How long the keeper sleeps if nobody wakes it, when everything that was due has gone out.
    pub fn nap(&self, keeper: &Keeper, now: Moment) -> Duration {
        let nap = keeper.next_due().map_or(NAP_MAX, |due| due.since(now).min(NAP_MAX));
        self.sleep(now + nap);
        nap
    }

    /// Says until when the keeper sleeps, if nobody wakes it.
    pub fn sleep(&self, until: Moment) {
        self.asleep_until.store(until.as_nanos(), Ordering::SeqCst);
    }

    /// How many leases the keeper has not heard of yet.
    pub fn len(&self) -> usize {
        self.words.all().map(|words| words.kept.len()).sum()
    }

    /// Whether the keeper has heard of everything that is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Tray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tray").field("leases", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Capabilities, Durability, Policy, Terms, TokenRange, Ttl, Waiting, Width};

    use super::*;

    const START: Moment = Moment::from_nanos(1_000_000_000_000);
    const TTL: Duration = Duration::from_secs(30);

    fn keeper() -> Keeper {
        Keeper::new(Policy::new(Capabilities::new("test", Waiting::Poll, Durability::Process)), 7)
    }

    fn lease(n: u8) -> Lease {
        let tokens = TokenRange::above(u64::from(n), Width::ONE).unwrap();
        Lease {
            name: format!("{n}").parse().unwrap(),
            owner: Owner::from_random([n; 16]),
            tokens,
            terms: Terms::exclusive(Ttl::DEFAULT),
        }
    }

    #[test]
    fn the_keeper_hears_of_what_is_still_held_when_it_looks() {
        let (tray, mut keeper) = (Tray::default(), keeper());
        for n in 0..100 {
            _ = tray.keep(lease(n), START, TTL);
        }
        (0..60).for_each(|n| tray.forget(lease(n).owner));
        tray.look(&mut keeper);
        assert_eq!((keeper.len(), tray.len()), (40, 0));
        tray.forget(lease(70).owner);
        assert_eq!(keeper.len(), 40);
        tray.look(&mut keeper);
        assert_eq!(keeper.len(), 39);
    }

    #[test]
    fn the_keeper_sleeps_until_something_is_due_but_not_for_long() {
        let (tray, mut keeper) = (Tray::default(), keeper());
        assert_eq!((tray.len(), tray.is_empty()), (0, true));
        _ = tray.keep(lease(1), START, TTL);
        assert_eq!((tray.len(), tray.is_empty()), (1, false));
        assert_eq!(tray.nap(&keeper, START), NAP_MAX, "it has not heard of it");
        tray.look(&mut keeper);
        assert_eq!(tray.nap(&keeper, START), NAP_MAX);
        let due = keeper.next_due().unwrap();
        let soon = due - Duration::from_millis(10);
        assert_eq!(tray.nap(&keeper, soon), Duration::from_millis(10));
        assert!(!tray.keep(lease(2), soon, TTL), "it looks again before that is due");
        let short = Duration::from_millis(20);
        assert!(tray.keep(lease(3), soon, short), "due in 5 ms at the soonest");
    }

    #[test]
    fn only_what_may_be_due_before_it_looks_again_wakes_the_keeper() {
        let (tray, mut keeper) = (Tray::default(), keeper());
        assert!(tray.keep(lease(1), START, TTL), "it may be looking, and past this one");
        tray.look(&mut keeper);
        assert!(tray.keep(lease(2), START, TTL));
        tray.sleep(START + Duration::from_secs(1));
        assert!(!tray.keep(lease(3), START, TTL));
        assert!(tray.keep(lease(4), START, Duration::from_secs(3)), "due in 0.9 s at the soonest");
        tray.look(&mut keeper);
        assert!(tray.keep(lease(5), START, TTL));
    }
}
