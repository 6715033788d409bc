//! What the requests to a node mean: grants, one counter and the node's state as plain values, with the time as a
//! parameter.
//!
//! Nothing here reads a clock, waits or sends. At the moment at which something ends, it has ended.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Membership, NodeState, Record, Recording, RunId, Sighting, Told, View};
use lock_core::{
    BackendError, Certainty, Claim, Fenced, FencingToken, Lease, LockName, Moment, ReleaseRequest, Released, Slots,
};
use lock_rules::{Hold, given_up};

use super::counter::{draw, height};
use super::lock::{NodeLock, node_time};
use crate::BACKEND;
use crate::notice::ClientId;

/// A client to be notified that a lock is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freed {
    /// The client whose claim wanted a place in the queue.
    pub client: ClientId,
    /// The lock.
    pub name: LockName,
}

/// What a node keeps. A crash that brings old data back is an earlier clone; one that loses all is [`NodeStore::default`].
///
/// It does nothing by itself. Leases end by the `clock` that is passed in, which counts microseconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct NodeStore {
    counter: u64,
    longest: Duration,
    membership: Option<Membership>,
    marked_for: Option<Membership>,
    predecessor: Option<Membership>,
    has_voted: bool,
    moves: u64,
    seal: Option<Seal>,
    records: BTreeMap<String, KnownEpoch>,
    pub(super) locks: BTreeMap<LockName, NodeLock>,
    pub(super) freed: Vec<Freed>,
}

/// The epoch in which a run votes, or will vote. It says nothing about any other run.
#[derive(Clone, Debug)]
struct Seal {
    run: RunId,
    epoch: Epoch,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Voting,
    Abstaining { since: Moment },
}

/// The epoch that began at a member, when that was first reported, and until when it is remembered.
#[derive(Clone, Debug)]
struct KnownEpoch {
    epoch: Epoch,
    first: Moment,
    until: Moment,
}

impl NodeStore {
    /// Answers one request to the run `run`, as the contract in [`lock_core::node`] says.
    ///
    /// Where a claim that wants to queue is held up, `inbox` is who would like to hear of it: see [`NodeStore::take_freed`].
    ///
    /// # Errors
    /// `Protocol` if the claim was given up by a release of unknown certainty, `Unsupported` for another mode than
    /// exclusive, `Protocol` if the tokens are used up. None of them changes anything.
    pub fn ask(
        &mut self,
        clock: Moment,
        inbox: Option<ClientId>,
        run: &RunId,
        ask: &Ask,
    ) -> Result<Told, BackendError> {
        match ask {
            Ask::Acquire { epoch, .. } | Ask::Fence { epoch, .. } if !self.votes(run, *epoch) => {
                return Ok(Told::Abstains);
            }
            Ask::Acquire { claim, wish, .. } => return self.acquire(clock, inbox, claim, *wish),
            Ask::Fence { leases, .. } => return Ok(Told::Fenced(self.fence(clock, leases))),
            Ask::Release(request) => return Ok(Told::Released(self.release(clock, request))),
            Ask::Record { seen, keep } => {
                return Ok(Told::Records(seen.iter().map(|seen| self.record(clock, seen, *keep)).collect()));
            }
            Ask::Inspect(inspection) => return Ok(self.inspect(clock, inspection)),
            Ask::Look => {}
            Ask::Mark { epoch, membership } => {
                if self.state(clock, run) == NodeState::Forgetful {
                    self.abstain(clock, run, *epoch);
                    self.marked_for = Some(membership.as_ref().clone());
                }
            }
            Ask::Install { epoch, counter, longest, moves, membership } => {
                if self.install(clock, run, *epoch) {
                    self.counter = self.counter.max(*counter).max(height(clock));
                    self.longest = self.longest.max(*longest);
                    self.membership = Some(membership.as_ref().clone());
                    self.marked_for = None;
                    self.moves = self.moves.max(*moves);
                    self.has_voted = true;
                }
            }
            Ask::Move { epoch, seen, membership, predecessor, moves } => {
                let is_as_seen = self.view(clock, run).deployment() == seen.as_deref();
                if is_as_seen && self.moves <= *moves && !self.has(run, *epoch) {
                    self.mark_moved(clock, run, membership);
                    self.abstain(clock, run, *epoch);
                    self.membership = Some(membership.as_ref().clone());
                    self.predecessor = Some(predecessor.as_ref().clone());
                    self.has_voted = false;
                    self.moves = *moves;
                }
            }
        }
        Ok(Told::View(Box::new(self.view(clock, run))))
    }

    fn acquire(
        &mut self,
        clock: Moment,
        inbox: Option<ClientId>,
        claim: &Claim,
        wish: FencingToken,
    ) -> Result<Told, BackendError> {
        let lock = self.locks.entry(claim.name.clone()).or_default();
        lock.forget_expired(clock);
        if let Some(told) = lock.answer_held(clock, inbox, claim) {
            if matches!(told, Told::Granted { .. }) {
                self.longest = self.longest.max(claim.terms.ttl.get());
            }
            return Ok(told);
        }
        if lock.was_given_up(claim.owner) {
            return Err(given_up(BACKEND));
        }
        let tokens = draw(self.counter, clock, claim, wish)?;
        self.counter = tokens.high().get();
        self.longest = self.longest.max(claim.terms.ttl.get());
        lock.hold = Some(Hold::new(clock, claim, tokens, Slots::NONE));
        Ok(Told::Granted { token: tokens.high(), clock: node_time(clock) })
    }

