//! The pure part of the keeper: which leases are renewed when, and in which batch.
//!
//! One keeper serves all leases of a client. A face runs it on a thread and a connection of its own: it sleeps until
//! [`Keeper::next_due`], takes a [`Batch`], sends it as one renewal, and gives the answers back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::policy::Dice;
use crate::{BackendError, Lease, LockName, Moment, Owner, Policy, Renewed};

/// The most leases in one renewal. Chosen: a script of so many keeps a Redis busy for well under a millisecond.
pub const BATCH_MAX: usize = 100;

/// Renewals that are due within so much of each other go out together.
const TOGETHER: Duration = Duration::from_millis(50);

/// The leases that have to be renewed.
#[derive(Debug)]
pub struct Keeper {
    policy: Policy,
    dice: Dice,
    kept: BTreeMap<Owner, Kept>,
    due: BTreeSet<(Moment, Owner)>,
    /// What whoever renews sleeps for; something earlier has to wake it.
    planned: Option<Moment>,
    lateness_max: Duration,
}

#[derive(Debug)]
struct Kept {
    lease: Lease,
    /// When the next renewal is due; `None` while one is under way.
    due: Option<Moment>,
    valid_for: Duration,
}

/// Leases to renew in one request.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What to send.
    pub leases: Vec<Lease>,
    /// When it was handed out: the renewed validity counts from here.
    pub asked_at: Moment,
    /// How long it may take.
    pub within: Duration,
}

/// What a renewal said of one lease, for its station.
#[derive(Clone, Debug)]
pub struct Tidings {
    /// The lock.
    pub name: LockName,
    /// Whose lease.
    pub owner: Owner,
    /// When it was asked.
    pub asked_at: Moment,
    /// What the store said, or why it did not.
    pub standing: Result<Renewed, BackendError>,
}

impl Keeper {
    /// An empty keeper; `seed` is any random number, for jitter.
    pub fn new(policy: Policy, seed: u64) -> Self {
        Self {
            policy,
            dice: Dice::new(seed),
            kept: BTreeMap::new(),
            due: BTreeSet::new(),
            planned: None,
            lateness_max: Duration::ZERO,
        }
    }

    /// Takes a lease in that was asked for at `asked_at` and granted for `valid_for`.
    ///
    /// Tells whether whoever renews has to be woken, because this is due before anything that it plans for.
    #[must_use]
    pub fn keep(&mut self, lease: Lease, asked_at: Moment, valid_for: Duration) -> bool {
        let owner = lease.owner;
        self.forget(owner);
        self.kept.insert(owner, Kept { lease, due: None, valid_for });
        let due = asked_at + self.period(valid_for);
        self.schedule(owner, due);
        self.planned.is_none_or(|planned| due < planned)
    }

    /// Lets a lease go.
    pub fn forget(&mut self, owner: Owner) {
        if let Some(Kept { due: Some(due), .. }) = self.kept.remove(&owner) {
            self.due.remove(&(due, owner));
        }
    }

    /// How many leases are kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// When the next renewal is due.
    pub fn next_due(&self) -> Option<Moment> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Until when whoever renews may sleep, if nothing wakes it before.
    pub fn plan(&mut self) -> Option<Moment> {
        self.planned = self.next_due();
        self.planned
    }

    /// How late the latest renewal went out, measured against its due time: a busy machine shows here first.
    pub fn lateness_max(&self) -> Duration {
        self.lateness_max
    }

    /// Takes the next batch that is due, if one is. Call again until it is `None`.
    ///
    /// Leases that allow a renewal the same time share a batch: a short one would have all others give up early, and a
    /// long one would have a short one end before its renewal is tried again.
    pub fn take_due(&mut self, now: Moment) -> Option<Batch> {
        let first = self.next_due().filter(|due| *due <= now)?;
        self.lateness_max = self.lateness_max.max(now.since(first));
        let within = self.due.first().and_then(|(_, owner)| self.within(owner))?;
        let soon = self.due.iter().take_while(|(due, _)| *due <= now + TOGETHER);
        let alike = soon.filter(|(_, owner)| self.within(owner) == Some(within));
        let together: Vec<_> = alike.take(BATCH_MAX).copied().collect();
        let mut leases = Vec::with_capacity(together.len());
        for (due, owner) in together {
            self.due.remove(&(due, owner));
            if let Some(kept) = self.kept.get_mut(&owner) {
                kept.due = None;
                leases.push(kept.lease.clone());
            }
        }
        Some(Batch { leases, asked_at: now, within })
    }

    fn within(&self, owner: &Owner) -> Option<Duration> {
        self.kept.get(owner).map(|kept| self.policy.within(kept.lease.ttl))
    }

