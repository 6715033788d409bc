//! The nodes of a quorum in the world: how they answer, and what must hold there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lock_core::Fenced;
use lock_core::node::{Ask, Epoch, Membership, NodeState, Told};
use lock_redlock::quorum::{NodeId, Purpose, Recovery};

use super::Mistake;
use super::course::Record;
use super::invariants::{self, Tokens};
use super::list::List;
use super::node::{Node, Service};
use super::plot::Deed;
use super::redlock::Redlock;
use super::terms::Terms;
use super::words::{Asked, Said, Words};
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::invariants::{Holding, Rule};
use crate::network::{ConnId, ProcessId, StoreId, Tag};
use crate::world::{Stores, World};

/// For tokens to rise by clocks alone, the clocks have to be closer than the longest lease by this much: it covers
/// wishes and the rates of clocks.
const CLOSER: Duration = Duration::from_secs(4);

#[derive(Debug)]
pub(crate) struct Nodes {
    pub(super) terms: Terms,
    pub(super) nodes: Vec<Node>,
    pub(super) tokens: Tokens,
    /// How many requests all of them ran.
    ran: u64,
    /// How far clocks were ever apart from the world's time.
    pub(super) behind: i128,
    pub(super) ahead: i128,
    /// How far clocks were set back in total.
    pub(super) set_back: Duration,
    pub(super) mistake: Option<Mistake>,
    /// What a plot has planned, and its cast: see `plot`.
    pub(super) deeds: Vec<Deed>,
    pub(super) cast: BTreeMap<usize, ProcessId>,
}

impl Nodes {
    pub(super) fn new(env: &mut Env<Words>, terms: Terms, mistake: Option<Mistake>) -> Self {
        let mut node = |index| Node::new(index, terms.begins(&mut env.dice), env.dice.rate(), mistake);
        let nodes = (0..terms.nodes + terms.spares).map(&mut node).collect();
        let mut all = Self {
            terms,
            nodes,
            tokens: Tokens::default(),
            ran: 0,
            behind: i128::MAX,
            ahead: i128::MIN,
            set_back: Duration::ZERO,
            mistake,
            deeds: Vec::new(),
            cast: BTreeMap::new(),
        };
        all.look_at_clocks(env);
        if all.terms.founded {
            all.found(env);
        }
        all
    }

    /// The first list.
    pub(super) fn membership(&self) -> Membership {
        self.membership_of(List::First)
    }

    pub(super) fn membership_of(&self, list: List) -> Membership {
        Membership::new(list.addresses(&self.terms), self.terms.max_ttl.get())
    }

    /// How many nodes are a majority.
    pub(super) fn majority(&self) -> usize {
        self.terms.nodes / 2 + 1
    }

    /// Declares the deployment to be new.
    fn found(&mut self, env: &mut Env<Words>) {
        let membership = Arc::new(self.membership());
        for node in self.nodes.iter_mut().take(self.terms.nodes) {
            let epoch = Epoch::from_random(env.number());
            let membership = Arc::clone(&membership);
            let mark = Ask::Mark { epoch, membership: Arc::clone(&membership) };
            let install = Ask::Install { moves: 0, epoch, counter: 0, longest: Duration::ZERO, membership };
            // Nothing can go wrong with an empty node.
            _ = node.ask(env.now, &mark);
            _ = node.ask(env.now, &install);
        }
    }

    /// Remembers how far clocks are apart.
    pub(super) fn look_at_clocks(&mut self, env: &Env<Words>) {
        for node in &self.nodes {
            let shown = i128::from(node.clock.read(env.now).as_nanos()) - i128::from(env.now.as_nanos());
            (self.behind, self.ahead) = (self.behind.min(shown), self.ahead.max(shown));
        }
    }

    /// How far any two clocks were ever apart.
    fn apart(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.ahead - self.behind).unwrap_or(u64::MAX))
    }

    fn run(&mut self, env: &mut Env<Words>, node: usize, asked: &Asked) -> Said {
        let before = self.nodes[node].state(env.now);
        let outcome = self.nodes[node].ask(env.now, &asked.ask);
        self.ran += 1;
        if let Ok(told) = &outcome {
            self.follow(env, node, asked, told, before);
        } else {
            env.fired(Fault::Buried);
        }
        Said { outcome, ran: self.ran }
    }

    /// What else follows from an answer, for the rules and for mistakes.
    fn follow(&mut self, env: &mut Env<Words>, index: usize, asked: &Asked, told: &Told, before: NodeState) {
        let node = &mut self.nodes[index];
        match (&asked.ask, told) {
            (Ask::Release(request), _) => _ = node.released.entry(request.owner).or_insert(Some(env.now)),
            (Ask::Acquire { claim, .. }, Told::Granted { .. }) => {
                let result = invariants::ghosts(node, env.now, self.terms.max_ttl, claim);
                env.watch.report(Rule::Ghosts, result);
            }
            (_, Told::Abstains) => env.fired(Fault::Abstained),
            (_, Told::Fenced(answers)) if answers.iter().any(|answer| matches!(answer, Fenced::Higher(_))) => {
                env.fired(Fault::Higher);
            }
            (Ask::Install { .. }, _) => self.installed(env, index, asked.recovery, before),
            (Ask::Mark { epoch, .. }, _) if self.mistake == Some(Mistake::NoDwell) => {
                self.install_at_once(env, index, *epoch);
            }
            _ => {}
        }
    }

    /// If a node votes again by its clock alone, and clocks were too far apart for that, tokens may fall.
    fn installed(&mut self, env: &mut Env<Words>, node: usize, recovery: Option<Recovery>, before: NodeState) {
        let began = matches!(before, NodeState::Abstaining { .. }) && self.nodes[node].votes(env.now);
        if !began {
            return;
        }
        if recovery == Some(Recovery::ByClock) && self.apart() + CLOSER > self.terms.max_ttl.get() {
            self.forgive(env);
        }
        let result = self.tokens.recovered(NodeId(node), self.nodes[node].store.counter());
        env.watch.report(Rule::Recovers, result);
    }

    /// More was lost than can be known: tokens may fall.
    pub(super) fn forgive(&mut self, env: &mut Env<Words>) {
        self.tokens.forgive();
        env.watch.tokens_may_fall();
    }

    fn install_at_once(&mut self, env: &Env<Words>, node: usize, epoch: Epoch) {
        let counter = self.nodes.iter().map(|node| node.store.counter()).max().unwrap_or_default();
        let membership = Arc::new(self.membership());
        let install = Ask::Install { moves: 0, epoch, counter, longest: self.terms.max_ttl.get(), membership };
        // A node that was just marked accepts it.
        _ = self.nodes[node].ask(env.now, &install);
    }
}

