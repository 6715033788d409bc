//! The owners of a station's claims, until it is certain that the store has forgotten them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lock_core::station::{Action, ActionId, Input, Reply, Request};
use lock_core::{Certainty, Moment, NameKind, Owner, StoreEvent, Waiting};

#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) waiting: Waiting,
    /// Whether what the store keeps ends with a session, and not by itself.
    has_session: bool,
    owners: BTreeMap<Owner, Parted>,
    releases: BTreeMap<ActionId, Owner>,
    /// The owner of the last action, if it was its first.
    new: Option<Owner>,
    /// Those of leases that were adopted, or asked for. Of them there may be more.
    adopted: BTreeSet<Owner>,
    /// Whether permits were ever asked for.
    pub(crate) permits: bool,
}

/// Whether the owner was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parted {
    /// It was not: according to its answers, the store never had anything of it.
    No,
    /// It was, with an unknown outcome. By then its lease has expired anyway.
    Asked {
        over: Moment,
        certainty: Certainty,
    },
    Answered,
}

impl Ledger {
    pub(crate) fn new(waiting: Waiting, has_session: bool) -> Self {
        Self {
            waiting,
            has_session,
            owners: BTreeMap::new(),
            releases: BTreeMap::new(),
            new: None,
            adopted: BTreeSet::new(),
            permits: false,
        }
    }

    /// The owners whose release was not answered yet, and whether their claims were answered.
    pub(crate) fn owed(&self, now: Moment) -> impl Iterator<Item = (Owner, Certainty)> {
        self.owners.iter().filter_map(move |(owner, parted)| match parted {
            Parted::Asked { over, certainty } if now < *over => Some((*owner, *certainty)),
            Parted::No | Parted::Asked { .. } | Parted::Answered => None,
        })
    }

    pub(crate) fn ran(&mut self, now: Moment, action: &Action) {
        match &action.request {
            Request::Acquire(claim) => {
                let known = self.owners.insert(claim.owner, Parted::No);
                self.new = Some(claim.owner).filter(|_| known.is_none());
                self.permits |= claim.terms.mode.name_kind() == NameKind::Semaphore;
            }
            Request::Release(request) => {
                let parted = self.owners.entry(request.owner).or_insert(Parted::No);
                if *parted == Parted::No {
                    let lasts = if self.has_session { Duration::MAX } else { request.terms.ttl.get() };
                    *parted = Parted::Asked { over: now + lasts, certainty: request.certainty };
                }
                self.releases.insert(action.id, request.owner);
            }
        }
    }

    /// This owner asks for a lease in place of another owner's, which somebody `here` holds or not.
    pub(crate) fn replaces(&mut self, owner: Owner, old: Owner, is_held_here: bool) {
        if !is_held_here || self.adopted.contains(&old) {
            self.adopted.insert(owner);
        }
    }

    /// Whether this is the owner of a lease that was adopted, or asked for.
    pub(crate) fn is_adopted(&self, owner: Owner) -> bool {
        self.adopted.contains(&owner)
    }

    /// Whether this owner asks for the first time.
    pub(crate) fn is_new(&self, owner: Owner) -> bool {
        self.new == Some(owner)
    }

    pub(crate) fn heard(&mut self, input: &Input) {
        if matches!(input, Input::Event(StoreEvent::SessionEnded)) {
            // What is left of them ends with the session.
            self.owners.clear();
            self.releases.clear();
        }
        let Input::Reply(id, Reply::Release(result)) = input else { return };
        let is_final = result.as_ref().map_or_else(|error| !error.kind().is_transient() && !self.has_session, |_| true);
        if let Some(owner) = self.releases.remove(id).filter(|_| is_final) {
            self.owners.insert(owner, Parted::Answered);
        }
    }

    /// The owners that the store must have forgotten, now that the station is idle. Each is returned once. The others
    /// could not be released for as long as their leases last, and expire by themselves.
    pub(crate) fn take_settled(&mut self, now: Moment) -> Vec<Owner> {
        let owners = std::mem::take(&mut self.owners).into_iter();
        let settled = |parted: &Parted| match parted {
            Parted::No | Parted::Answered => true,
            Parted::Asked { over, .. } => now < *over,
        };
        owners.filter(|(_, parted)| settled(parted)).map(|(owner, _)| owner).collect()
    }

    /// It is too early to ask about this one: a claim of it is still in flight.
    pub(crate) fn put_back(&mut self, owner: Owner) {
        self.owners.insert(owner, Parted::Answered);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }
}
