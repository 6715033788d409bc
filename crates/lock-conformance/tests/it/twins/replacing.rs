//! Twins that are wrong about replacing a lease in one step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use lock_core::{Answer, BackendError, BlockingBackend, Certainty, Claim, Lease, Owner, ReleaseRequest, Renewed};

use super::cover::{Breakage, WITHIN};
use super::twins;

twins! {
    one_that_replaces_in_two_steps: InTwoSteps,
        caught by [
            "replacing::a_lease_is_replaced_in_one_step_past_the_queue",
            "replacing::only_a_lease_that_is_held_is_replaced", "ages::a_replacement_is_as_old_as_the_lease_before_it"
        ],
        spared by ["replacing::a_replacement_that_is_asked_again_is_the_same"];
    one_that_replaces_once: OnlyOnce,
        caught by ["replacing::a_replacement_that_is_asked_again_is_the_same"],
        spared by ["replacing::a_lease_is_replaced_in_one_step_past_the_queue"];
    one_that_lets_the_old_owner_renew: RenewsForBoth,
        caught by ["replacing::the_owner_that_was_replaced_has_nothing"],
        spared by ["replacing::only_a_lease_that_is_held_is_replaced"];
}

/// Frees the lock, and asks for it like anybody.
#[derive(Default)]
pub(super) struct InTwoSteps;

impl Breakage for InTwoSteps {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        if let Some(owner) = claim.replaces {
            store.release(&ReleaseRequest { owner, ..claim.release(Certainty::Unknown) }, WITHIN)?;
        }
        store.acquire(&Claim { replaces: None, ..claim.clone() }, WITHIN)
    }
}

/// Forgets that it did so before.
#[derive(Default)]
pub(super) struct OnlyOnce(Mutex<BTreeSet<Owner>>);

impl Breakage for OnlyOnce {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let again = claim.replaces.is_some() && !self.0.lock().unwrap().insert(claim.owner);
        let owner = if again { claim.owner.kept() } else { claim.owner };
        store.acquire(&Claim { owner, ..claim.clone() }, WITHIN)
    }
}

/// Takes the old lease for the new one in renewals.
#[derive(Default)]
struct RenewsForBoth(Mutex<BTreeMap<Owner, Lease>>);

impl Breakage for RenewsForBoth {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        if let (Some(old), Answer::Granted { lease, .. }) = (claim.replaces, &answer) {
            self.0.lock().unwrap().insert(old, lease.clone());
        }
        Ok(answer)
    }

    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        let replaced = self.0.lock().unwrap();
        let leases: Vec<_> = leases.iter().map(|lease| replaced.get(&lease.owner).unwrap_or(lease).clone()).collect();
        store.renew(&leases, WITHIN)
    }
}