impl World<Nodes> {
    pub(super) fn populate(&mut self) {
        for actor in 0..self.stores.terms.processes {
            if let Some(process) = self.make_process(List::First) {
                self.stores.cast.insert(actor, process.id);
                self.begin(process, Purpose::Watch);
            }
        }
    }

    pub(super) fn serve(&mut self, node: usize, conn: ConnId, tag: Tag, asked: &Asked) {
        if self.env.network.is_left(conn) && matches!(asked.ask, Ask::Acquire { .. }) {
            self.env.fired(Fault::Ghost);
        }
        let said = self.stores.run(&mut self.env, node, asked);
        self.env.note(format_args!("node {node}: {said:?}"));
        self.env.say(conn, tag, said);
    }

    /// What processes recorded since the last step.
    fn take_records(&mut self) {
        for process in self.processes.values_mut() {
            for record in process.backend.take_records() {
                self.stores.write_down(&mut self.env, record);
            }
        }
        for hold in self.env.watch.take_admitted() {
            let (rises, agree) = self.stores.tokens.admitted(&hold);
            self.env.watch.report(Rule::TokensRise, rises);
            self.env.watch.report(Rule::NodesAgree, agree);
        }
    }

    /// What must hold long after all is well.
    pub(super) fn check_quiet(&mut self) {
        let result = invariants::quiet(&self.stores.nodes, self.env.now);
        self.env.watch.report(Rule::Outliving, result);
    }
}

impl Nodes {
    fn write_down(&mut self, env: &mut Env<Words>, record: Record) {
        match record {
            Record::Began(name, owner) => {
                for node in &mut self.nodes {
                    node.released.remove(&owner);
                }
                self.tokens.began(env.watch.epoch(), env.now, name, owner);
            }
            Record::Granted { lease, acknowledged, grants } => {
                let result = invariants::nothing_below(&lease, &acknowledged, &grants);
                env.watch.report(Rule::NothingBelow, result);
                if let Some(epoch) = self.tokens.granted(&lease, acknowledged) {
                    env.watch.granted_in(epoch, &lease);
                }
            }
            Record::Failed { name, owner, told } => {
                let told = told.iter().map(|NodeId(index)| &self.nodes[*index]);
                let began = self.tokens.began_at(owner);
                let result = invariants::failed_leaves_nothing(told, env.now, began, &name, owner);
                env.watch.report(Rule::FailedLeavesNothing, result);
            }
        }
    }
}

impl Stores for Nodes {
    type Backend = Redlock;

    fn begin_process(world: &mut World<Self>) {
        if let Some(process) = world.make_process(List::First) {
            world.begin(process, Purpose::Watch);
        }
    }

    fn asked(world: &mut World<Self>, conn: ConnId, tag: Tag, ask: Asked) {
        let Some(StoreId(node)) = world.store_of(conn) else { return };
        match &mut world.stores.nodes[node].service {
            Service::Up => world.serve(node, conn, tag, &ask),
            Service::Frozen(backlog) => backlog.push_back((conn, tag, ask)),
            Service::Down(_) => world.env.network.refuse(world.env.now, conn),
        }
    }

    fn closed(&mut self, _: ConnId) {}

    fn go_wrong(world: &mut World<Self>) {
        world.go_wrong();
    }

    fn carry_out(world: &mut World<Self>, plan: Plan) {
        match plan {
            Plan::Thaw(StoreId(node)) => world.thaw(node),
            Plan::Start(StoreId(node)) => world.start(node),
            Plan::ClockRight(StoreId(node)) => world.right_clock(node),
            Plan::Cue(deed) => world.cue(deed),
            Plan::Act(..)
            | Plan::Arrival(_)
            | Plan::Resume(_)
            | Plan::Death(_)
            | Plan::Rebirth
            | Plan::Mischief
            | Plan::ForeignDone => {}
        }
    }

    fn heal(world: &mut World<Self>) {
        for node in 0..world.stores.nodes.len() {
            world.thaw(node);
            world.start(node);
            world.right_clock(node);
        }
    }

    fn check(world: &mut World<Self>) {
        world.suspect_fast_clocks();
        world.take_records();
        let (now, nodes, watch) = (world.env.now, &world.stores, &mut world.env.watch);
        let holdings: Vec<Holding<'_>> = world.processes.values().flat_map(|process| process.holdings(now)).collect();
        let one = invariants::one_holder(watch, &holdings);
        watch.report(Rule::OneHolder, one);
        for process in world.processes.values() {
            let members: Vec<_> = process.backend.members().map(|NodeId(index)| &nodes.nodes[index]).collect();
            let kept = invariants::nodes_keep(watch, process.holdings(now), &members, nodes.majority(), now);
            watch.report(Rule::StoreKeeps, kept);
        }
    }
}