    /// Takes the answer to a batch in, and tells what each station has to know.
    ///
    /// An answer of another length than the batch counts as none: all its leases are tried again.
    pub fn answered(&mut self, now: Moment, batch: Batch, result: Result<Vec<Renewed>, BackendError>) -> Vec<Tidings> {
        let answers: Vec<_> = match result {
            Ok(answers) if answers.len() == batch.leases.len() => {
                answers.into_iter().map(|answer| Some(Ok(answer))).collect()
            }
            Ok(_) => vec![None; batch.leases.len()],
            Err(error) => vec![Some(Err(error)); batch.leases.len()],
        };
        let mut tidings = Vec::with_capacity(batch.leases.len());
        for (lease, standing) in batch.leases.into_iter().zip(answers) {
            self.reschedule(now, lease.owner, batch.asked_at, standing.as_ref());
            let (name, owner) = (lease.name, lease.owner);
            tidings.extend(standing.map(|standing| Tidings { name, owner, asked_at: batch.asked_at, standing }));
        }
        tidings
    }

    fn reschedule(
        &mut self,
        now: Moment,
        owner: Owner,
        asked_at: Moment,
        standing: Option<&Result<Renewed, BackendError>>,
    ) {
        // A lease that was kept anew meanwhile has its next renewal already.
        let Some(kept) = self.kept.get_mut(&owner).filter(|kept| kept.due.is_none()) else { return };
        match standing {
            Some(Ok(Renewed::Renewed { valid_for })) => {
                kept.valid_for = *valid_for;
                let due = asked_at + self.period(*valid_for);
                self.schedule(owner, due);
            }
            Some(Ok(Renewed::NotHeld)) => self.forget(owner),
            Some(Err(_)) | None => {
                let pause = self.dice.jittered(kept.valid_for / RETRY_PART);
                self.schedule(owner, now + pause.clamp(PAUSE_MIN, RETRY_MAX));
            }
        }
    }

    /// A third of the validity, less a little jitter, but never without a pause.
    fn period(&mut self, valid_for: Duration) -> Duration {
        let third = valid_for / 3;
        (third - third / 10 + self.dice.jittered(third / 10)).max(PAUSE_MIN)
    }

    fn schedule(&mut self, owner: Owner, due: Moment) {
        if let Some(kept) = self.kept.get_mut(&owner) {
            kept.due = Some(due);
            self.due.insert((due, owner));
        }
    }
}

