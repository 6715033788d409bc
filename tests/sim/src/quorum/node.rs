//! One node of the quorum: the model's, with its own clock. It can be suspended, end and forget.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Membership, NodeState, RunId, Told, View};
use lock_core::{Claim, Fairness, Fenced, Lease, LockName, Moment, NameKind, Note, Owner, Queueing, Width};
use lock_memory::node::NodeStore;
use lock_redlock::quorum::Outcome;

use super::Mistake;
use super::words::Asked;
use crate::clock::{Clock, Time};
use crate::network::{ConnId, Tag};

/// What a node is doing.
#[derive(Debug)]
pub(super) enum Service {
    Up,
    /// It is suspended; what arrives waits.
    Frozen(VecDeque<(ConnId, Tag, Asked)>),
    /// It is away, and comes back with these data.
    Down(Return),
}

/// What a node has after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Return {
    WithItsData,
    Empty,
    /// As another run.
    FromCopy,
    /// As the same run, which cannot be detected.
    RolledBack,
}

#[derive(Debug)]
pub(super) struct Node {
    index: usize,
    pub(super) store: NodeStore,
    pub(super) run: RunId,
    runs: u64,
    pub(super) clock: Clock,
    /// The rate that its clock has when nothing is wrong with it.
    rate: i64,
    /// Whether it runs at another one.
    pub(super) runs_off: bool,
    pub(super) service: Service,
    pub(super) copy: Option<(NodeStore, RunId)>,
    /// Owners that were released here, and when first, except those whose tombstones may be lost.
    pub(super) released: BTreeMap<Owner, Option<Time>>,
    /// When it last lost something, if only tombstones.
    pub(super) lost_at: Option<Time>,
    mistake: Option<Mistake>,
}

impl Node {
    pub(super) fn new(index: usize, begins: Moment, rate: i64, mistake: Option<Mistake>) -> Self {
        Self {
            index,
            store: NodeStore::default(),
            run: run_id(index, 1),
            runs: 1,
            clock: Clock::new(begins, rate),
            rate,
            runs_off: false,
            service: Service::Up,
            copy: None,
            released: BTreeMap::new(),
            lost_at: None,
            mistake,
        }
    }

    /// Runs a request.
    pub(super) fn ask(&mut self, at: Time, ask: &Ask) -> Outcome {
        let told = self.store.ask(self.clock.read(at), None, &self.run, ask)?;
        match (self.mistake, ask, told) {
            (Some(Mistake::NoGrantTest), Ask::Fence { leases, epoch }, Told::Fenced(answers)) => {
                let asked = leases.iter().zip(answers);
                Ok(Told::Fenced(asked.map(|(lease, fenced)| self.acknowledge(at, lease, *epoch, fenced)).collect()))
            }
            (.., told) => Ok(told),
        }
    }

    /// The answer of a node that does not check its grant's own token. A claim of the current holder re-arms the ttl,
    /// too.
    fn acknowledge(&mut self, at: Time, lease: &Lease, epoch: Epoch, fenced: Fenced) -> Fenced {
        if !matches!(fenced, Fenced::Higher(_)) || self.keeps(at, &lease.name, lease.owner).is_none() {
            return fenced;
        }
        let Lease { name, owner, terms, tokens, .. } = lease.clone();
        let (width, queueing) = (Width::ONE, Queueing::Unwanted);
        let claim = Arc::new(Claim {
            name,
            owner,
            terms,
            width,
            floor: None,
            note: Note::from_wire(""),
            queueing,
            replaces: None,
            fairness: Fairness::Fair,
            kind: NameKind::Lock,
        });
        _ = self.store.ask(self.clock.read(at), None, &self.run, &Ask::Acquire { claim, wish: tokens.high(), epoch });
        Fenced::Acknowledged
    }

    /// Whether it would grant anything now.
    pub(super) fn votes(&self, at: Time) -> bool {
        match self.service {
            Service::Up | Service::Frozen(_) => matches!(self.state(at), NodeState::Voting(_)),
            Service::Down(_) => false,
        }
    }

    pub(super) fn state(&self, at: Time) -> NodeState {
        self.view(at).state
    }

    pub(super) fn view(&self, at: Time) -> View {
        self.store.view(self.clock.read(at), &self.run)
    }

    /// Until when it keeps the lock for this owner, by its clock.
    pub(super) fn keeps(&self, at: Time, name: &LockName, owner: Owner) -> Option<Moment> {
        let hold = self.store.holder(name, self.clock.read(at))?;
        (hold.owner == owner).then_some(hold.until)
    }

    /// Starts again, as another run, with what it has.
    pub(super) fn begin_run(&mut self) {
        self.runs += 1;
        self.run = run_id(self.index, self.runs);
    }

    /// Loses everything, and continues to vote if a mistake says so.
    pub(super) fn forget(&mut self, at: Time, membership: &Membership) {
        let state = self.state(at);
        self.replace(at, NodeStore::default());
        if let (Some(Mistake::NoMarker), NodeState::Voting(epoch)) = (self.mistake, state) {
            let membership = Arc::new(membership.clone());
            let clock = self.clock.read(at);
            let mark = Ask::Mark { epoch, membership: Arc::clone(&membership) };
            let install = Ask::Install { moves: 0, epoch, counter: 0, longest: Duration::ZERO, membership };
            // Neither is ever refused.
            _ = self.store.ask(clock, None, &self.run, &mark);
            _ = self.store.ask(clock, None, &self.run, &install);
        }
    }

    /// Has other data from now on.
    pub(super) fn replace(&mut self, at: Time, store: NodeStore) {
        self.store = store;
        self.tombstones_lost(at);
    }

    /// Its clock leaps, so everything that it keeps may have expired.
    pub(super) fn leap(&mut self, at: Time, by: Duration) {
        self.clock.set_forward(by);
        self.tombstones_lost(at);
    }

    fn tombstones_lost(&mut self, at: Time) {
        self.released.values_mut().for_each(|released| *released = None);
        self.lost_at = Some(at);
    }

    /// Its clock runs too fast by this many millionths.
    pub(super) fn run_off(&mut self, at: Time, rate: i64) {
        self.runs_off = true;
        self.clock.run_at(at, rate);
    }

    /// Its clock runs as it should.
    pub(super) fn right_clock(&mut self, at: Time) {
        self.runs_off = false;
        self.clock.run_at(at, self.rate);
    }
}

fn run_id(index: usize, runs: u64) -> RunId {
    RunId(format!("{index}#{runs}"))
}
