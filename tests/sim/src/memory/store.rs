//! The store at the other end of the network, and what is said to it.

use std::collections::BTreeMap;

use lock_core::{
    Answer, BackendError, Claim, Event, LockName, Mode, Moment, Owner, ReleaseRequest, Released, Terms, Ttl,
};
use lock_memory::store::{ClientId, HandOver, Hint, Hold, Store};

use super::Mistake;
use super::asked::{Ask, Say};
use super::twin::Twin;
use crate::network::{ConnId, StoreId, Talk};

/// There is only one.
pub(super) const STORE: StoreId = StoreId(0);

/// Processes and the store.
#[derive(Debug)]
pub(crate) enum Words {}

impl Talk for Words {
    type Ask = Ask;
    type Say = Say;
}

/// The store, and where its clients listen.
#[derive(Debug, Default)]
pub(super) struct Server {
    store: Store,
    /// The connection over which a client last asked for a lock.
    listening: BTreeMap<ClientId, ConnId>,
    pub(super) mistake: Option<Mistake>,
    /// Who has replaced each lease, where several can.
    adopted: BTreeMap<Owner, Owner>,
    twin: Twin,
}

impl Server {
    pub(super) fn new(mistake: Option<Mistake>) -> Self {
        Self { mistake, ..Self::default() }
    }

    /// Runs what is asked, and tells what is to be sent over which connection.
    pub(super) fn run(&mut self, now: Moment, conn: ConnId, client: ClientId, ask: &Ask) -> (Say, Vec<Message>) {
        self.twin.before(self.mistake, now, &mut self.store, ask);
        let say = match ask {
            Ask::Acquire(claim) => {
                self.listening.insert(client, conn);
                Say::Acquire(self.acquire(now, client, claim))
            }
            Ask::Renew(leases) => Say::Renew(self.store.renew(now, leases)),
            Ask::Release(request) => Say::Release(self.release(now, client, request)),
        };
        let (mistake, twin) = (self.mistake, &mut self.twin);
        let granted = self.store.take_hand_overs().into_iter().map(|HandOver { client, lease, valid_for, wanted }| {
            (client, Event::Granted { lease: twin.granted(mistake, lease), valid_for, wanted })
        });
        let hints = self.store.take_hints().into_iter().map(|Hint { client, event }| (client, event));
        let message = |(client, event)| Message { conn: self.listening.get(&client).copied(), event };
        (say, granted.chain(hints).map(message).collect())
    }

    fn acquire(&mut self, now: Moment, client: ClientId, claim: &Claim) -> Result<Answer, BackendError> {
        match claim.replaces {
            Some(old) if self.mistake == Some(Mistake::InTwoSteps) => {
                let (name, terms, certainty) = (claim.name.clone(), claim.terms, lock_core::Certainty::Unknown);
                self.store.release(now, &ReleaseRequest { name, owner: old, terms, certainty, keep: None })?;
                self.store.acquire(now, client, &Claim { replaces: None, ..claim.clone() })
            }
            Some(old) if self.mistake == Some(Mistake::AdoptedTwice) => {
                let present = self.adopted.insert(old, claim.owner).filter(|present| *present != claim.owner);
                let replaces = present.or(claim.replaces);
                self.store.acquire(now, client, &Claim { replaces, ..claim.clone() })
            }
            Some(old) if self.mistake == Some(Mistake::UpgradedBesideReaders) => {
                self.end_others(now, claim, old)?;
                self.store.acquire(now, client, claim)
            }
            Some(_) | None => {
                let answer = self.twin.acquire(self.mistake, now, &mut self.store, client, claim)?;
                Ok(match answer {
                    Answer::Granted { lease, valid_for, wanted } => {
                        Answer::Granted { lease: self.twin.granted(self.mistake, lease), valid_for, wanted }
                    }
                    Answer::Queued { .. } | Answer::Busy { .. } => answer,
                })
            }
        }
    }

    /// Ends the leases of all other readers of a lock that one of them wants to write.
    fn end_others(&mut self, now: Moment, claim: &Claim, old: Owner) -> Result<(), BackendError> {
        let holders: Vec<_> = self.holds(now, &claim.name).map(|hold| hold.owner).collect();
        let others = holders.into_iter().filter(|owner| ![old, claim.owner].contains(owner));
        for owner in others.filter(|_| claim.terms.mode == Mode::Exclusive) {
            let (name, terms, certainty) = (claim.name.clone(), claim.terms, lock_core::Certainty::Answered);
            self.store.release(now, &ReleaseRequest { name, owner, terms, certainty, keep: None })?;
        }
        Ok(())
    }

    fn release(&mut self, now: Moment, client: ClientId, request: &ReleaseRequest) -> Result<Released, BackendError> {
        match (request.keep, self.mistake) {
            (Some(_), Some(Mistake::FreedAtOnce)) => {
                self.store.release(now, &ReleaseRequest { keep: None, ..request.clone() })
            }
            (Some(keep), Some(Mistake::KeptForItsOwner)) if self.is_holder(now, request) => {
                let terms = Terms { ttl: Ttl::new(keep).unwrap_or(Ttl::MIN), ..request.terms };
                let (width, floor, note) = (lock_core::Width::ONE, None, lock_core::Note::from_wire(""));
                let (queueing, replaces) = (lock_core::Queueing::Unwanted, None);
                let (name, owner) = (request.name.clone(), request.owner);
                let fairness = lock_core::Fairness::Fair;
                let claim = Claim { name, owner, terms, width, floor, note, queueing, replaces, fairness };
                self.store.acquire(now, client, &claim).map(|_| Released::Released)
            }
            _ => self.store.release(now, request),
        }
    }

    fn is_holder(&self, now: Moment, request: &ReleaseRequest) -> bool {
        self.store.holds(now, &request.name).any(|hold| hold.owner == request.owner)
    }

    /// Who holds a lock.
    pub(super) fn holds(&self, now: Moment, name: &LockName) -> impl Iterator<Item = &Hold> {
        self.store.holds(now, name)
    }
}

/// Something that the store says unasked; to nobody, where the client never asked.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) conn: Option<ConnId>,
    pub(super) event: Event,
}
