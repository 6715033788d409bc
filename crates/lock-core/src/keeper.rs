//! The pure part of the keeper: which leases are renewed when, and in which batch.
//!
//! One keeper serves all leases of a client. A facade runs it on a thread and a connection of its own: it sleeps until
//! [`Keeper::next_due`], takes a [`Batch`], sends it as one renewal, and reports the answers.

mod admission;

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub use self::admission::Admission;
use crate::policy::Dice;
use crate::{BackendError, Lease, LockName, Moment, Owner, Policy, Renewed};

/// The most leases in one renewal. Chosen: a script for this many keeps a Redis busy for well under a millisecond.
pub const BATCH_MAX: usize = 100;

/// Renewals that are due within this time of each other are sent together.
const TOGETHER: Duration = Duration::from_millis(50);

/// A lease that is held for so long is likely to be held for longer: it is worth a subscription. Chosen: most holds are shorter, and with
/// the keeper's sleep of at most a second, the subscription is made within a second of the grant.
const LASTING: Duration = Duration::from_millis(500);

/// The leases that have to be renewed.
#[derive(Debug)]
pub struct Keeper {
    policy: Policy,
    dice: Dice,
    leases: BTreeMap<ByOwner, Timing>,
    /// The leases whose renewal is not in flight.
    due: BTreeSet<(Moment, ByOwner)>,
    /// The leases that were admitted a moment ago, and when they count as lasting.
    fresh: BTreeSet<(Moment, ByOwner)>,
    lateness: Lateness,
}

/// How late renewals are sent: the time from when the first of a batch was due until the batch was handed out.
///
/// A keeper that is starved, by a busy machine or by a store that answers slowly while it waits, shows here long before
/// a lease is lost: a renewal is due at a third of the validity. It does not include how long the store then takes to
/// answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// The lateness of the last batch.
    pub last: Duration,
    /// The greatest lateness of any batch so far.
    pub max: Duration,
}

/// A lease that is compared and found by its owner alone.
#[derive(Clone, Debug)]
pub struct ByOwner(pub Arc<Lease>);

#[derive(Clone, Copy, Debug)]
struct Timing {
    /// When the next renewal is due, or when the one in flight was due.
    due: Moment,
    valid_for: Duration,
    via: Via,
    /// When it counts as lasting.
    lasts: Moment,
}

/// The connection that a renewal is sent over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// That of the client's own requests, on which the store was heard a moment ago. The keeper may not be connected yet.
    InUse,
    /// The keeper's own.
    Own,
}

/// Leases to renew in one request.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The leases to renew.
    pub leases: Vec<Lease>,
    /// When it was handed out: the renewed validity counts from here.
    pub asked_at: Moment,
    /// How long it may take.
    pub within: Duration,
    /// The connection.
    pub via: Via,
}

/// The answer of a renewal for one lease, for its station.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// The lock.
    pub name: LockName,
    /// Whose lease.
    pub owner: Owner,
    /// When it was asked.
    pub asked_at: Moment,
    /// What the store said, or why it did not.
    pub answer: Result<Renewed, BackendError>,
}

impl Keeper {
    /// An empty keeper; `seed` is any random number, for jitter.
    pub fn new(policy: Policy, seed: u64) -> Self {
        let (leases, due, fresh) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { policy, dice: Dice::new(seed), leases, due, fresh, lateness: Lateness::default() }
    }

    /// Takes a lease in that was just admitted. One that was granted for less than its ttl is renewed
    /// after 100 ms, over the connection in use.
    pub fn start(&mut self, lease: Arc<Lease>, admission: Admission) {
        self.stop(lease.owner);
        let Admission { at, asked_at, valid_for } = admission;
        let lasts = at + LASTING;
        let usual = asked_at + self.period(valid_for);
        let (due, via) = admission.soon(&lease).map_or((usual, Via::Own), |soon| (usual.min(soon), Via::InUse));
        self.fresh.insert((lasts, ByOwner(Arc::clone(&lease))));
        self.schedule(ByOwner(lease), Timing { due, valid_for, via, lasts });
    }

    /// Schedules a renewal now, even if one is in flight: that was sent earlier, and does not count.
    pub fn renew_now(&mut self, now: Moment, owner: Owner) {
        if let Some((lease, timing)) = self.leases.remove_entry(&owner) {
            self.due.remove(&(timing.due, lease.clone()));
            self.schedule(lease, Timing { due: now, ..timing });
        }
    }

    /// A lease that was admitted like this is not due before this.
    pub fn soonest_due(lease: &Lease, admission: Admission) -> Moment {
        let usual = admission.asked_at + soonest(admission.valid_for).max(PAUSE_MIN);
        admission.soon(lease).map_or(usual, |soon| usual.min(soon))
    }

    /// Stops renewing a lease.
    pub fn stop(&mut self, owner: Owner) {
        if let Some((lease, Timing { due, lasts, .. })) = self.leases.remove_entry(&owner) {
            self.due.remove(&(due, lease.clone()));
            self.fresh.remove(&(lasts, lease));
        }
    }

    /// How many leases are renewed.
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// Whether there are no leases to renew.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// When the next renewal is due.
    pub fn next_due(&self) -> Option<Moment> {
        self.due.first().map(|(due, _)| *due)
    }

    /// When the next lease counts as lasting.
    pub fn next_lasting(&self) -> Option<Moment> {
        self.fresh.first().map(|(lasts, _)| *lasts)
    }