/// A renewal that failed is tried again after this part of the validity ...
const RETRY_PART: u32 = 30;
/// ... but at least so often.
const RETRY_MAX: Duration = Duration::from_millis(500);
/// No lease is renewed or tried again sooner than this, whatever the store says of times: a validity of nothing would
/// have the keeper ask without a pause.
const PAUSE_MIN: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capabilities, Durability, Effect, ErrorKind, Operation, TokenRange, Ttl, Waiting, Width};

    const START: Moment = Moment::from_nanos(1_000_000_000_000);
    const TTL: Duration = Duration::from_secs(30);

    fn keeper() -> Keeper {
        Keeper::new(Policy::new(Capabilities::new("test", Waiting::Poll, Durability::Process)), 7)
    }

    fn lease(n: u8) -> Lease {
        let tokens = TokenRange::above(u64::from(n), Width::ONE).unwrap();
        Lease {
            name: format!("lock {n}").parse().unwrap(),
            owner: Owner::from_random([n; 16]),
            tokens,
            ttl: Ttl::DEFAULT,
        }
    }

    fn keeping(leases: u8) -> Keeper {
        let mut keeper = keeper();
        for n in 0..leases {
            assert!(keeper.keep(lease(n), START, TTL), "nothing is planned yet");
        }
        keeper
    }

    fn seconds(n: u64) -> Moment {
        START + Duration::from_secs(n)
    }

    #[test]
    fn a_lease_is_renewed_at_a_third_of_its_validity() {
        let mut keeper = keeping(1);
        assert!(keeper.take_due(seconds(9)).is_none());
        let due = keeper.next_due().unwrap();
        assert!(due >= seconds(9) && due <= seconds(10), "{due:?}");
        let batch = keeper.take_due(seconds(10)).unwrap();
        assert_eq!((batch.leases.len(), batch.asked_at, batch.within), (1, seconds(10), Duration::from_secs(1)));
        assert_eq!(keeper.next_due(), None);
        assert_eq!(keeper.lateness_max(), seconds(10).since(due));
    }

    #[test]
    fn an_answered_renewal_counts_from_asking() {
        let mut keeper = keeping(1);
        let batch = keeper.take_due(seconds(10)).unwrap();
        let tidings = keeper.answered(seconds(11), batch, Ok(vec![Renewed::Renewed { valid_for: TTL }]));
        assert!(matches!(tidings[0].standing, Ok(Renewed::Renewed { .. })));
        assert_eq!(tidings[0].asked_at, seconds(10));
        let due = keeper.next_due().unwrap();
        assert!(due >= seconds(19) && due <= seconds(20), "{due:?}");
    }

    #[test]
    fn what_is_due_together_goes_out_together_in_bounded_batches() {
        let mut keeper = keeping(250);
        let late = seconds(60);
        let sizes: Vec<_> = std::iter::from_fn(|| keeper.take_due(late)).map(|batch| batch.leases.len()).collect();
        assert_eq!(sizes, [100, 100, 50]);
        assert_eq!(keeper.len(), 250);
    }

    #[test]
    fn an_error_is_retried_soon_and_told() {
        let mut keeper = keeping(1);
        let batch = keeper.take_due(seconds(10)).unwrap();
        let error = BackendError::new("test", Operation::Renew, ErrorKind::Unreachable, Effect::None, "gone");
        let tidings = keeper.answered(seconds(11), batch, Err(error));
        assert!(tidings[0].standing.is_err());
        let due = keeper.next_due().unwrap();
        assert!(due > seconds(11) && due <= seconds(12), "{due:?}");
    }

    #[test]
    fn a_lost_lease_is_told_and_not_renewed_again() {
        let mut keeper = keeping(2);
        let batch = keeper.take_due(seconds(10)).unwrap();
        assert_eq!(batch.leases.len(), 2);
        let answers = vec![Renewed::NotHeld, Renewed::Renewed { valid_for: TTL }];
        let tidings = keeper.answered(seconds(10), batch, Ok(answers));
        assert!(matches!(tidings[0].standing, Ok(Renewed::NotHeld)));
        assert_eq!(keeper.len(), 1);
    }

    #[test]
    fn a_lease_that_was_let_go_under_way_stays_gone() {
        let mut keeper = keeping(1);
        let batch = keeper.take_due(seconds(10)).unwrap();
        keeper.forget(batch.leases[0].owner);
        keeper.answered(seconds(10), batch, Ok(vec![Renewed::Renewed { valid_for: TTL }]));
        assert!(keeper.is_empty() && keeper.next_due().is_none());
    }

    #[test]
    fn a_lease_that_is_kept_anew_has_one_renewal_only() {
        let mut keeper = keeping(1);
        let batch = keeper.take_due(seconds(10)).unwrap();
        for _ in 0..2 {
            assert!(keeper.keep(lease(0), seconds(10), TTL));
        }
        keeper.answered(seconds(10), batch, Ok(vec![Renewed::Renewed { valid_for: TTL }]));
        assert_eq!(std::iter::from_fn(|| keeper.take_due(seconds(20))).count(), 1);
        assert_eq!(keeper.next_due(), None);
    }

    #[test]
    fn an_answer_that_is_too_short_is_tried_again() {
        let mut keeper = keeping(1);
        let batch = keeper.take_due(seconds(10)).unwrap();
        assert!(keeper.answered(seconds(10), batch, Ok(Vec::new())).is_empty());
        assert!(keeper.next_due().unwrap() <= seconds(11));
    }

    #[test]
    fn an_answer_of_another_length_says_nothing_of_any_lease() {
        for length in [1, 3] {
            let mut keeper = keeping(2);
            let batch = keeper.take_due(seconds(10)).unwrap();
            assert!(keeper.answered(seconds(10), batch, Ok(vec![Renewed::NotHeld; length])).is_empty());
            assert_eq!(keeper.len(), 2);
            assert!(keeper.next_due().unwrap() <= seconds(11));
        }
    }

    #[test]
    fn leases_that_allow_less_time_go_out_by_themselves() {
        let mut keeper = keeping(1);
        let short = Lease { ttl: "100ms".parse().unwrap(), ..lease(1) };
        _ = keeper.keep(short, START, Duration::from_millis(100));
        _ = keeper.keep(lease(2), START, TTL);
        let batches: Vec<_> = std::iter::from_fn(|| keeper.take_due(seconds(10))).collect();
        let sizes: Vec<_> = batches.iter().map(|batch| (batch.leases.len(), batch.within.as_millis())).collect();
        assert_eq!(sizes, [(1, 16), (2, 1000)]);
    }

    #[test]
    fn a_validity_of_nothing_is_not_renewed_without_a_pause() {
        let mut keeper = keeping(1);
        let nothing = Renewed::Renewed { valid_for: Duration::ZERO };
        let error = BackendError::new("test", Operation::Renew, ErrorKind::Unreachable, Effect::None, "gone");
        for answer in [Ok(vec![nothing]), Err(error)] {
            let now = seconds(10).max(keeper.next_due().unwrap());
            let batch = keeper.take_due(now).unwrap();
            keeper.answered(now, batch, answer);
            assert!(keeper.next_due().unwrap().since(now) >= Duration::from_millis(5));
        }
    }

    #[test]
    fn only_what_is_due_earlier_wakes() {
        let mut keeper = keeping(1);
        assert_eq!(keeper.plan(), keeper.next_due());
        assert!(!keeper.keep(lease(1), seconds(5), TTL));
        assert!(keeper.keep(lease(2), START, TTL / 2));
        keeper.forget(lease(2).owner);
        assert!(keeper.keep(lease(2), START, TTL / 2), "a plan is changed by planning only");
    }
}
