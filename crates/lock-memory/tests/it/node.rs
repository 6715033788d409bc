//! A node of a quorum: each sentence of its contract.

mod clients;
mod random;
mod requests;
mod standing;

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Membership, NodeState, Recording, RunId, Sighting, Told, View};
use lock_core::{
    BackendError, Claim, Fenced, FencingToken, Lease, Moment, ReleaseRequest, Released, Terms, TokenRange, Ttl, Width,
};
use lock_memory::node::NodeStore;

use crate::support::*;

pub(crate) const EPOCH: Epoch = Epoch::from_random(1);
pub(crate) const LATER_EPOCH: Epoch = Epoch::from_random(2);

pub(crate) fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

pub(crate) fn membership() -> Membership {
    Membership { members: vec!["one".into(), "two".into(), "three".into()], max_ttl: seconds(300) }
}

/// What this owner holds under these tokens.
pub(crate) fn lease(byte: u8, low: u64, high: u64) -> Lease {
    claim(byte).lease(TokenRange::new(token(low), token(high)).unwrap())
}

pub(crate) fn wide(byte: u8, width: usize) -> Claim {
    Claim { width: Width::for_waiters(width), ..claim(byte) }
}

pub(crate) fn for_ttl(byte: u8, ttl: Duration) -> Claim {
    Claim { terms: Terms::exclusive(Ttl::new(ttl).unwrap()), ..claim(byte) }
}

pub(crate) fn acquire(claim: Claim, wish: u64) -> Ask {
    Ask::Acquire { claim: Arc::new(claim), wish: token(wish), epoch: EPOCH }
}

pub(crate) fn fence(leases: impl Into<Arc<[Lease]>>) -> Ask {
    Ask::Fence { leases: leases.into(), epoch: EPOCH }
}

pub(crate) fn mark(epoch: Epoch) -> Ask {
    Ask::Mark { epoch, membership: Arc::new(membership()) }
}

/// That an epoch begins at this member.
pub(crate) fn record(member: &str, epoch: Epoch, keep: Duration) -> Ask {
    Ask::Record { seen: Arc::new([Sighting { member: member.into(), recording: Recording::Begins(epoch) }]), keep }
}

pub(crate) fn install(epoch: Epoch, counter: u64) -> Ask {
    Ask::Install { moves: 0, epoch, counter, longest: Duration::ZERO, membership: Arc::new(membership()) }
}

/// A node as requests see it: its data, and the run that is asked. Its clock begins at 0, and so does its counter.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) store: NodeStore,
    pub(crate) run: RunId,
}

impl Node {
    pub(crate) fn empty() -> Self {
        Self { store: NodeStore::default(), run: RunId("first".into()) }
    }

    /// It votes in [`EPOCH`].
    pub(crate) fn voting() -> Self {
        let mut node = Self::empty();
        node.view(at(0), &mark(EPOCH));
        assert_eq!(node.view(at(0), &install(EPOCH, 0)).state, NodeState::Voting(EPOCH));
        node
    }

    pub(crate) fn try_ask(&mut self, clock: Moment, ask: &Ask) -> Result<Told, BackendError> {
        self.store.ask(clock, Some(ONE), &self.run, ask)
    }

    pub(crate) fn ask(&mut self, clock: Moment, ask: &Ask) -> Told {
        self.try_ask(clock, ask).unwrap()
    }

    /// The token of a grant.
    pub(crate) fn grant(&mut self, clock: Moment, claim: Claim, wish: u64) -> u64 {
        let told = self.ask(clock, &acquire(claim, wish));
        let Told::Granted { token, .. } = told else { panic!("not granted: {told:?}") };
        token.get()
    }

    pub(crate) fn fence(&mut self, clock: Moment, lease: Lease) -> Fenced {
        let told = self.ask(clock, &fence([lease]));
        let Told::Fenced(answers) = &told else { panic!("not fenced: {told:?}") };
        answers[0]
    }

    pub(crate) fn release(&mut self, clock: Moment, request: ReleaseRequest) -> Released {
        let told = self.ask(clock, &Ask::Release(Arc::new(request)));
        let Told::Released(released) = told else { panic!("not released: {told:?}") };
        released
    }

    pub(crate) fn view(&mut self, clock: Moment, ask: &Ask) -> View {
        let told = self.ask(clock, ask);
        let Told::View(view) = told else { panic!("no view: {told:?}") };
        *view
    }

    pub(crate) fn restart(&mut self) {
        self.run = RunId(format!("after {}", self.run.0));
    }
}
