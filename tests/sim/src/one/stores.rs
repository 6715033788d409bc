//! One server in the world: how it answers, and what must hold there.

use std::collections::{BTreeSet, VecDeque};

use lock_core::{
    Capabilities, Durability, EntriesEnd, Moment, Owner, Policy, Released, RequestOrder, StoreEvent, Waiting,
};

use super::backend::Translator;
use super::invariants::{Arrivals, Outsider, Tokens};
use super::mistake::Mistake;
use super::model::Model;
use super::units::{Inbox, SessionId};
use super::words::{Ask, Say, Words};
use crate::client::{Make, Process, Usage};
use crate::clock::{Clock, Time};
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::invariants::{Change, Rule};
use crate::network::{ConnId, ProcessId, Tag};
use crate::world::{Stores, World};

/// When the server's clock begins: in 2025.
const SERVER_BEGINS: Moment = Moment::from_nanos(1_750_000_000_000_000_000);
/// What the server is doing.
#[derive(Debug)]
pub(super) enum Service<D> {
    Up,
    /// It is suspended; what arrives waits.
    Frozen(VecDeque<(ConnId, Tag, Ask)>),
    /// It is away, since then, and comes back like this.
    Down(Time, Return<D>),
}

/// What a server has after a restart.
#[derive(Debug)]
pub(super) enum Return<D> {
    WithItsData,
    Empty,
    FromCopy(Copied<D>),
}

/// What a server had once, and who waited there then.
#[derive(Clone, Debug, Default)]
pub(super) struct Copied<D> {
    pub(super) data: D,
    pub(super) arrivals: Arrivals,
}

#[derive(Debug)]
pub(crate) struct One<M: Model> {
    pub(super) server: M,
    pub(super) clock: Clock,
    pub(super) service: Service<M::Data>,
    pub(super) copy: Option<Copied<M::Data>>,
    pub(super) outsider: Option<Outsider>,
    /// What its names are used as.
    pub(super) usages: Vec<Usage>,
    pub(super) tokens: Tokens,
    pub(super) arrivals: Arrivals,
    /// The owners of claims that were in service while the server was suspended: it may have forgotten their releases.
    pub(super) served_late: BTreeSet<Owner>,
    mistake: Option<Mistake>,
}

impl<M: Model> One<M> {
    pub(crate) fn new(env: &mut Env<Words>, names: usize, mistake: Option<Mistake>) -> Self {
        Self {
            server: M::new(&mut env.dice, mistake),
            clock: Clock::new(SERVER_BEGINS, env.dice.rate()),
            service: Service::Up,
            copy: None,
            outsider: None,
            usages: (0..names).map(|_| M::usage(&mut env.dice)).collect(),
            tokens: Tokens::default(),
            arrivals: Arrivals::default(),
            served_late: BTreeSet::new(),
            mistake,
        }
    }

    /// The owners of claims that may still arrive, or arrived so late that nothing is known of them.
    pub(super) fn claims_in_flight(&self, env: &Env<Words>) -> BTreeSet<Owner> {
        let waiting = match &self.service {
            Service::Frozen(backlog) => Some(backlog.iter().map(|(.., ask)| ask)),
            Service::Up | Service::Down(..) => None,
        };
        let claims = env
            .network
            .asks()
            .chain(waiting.into_iter().flatten())
            .filter_map(|ask| if let Ask::Acquire(claim, _) = ask.request() { Some(claim.owner) } else { None });
        claims.chain(self.served_late.iter().copied()).collect()
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.service, Service::Up)
    }
}

impl<M: Model> World<One<M>> {
    /// Some processes, at one lock or two.
    pub(crate) fn populate(&mut self) {
        if self.env.dice.chance(500) {
            self.names.truncate(1);
        }
        for _ in 0..self.env.dice.from(2, 4) {
            One::begin_process(self);
        }
    }

    /// Sets of locks are acquired in the same order everywhere, unless a mistake says otherwise.
    pub(crate) fn pairs(&self) -> Vec<[usize; 2]> {
        let One { usages, mistake, .. } = &self.stores;
        match mistake {
            _ if self.names.len() < 2 || usages.iter().any(|usage| matches!(usage, Usage::Semaphore(_))) => Vec::new(),
            Some(Mistake::AnyOrder) => vec![[0, 1], [1, 0]],
            Some(_) | None => vec![[0, 1]],
        }
    }

    /// The server runs a request, and answers.
    pub(super) fn serve(&mut self, conn: ConnId, tag: Tag, ask: &Ask) {
        if self.env.network.is_left(conn) && matches!(ask.request(), Ask::Acquire(..)) {
            self.env.fired(Fault::Ghost);
        }
        let say = self.run(conn, ask);
        if let Say::Acquire(Err(_)) = say.answer() {
            self.env.fired(Fault::Buried);
        }
        if say != Say::Silence {
            self.env.say(conn, tag, say);
        }
    }

