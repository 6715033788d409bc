//! Nobody is overtaken by a claim that reached the store later.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::{Answer, Claim, LockName, Moment, Owner};

/// Who waits, in the order in which the first claims came, and until when the store keeps the place.
#[derive(Debug, Default)]
pub(super) struct InTurn {
    places: BTreeMap<LockName, Vec<(Owner, Moment)>>,
    granted: BTreeSet<Owner>,
}

impl InTurn {
    /// A claim was answered, and these owners were handed leases of the same name in the same step.
    pub(super) fn answered(
        &mut self,
        now: Moment,
        claim: &Claim,
        answer: Option<&Answer>,
        mut granted: Vec<Owner>,
    ) -> Result<(), String> {
        match answer {
            Some(Answer::Granted { lease, .. }) if claim.replaces.is_some() => _ = self.granted.insert(lease.owner),
            Some(Answer::Granted { lease, .. }) => granted.push(lease.owner),
            Some(Answer::Queued { valid_for, .. }) => self.waits(now, claim, now + *valid_for),
            Some(Answer::Busy { .. }) => self.left(&claim.name, claim.owner),
            None => {}
        }
        self.granted(now, &claim.name, &granted)
    }

    /// These owners got leases, perhaps again.
    pub(super) fn granted(&mut self, now: Moment, name: &LockName, owners: &[Owner]) -> Result<(), String> {
        let places = self.places.entry(name.clone()).or_default();
        places.retain(|(_, ends)| now < *ends);
        let waiting = std::mem::take(places);
        let is_passed = |owner: &Owner| {
            let before = waiting.iter().take_while(|(other, _)| other != owner);
            before.filter(|(other, _)| !owners.contains(other)).count() > 0
        };
        let passing = owners.iter().find(|owner| !self.granted.contains(*owner) && is_passed(owner)).copied();
        places.extend(waiting.iter().filter(|(owner, _)| !owners.contains(owner)));
        self.granted.extend(owners);
        match passing {
            Some(owner) => Err(format!("{owner:?} was granted {name} before others that came earlier: {waiting:?}")),
            None => Ok(()),
        }
    }

    fn waits(&mut self, now: Moment, claim: &Claim, until: Moment) {
        // What it had is over.
        self.granted.remove(&claim.owner);
        let places = self.places.entry(claim.name.clone()).or_default();
        places.retain(|(_, ends)| now < *ends);
        match places.iter_mut().find(|(owner, _)| *owner == claim.owner) {
            Some((_, ends)) => *ends = until,
            None => places.push((claim.owner, until)),
        }
    }

    /// An owner gave up.
    pub(super) fn left(&mut self, name: &LockName, owner: Owner) {
        self.places.entry(name.clone()).or_default().retain(|(waiting, _)| *waiting != owner);
    }

    /// Who waits, as far as is known.
    pub(super) fn waiting(&self, name: &LockName) -> Vec<Owner> {
        self.places.get(name).into_iter().flatten().map(|(owner, _)| *owner).collect()
    }
}