    /// A lease that has lasted for half a second: its holder should be notified at once if it is revoked. Each is returned once. Call again
    /// until it is `None`.
    pub fn take_lasting(&mut self, now: Moment) -> Option<Arc<Lease>> {
        self.next_lasting().filter(|lasts| *lasts <= now)?;
        self.fresh.pop_first().map(|(_, ByOwner(lease))| lease)
    }

    /// How late renewals are sent.
    pub fn lateness(&self) -> Lateness {
        self.lateness
    }

    /// Takes the next batch that is due, if one is. Call again until it is `None`.
    ///
    /// Leases share a batch only if their renewals go over the same connection and may take equally long. Otherwise a short
    /// lease would make the renewal of all others time out early, or a long one would let a short one end before its renewal
    /// is retried.
    pub fn take_due(&mut self, now: Moment) -> Option<Batch> {
        let first = self.next_due().filter(|due| *due <= now)?;
        let last = now.since(first);
        self.lateness = Lateness { last, max: self.lateness.max.max(last) };
        let (within, via) = self.due.first().and_then(|(_, lease)| self.way_of(lease))?;
        let soon = self.due.iter().take_while(|(due, _)| *due <= now + TOGETHER);
        let alike = soon.filter(|(_, lease)| self.way_of(lease) == Some((within, via)));
        let together: Vec<_> = alike.take(BATCH_MAX).cloned().collect();
        together.iter().for_each(|one| _ = self.due.remove(one));
        let leases = together.into_iter().map(|(_, ByOwner(lease))| Arc::unwrap_or_clone(lease)).collect();
        Some(Batch { leases, asked_at: now, within, via })
    }

    /// How long the renewal of a lease may take, and what it is sent over.
    fn way_of(&self, lease: &ByOwner) -> Option<(Duration, Via)> {
        Some((self.policy.within(lease.0.terms.ttl), self.leases.get(lease)?.via))
    }

    /// Processes the answer to a batch, and returns what each station has to know.
    ///
    /// An answer whose length differs from the batch's counts as missing: all its leases are tried again.
    pub fn answered(&mut self, now: Moment, batch: Batch, result: Result<Vec<Renewed>, BackendError>) -> Vec<Renewal> {
        let answers: Vec<_> = match result {
            Ok(answers) if answers.len() == batch.leases.len() => {
                answers.into_iter().map(|answer| Some(Ok(answer))).collect()
            }
            Ok(_) => vec![None; batch.leases.len()],
            Err(error) => vec![Some(Err(error)); batch.leases.len()],
        };
        let mut renewals = Vec::with_capacity(batch.leases.len());
        for (lease, answer) in batch.leases.into_iter().zip(answers) {
            self.reschedule(now, lease.owner, batch.asked_at, answer.as_ref());
            let (name, owner) = (lease.name, lease.owner);
            renewals.extend(answer.map(|answer| Renewal { name, owner, asked_at: batch.asked_at, answer }));
        }
        renewals
    }

    fn reschedule(
        &mut self,
        now: Moment,
        owner: Owner,
        asked_at: Moment,
        answer: Option<&Result<Renewed, BackendError>>,
    ) {
        let Some((lease, timing)) = self.leases.get_key_value(&owner) else { return };
        let (one, timing) = ((timing.due, lease.clone()), *timing);
        // A lease that was added again meanwhile already has its next renewal.
        if self.due.contains(&one) {
            return;
        }
        let lease = one.1;
        match answer {
            Some(Ok(Renewed::Renewed { valid_for, .. })) => {
                let (due, valid_for) = (asked_at + self.period(*valid_for), *valid_for);
                self.schedule(lease, Timing { due, valid_for, via: Via::Own, ..timing });
            }
            Some(Ok(Renewed::NotHeld | Renewed::Revoked { .. })) => self.stop(owner),
            Some(Ok(Renewed::Unsure(_)) | Err(_)) | None => {
                let pause = self.dice.jittered(timing.valid_for / RETRY_PART);
                let due = now + pause.clamp(PAUSE_MIN, RETRY_MAX);
                self.schedule(lease, Timing { due, via: Via::Own, ..timing });
            }
        }
    }

    /// A third of the validity, less a little jitter, but never without a pause.
    fn period(&mut self, valid_for: Duration) -> Duration {
        (soonest(valid_for) + self.dice.jittered(valid_for / 30)).max(PAUSE_MIN)
    }

    fn schedule(&mut self, lease: ByOwner, timing: Timing) {
        self.due.insert((timing.due, lease.clone()));
        self.leases.insert(lease, timing);
    }
}

impl Borrow<Owner> for ByOwner {
    fn borrow(&self) -> &Owner {
        &self.0.owner
    }
}

impl Ord for ByOwner {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.owner.cmp(&other.0.owner)
    }
}

impl PartialOrd for ByOwner {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByOwner {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ByOwner {}

/// A third of the validity, less the most that jitter adds.
fn soonest(valid_for: Duration) -> Duration {
    valid_for / 3 - valid_for / 30
}

/// A renewal that failed is retried after this part of the validity.
const RETRY_PART: u32 = 30;
/// It is retried after this time at the latest.
const RETRY_MAX: Duration = Duration::from_millis(500);
/// No lease is renewed or retried sooner than this, whatever times the store reports: with a validity of zero the
/// keeper would ask without a pause.
const PAUSE_MIN: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
