//! The owners of a station's claims, until it is certain that the store has forgotten them.

use std::collections::BTreeMap;

use lock_core::station::{Action, ActionId, Input, Reply, Request};
use lock_core::{Moment, Owner};

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    owners: BTreeMap<Owner, Parted>,
    releases: BTreeMap<ActionId, Owner>,
}

/// Whether the owner was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parted {
    /// It was not: the store never had anything of it, by what it answered.
    No,
    /// It was, and nobody knows what came of that. By then its lease is over anyway.
    Asked {
        over: Moment,
    },
    Answered,
}

impl Ledger {
    pub(crate) fn ran(&mut self, now: Moment, action: &Action) {
        match &action.request {
            Request::Acquire(claim) => _ = self.owners.insert(claim.owner, Parted::No),
            Request::Release(parting) => {
                let parted = self.owners.entry(parting.owner).or_insert(Parted::No);
                if *parted == Parted::No {
                    *parted = Parted::Asked { over: now + parting.ttl.get() };
                }
                self.releases.insert(action.id, parting.owner);
            }
        }
    }

    pub(crate) fn heard(&mut self, input: &Input) {
        let Input::Reply(id, Reply::Release(result)) = input else { return };
        if let (Some(owner), Ok(_)) = (self.releases.remove(id), result) {
            self.owners.insert(owner, Parted::Answered);
        }
    }

    /// The owners that the store must have forgotten, now that the station is idle. Asked once: the others could not be
    /// released for as long as their leases last, and end by themselves.
    pub(crate) fn take_settled(&mut self, now: Moment) -> Vec<Owner> {
        let owners = std::mem::take(&mut self.owners).into_iter();
        let settled = |parted: &Parted| match parted {
            Parted::No | Parted::Answered => true,
            Parted::Asked { over } => now < *over,
        };
        owners.filter(|(_, parted)| settled(parted)).map(|(owner, _)| owner).collect()
    }

    /// It is too early to ask about this one: a claim of it is still under way.
    pub(crate) fn put_back(&mut self, owner: Owner) {
        self.owners.insert(owner, Parted::Answered);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }
}
