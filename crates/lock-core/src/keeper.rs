//! The pure part of the keeper: which leases are renewed when, and in which batch.
//!
//! One keeper serves all leases of a client. A facade runs it on a thread and a connection of its own: it sleeps until
//! [`Keeper::next_due`], takes a [`Batch`], sends it as one renewal, and reports the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::policy::Dice;
use crate::{BackendError, Lease, LockName, Moment, Owner, Policy, Renewed};

/// The most leases in one renewal. Chosen: a script for this many keeps a Redis busy for well under a millisecond.
pub const BATCH_MAX: usize = 100;

/// Renewals that are due within this time of each other are sent together.
const TOGETHER: Duration = Duration::from_millis(50);

/// The leases that have to be renewed.
#[derive(Debug)]
pub struct Keeper {
    policy: Policy,
    dice: Dice,
    kept: BTreeMap<Owner, Kept>,
    due: BTreeSet<(Moment, Owner)>,
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

#[derive(Debug)]
struct Kept {
    lease: Arc<Lease>,
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
        let lateness = Lateness::default();
        Self { policy, dice: Dice::new(seed), kept: BTreeMap::new(), due: BTreeSet::new(), lateness }
    }

    /// Takes a lease in that was asked for at `asked_at` and granted for `valid_for`.
    pub fn keep(&mut self, lease: Arc<Lease>, asked_at: Moment, valid_for: Duration) {
        let owner = lease.owner;
        self.forget(owner);
        self.kept.insert(owner, Kept { lease, due: None, valid_for });
        let due = asked_at + self.period(valid_for);
        self.schedule(owner, due);
    }

    /// No lease that was requested then and granted for that long is due before this.
    pub fn soonest_due(asked_at: Moment, valid_for: Duration) -> Moment {
        asked_at + soonest(valid_for).max(PAUSE_MIN)
    }

    /// Stops renewing a lease.
    pub fn forget(&mut self, owner: Owner) {
        if let Some(Kept { due: Some(due), .. }) = self.kept.remove(&owner) {
            self.due.remove(&(due, owner));
        }
    }

    /// How many leases are renewed.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there are no leases to renew.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// When the next renewal is due.
    pub fn next_due(&self) -> Option<Moment> {
        self.due.first().map(|(due, _)| *due)
    }

    /// How late renewals are sent.
    pub fn lateness(&self) -> Lateness {
        self.lateness
    }

    /// Takes the next batch that is due, if one is. Call again until it is `None`.
    ///
    /// Leases share a batch only if their renewals may take equally long. Otherwise a short lease would make the
    /// renewal of all others time out early, or a long one would let a short one end before its renewal is retried.
    pub fn take_due(&mut self, now: Moment) -> Option<Batch> {
        let first = self.next_due().filter(|due| *due <= now)?;
        let last = now.since(first);
        self.lateness = Lateness { last, max: self.lateness.max.max(last) };
        let within = self.due.first().and_then(|(_, owner)| self.within(owner))?;
        let soon = self.due.iter().take_while(|(due, _)| *due <= now + TOGETHER);
        let alike = soon.filter(|(_, owner)| self.within(owner) == Some(within));
        let together: Vec<_> = alike.take(BATCH_MAX).copied().collect();
        let mut leases = Vec::with_capacity(together.len());
        for (due, owner) in together {
            self.due.remove(&(due, owner));
            if let Some(kept) = self.kept.get_mut(&owner) {
                kept.due = None;
                leases.push(Lease::clone(&kept.lease));
            }
        }
        Some(Batch { leases, asked_at: now, within })
    }

    fn within(&self, owner: &Owner) -> Option<Duration> {
        self.kept.get(owner).map(|kept| self.policy.within(kept.lease.terms.ttl))
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
        // A lease that was added again meanwhile already has its next renewal.
        let Some(kept) = self.kept.get_mut(&owner).filter(|kept| kept.due.is_none()) else { return };
        match answer {
            Some(Ok(Renewed::Renewed { valid_for, .. })) => {
                kept.valid_for = *valid_for;
                let due = asked_at + self.period(*valid_for);
                self.schedule(owner, due);
            }
            Some(Ok(Renewed::NotHeld)) => self.forget(owner),
            Some(Ok(Renewed::Unsure) | Err(_)) | None => {
                let pause = self.dice.jittered(kept.valid_for / RETRY_PART);
                self.schedule(owner, now + pause.clamp(PAUSE_MIN, RETRY_MAX));
            }
        }
    }

    /// A third of the validity, less a little jitter, but never without a pause.
    fn period(&mut self, valid_for: Duration) -> Duration {
        (soonest(valid_for) + self.dice.jittered(valid_for / 30)).max(PAUSE_MIN)
    }

    fn schedule(&mut self, owner: Owner, due: Moment) {
        if let Some(kept) = self.kept.get_mut(&owner) {
            kept.due = Some(due);
            self.due.insert((due, owner));
        }
    }
}

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