    /// Runs one request, and sends what it publishes.
    pub(super) fn run(&mut self, conn: ConnId, ask: &Ask) -> Say {
        let now = self.stores.clock.read(self.env.now);
        let latch = if let Ask::Latch(request, ..) = ask { self.stores.server.latch(now, &request.name) } else { None };
        let outcome = self.stores.server.ask(now, conn, ask);
        if let (Ask::Latch(request, call, _), Say::Latch(seen)) = (ask, &outcome.say) {
            let change = Change { before: latch, after: seen.state };
            self.env.watch.latch_asked(*call, request, change, &mut self.env.tally);
        }
        for lease in &outcome.granted {
            self.env.watch.granted(lease);
        }
        self.watch_queue(now, ask, &outcome);
        let env = &mut self.env;
        self.stores.server.take_faults().into_iter().for_each(|fault| env.fired(fault));
        let asleep = self.stores.server.oversleeps();
        env.watch.report(Rule::Overslept, asleep.map_or(Ok(()), |who| Err(format!("nobody wakes {who}"))));
        for (inbox, event) in outcome.published {
            let is_grant = matches!(event, StoreEvent::Granted { .. });
            if is_grant && !self.processes.contains_key(&ProcessId(inbox.0)) {
                env.fired(Fault::HandedToTheDead);
            }
            for conn in self.stores.server.heard_on(inbox) {
                env.network.push(env.now, &mut env.dice, &mut env.tally, conn, event.clone());
            }
        }
        if let (Ask::Release(request), Say::Release(Ok(Released::Released))) = (ask.request(), outcome.say.answer())
            && request.keep.is_some()
        {
            env.watch.kept(&request.name, request.owner);
        }
        env.note(format_args!("server: {:?}", outcome.say));
        outcome.say
    }

    /// The store forgets what it knew, or some of it, and has these in line.
    pub(super) fn data_lost(&mut self, arrivals: Arrivals) {
        let mut excused = self.stores.claims_in_flight(&self.env);
        excused.extend(self.stores.server.owners());
        self.stores.arrivals = arrivals;
        self.env.watch.data_lost(excused.into_iter());
    }
}

/// A new process: whether it is notified, and its policy.
pub(crate) fn any_client<M: Model>(env: &mut Env<Words>) -> (ProcessId, Option<Inbox>, Policy) {
    let id = ProcessId(env.number());
    let inbox = env.dice.chance(M::TOLD).then_some(Inbox(id.0));
    let waiting = if inbox.is_some() { Waiting::QueueWithPush } else { Waiting::Queue };
    let ordering = if env.dice.chance(650) { RequestOrder::InOrder } else { RequestOrder::Unordered };
    let capabilities = Capabilities::new("sim", waiting, Durability::ClockFloor).with_shared_counter();
    let mut policy = Policy::new(M::can(capabilities.with_ordering(ordering)));
    if env.dice.chance(500) {
        policy.chain = u32::try_from(env.dice.from(0, 2)).unwrap_or_default();
    }
    (id, inbox, policy)
}

impl<M: Model> Stores for One<M> {
    type Backend = Translator;

    fn begin_process(world: &mut World<Self>) {
        let env = &mut world.env;
        let (id, inbox, mut policy) = any_client::<M>(env);
        if world.stores.mistake == Some(Mistake::UnboundedDebt) {
            policy.owed_max = usize::MAX;
        }
        let clock = Clock::any(&mut env.dice);
        env.note(format_args!("{id:?} begins: {policy:?}"));
        let mut backend = Translator::new(id, inbox, policy.store.ordering, world.stores.mistake);
        if policy.store.entries_end == EntriesEnd::WithSession {
            backend = backend.with_session(SessionId(id.0), clock.read(env.now));
        }
        if M::HAS_LEASES {
            backend = backend.with_leases();
        }
        if world.stores.mistake == Some(Mistake::GivenUpAfterTtl) {
            policy.store.entries_end = EntriesEnd::WithTtl;
        }
        let process = Process::new(env, Make { id, clock, policy, names: &world.names, backend });
        world.add_process(process.with_usages(&world.stores.usages));
    }

    fn asked(world: &mut World<Self>, conn: ConnId, tag: Tag, ask: Ask) {
        match &mut world.stores.service {
            Service::Up => world.serve(conn, tag, &ask),
            Service::Frozen(backlog) => backlog.push_back((conn, tag, ask)),
            Service::Down(..) => world.env.network.refuse(world.env.now, conn),
        }
    }

    fn closed(&mut self, conn: ConnId) {
        self.server.closed(conn);
    }

    fn go_wrong(world: &mut World<Self>) {
        world.go_wrong();
    }

    fn carry_out(world: &mut World<Self>, plan: Plan) {
        match plan {
            Plan::Thaw(_) => world.thaw(),
            Plan::Start(_) => world.start_server(),
            Plan::ForeignDone => world.end_outsider(),
            Plan::Act(..)
            | Plan::Arrival(_)
            | Plan::Resume(_)
            | Plan::Death(_)
            | Plan::Rebirth
            | Plan::Mischief
            | Plan::ClockRight(_)
            | Plan::Cue(_) => {}
        }
    }

    fn heal(world: &mut World<Self>) {
        world.thaw();
        world.start_server();
        world.stores.server.heal();
    }

    fn check(world: &mut World<Self>) {
        world.check_holdings();
        world.stores.tokens.check(&mut world.env.watch);
        world.check_joined();
        world.check_idle();
    }
}
