//! A lock that is kept after its release is admitted to nobody before its time.

use std::collections::BTreeMap;

use lock_core::{LockName, Owner};

use crate::clock::Time;

#[derive(Debug, Default)]
pub(super) struct Kept {
    /// What those want who left.
    wanted: BTreeMap<Owner, Time>,
    /// What the store knows of that.
    until: BTreeMap<LockName, Time>,
}

impl Kept {
    pub(super) fn wanted(&mut self, owners: impl Iterator<Item = Owner>, until: Time) {
        self.wanted.extend(owners.map(|owner| (owner, until)));
    }

    pub(super) fn begun(&mut self, name: &LockName, owner: Owner) {
        if let Some(until) = self.wanted.get(&owner) {
            let known = self.until.entry(name.clone()).or_insert(*until);
            *known = (*until).max(*known);
        }
    }

    /// Nothing is kept there any more.
    pub(super) fn ended(&mut self, name: &LockName) {
        self.until.remove(name);
    }

    /// Nothing is kept any more.
    pub(super) fn all_ended(&mut self) {
        self.until.clear();
    }

    pub(super) fn check(&self, now: Time, name: &LockName) -> Result<(), String> {
        match self.until.get(name).filter(|until| now < **until) {
            Some(until) => Err(format!("{name} was admitted at {now:?}, and is kept until {until:?}")),
            None => Ok(()),
        }
    }
}