    fn fence(&mut self, clock: Moment, leases: &[Lease]) -> Vec<Fenced> {
        let answers = leases.iter().map(|lease| self.fence_one(clock, lease)).collect();
        // Whatever the answers are: leases with these tokens may be acknowledged at other nodes.
        for lease in leases {
            self.counter = self.counter.max(lease.tokens.high().get());
            self.longest = self.longest.max(lease.terms.ttl.get());
        }
        answers
    }

    fn fence_one(&mut self, clock: Moment, lease: &Lease) -> Fenced {
        let Some(lock) = self.locks.get_mut(&lease.name) else { return Fenced::NotHeld };
        lock.forget_expired(clock);
        lock.fence(clock, lease)
    }

    fn release(&mut self, clock: Moment, request: &ReleaseRequest) -> Released {
        let lock = self.locks.entry(request.name.clone()).or_default();
        lock.forget_expired(clock);
        let released = if lock.end(request.owner) {
            let tell = |client| Freed { client, name: request.name.clone() };
            self.freed.extend(lock.next_to_tell().map(tell));
            Released::Released
        } else {
            Released::NotHeld
        };
        match request.certainty {
            Certainty::Answered => {}
            Certainty::Unknown => lock.refuse_late_claims(clock, request),
        }
        if lock.is_empty() {
            self.locks.remove(&request.name);
        }
        released
    }

    fn abstain(&mut self, clock: Moment, run: &RunId, epoch: Epoch) {
        self.seal = Some(Seal { run: run.clone(), epoch, stage: Stage::Abstaining { since: clock } });
    }

    /// A move does not hide that the counter may be out of date.
    fn mark_moved(&mut self, clock: Moment, run: &RunId, to: &Membership) {
        if self.membership.is_none() {
            // It has no counter that could be out of date.
            self.marked_for = None;
        } else if self.state(clock, run) == NodeState::Forgetful {
            self.marked_for = Some(to.clone());
        }
    }

    /// Returns whether the epoch began now.
    fn install(&mut self, clock: Moment, run: &RunId, epoch: Epoch) -> bool {
        match self.state(clock, run) {
            NodeState::Abstaining { epoch: pending, .. } if pending == epoch => {
                self.seal = Some(Seal { run: run.clone(), epoch, stage: Stage::Voting });
                true
            }
            NodeState::Abstaining { .. } | NodeState::Voting(_) | NodeState::Forgetful => false,
        }
    }

    fn record(&mut self, clock: Moment, seen: &Sighting, keep: Duration) -> Option<Record> {
        self.records.retain(|_, record| clock < record.until);
        // The clock was set back since: nobody would live to see the old time come.
        let may_count = |record: &&KnownEpoch| record.first <= clock;
        let stored = self.records.get(&seen.member).filter(may_count).map(|record| record.epoch);
        let begun = match seen.recording {
            Recording::Nothing => None,
            Recording::Begins(epoch) => (stored != Some(epoch)).then_some(epoch),
            Recording::BeginsAnew(epoch) => Some(epoch),
        };
        if let Some(epoch) = begun {
            self.records.insert(seen.member.clone(), KnownEpoch { epoch, first: clock, until: clock + keep });
        }
        let record = self.records.get(&seen.member)?;
        Some(Record { epoch: record.epoch, age: clock.since(record.first) })
    }

    /// Whether the run votes, or will vote, in this epoch.
    fn has(&self, run: &RunId, epoch: Epoch) -> bool {
        self.seal.as_ref().is_some_and(|seal| seal.run == *run && seal.epoch == epoch)
    }

    fn votes(&self, run: &RunId, epoch: Epoch) -> bool {
        matches!(&self.seal, Some(Seal { run: sealed, epoch: since, stage: Stage::Voting }) if sealed == run && *since == epoch)
    }

    fn state(&self, clock: Moment, run: &RunId) -> NodeState {
        match &self.seal {
            Some(seal) if seal.run == *run => match seal.stage {
                Stage::Voting => NodeState::Voting(seal.epoch),
                Stage::Abstaining { since } => NodeState::Abstaining { epoch: seal.epoch, since: clock.since(since) },
            },
            Some(_) | None => NodeState::Forgetful,
        }
    }

    /// What the node knows about itself when the run `run` is asked.
    pub fn view(&self, clock: Moment, run: &RunId) -> View {
        let state = self.state(clock, run);
        let abstains = matches!(state, NodeState::Abstaining { .. });
        View {
            run: run.clone(),
            state,
            counter: self.counter,
            longest: self.longest,
            membership: self.membership.clone(),
            marked_for: self.marked_for.clone().filter(|_| abstains),
            predecessor: self.predecessor.clone(),
            has_voted: self.has_voted,
            moves: self.moves,
            clock: node_time(clock),
            evicts: None,
        }
    }

    /// The counter F.
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// Who holds the lock now.
    pub fn holder(&self, name: &LockName, clock: Moment) -> Option<&Hold> {
        self.locks.get(name)?.hold.as_ref().filter(|hold| clock < hold.until)
    }

    /// The locks that are held now, in the order of their names.
    pub fn holds(&self, clock: Moment) -> impl Iterator<Item = (&LockName, &Hold)> {
        let living = move |hold: &&Hold| clock < hold.until;
        self.locks.iter().filter_map(move |(name, lock)| Some((name, lock.hold.as_ref().filter(living)?)))
    }

    /// The clients to notify of free locks since the last call: for each released hold, the first client that waits.
    pub fn take_freed(&mut self) -> Vec<Freed> {
        std::mem::take(&mut self.freed)
    }

    /// Stops notifying this client.
    pub fn drop_interests(&mut self, client: ClientId) {
        self.locks.values_mut().for_each(|lock| lock.drop_interest(client));
    }
}
