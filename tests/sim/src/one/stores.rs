//! One server in the world: how it answers, and what must hold there.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use lock_core::{
    Answer, Capabilities, Durability, Event, Fairness, Moment, Owner, Policy, Released, RequestOrder, Waiting,
};

use super::backend::Translator;
use super::invariants::{self, Arrivals, Outsider, Tokens};
use super::mistake::Mistake;
use super::model::{Model, Order};
use super::units::Inbox;
use super::words::{Ask, Outcome, Say, Words};
use crate::client::{Make, Process, Usage};
use crate::clock::{Clock, Time};
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::invariants::{Holding, Rule};
use crate::network::{ConnId, ProcessId, Tag};
use crate::world::{Stores, World};

/// When the server's clock begins: in 2025.
const SERVER_BEGINS: Moment = Moment::from_nanos(1_750_000_000_000_000_000);
/// How old the store's word that nobody waits may be for a reader to join a lease: 20 ms on any clock.
const WORD_FOR: Duration = Duration::from_millis(21);

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
    tokens: Tokens,
    pub(super) arrivals: Arrivals,
    /// The owners of claims that stood still with the server: it may have forgotten their releases by then.
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
    fn claims_under_way(&self, env: &Env<Words>) -> BTreeSet<Owner> {
        let waiting = match &self.service {
            Service::Frozen(backlog) => Some(backlog.iter().map(|(.., ask)| ask)),
            Service::Up | Service::Down(..) => None,
        };
        let claims = env.network.asks().chain(waiting.into_iter().flatten()).filter_map(|ask| match ask {
            Ask::Acquire(claim, _) => Some(claim.owner),
            _ => None,
        });
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

    /// The server runs a request, and answers.
    pub(super) fn serve(&mut self, conn: ConnId, tag: Tag, ask: &Ask) {
        if self.env.network.is_left(conn) && matches!(ask, Ask::Acquire(..)) {
            self.env.fired(Fault::Ghost);
        }
        let say = self.run(conn, ask);
        if let Say::Acquire(Err(_)) = say {
            self.env.fired(Fault::Buried);
        }
        self.env.say(conn, tag, say);
    }

    /// Runs one request, and sends what it publishes.
    pub(super) fn run(&mut self, conn: ConnId, ask: &Ask) -> Say {
        let now = self.stores.clock.read(self.env.now);
        let outcome = self.stores.server.ask(now, conn, ask);
        for lease in &outcome.granted {
            self.env.watch.granted(lease);
        }
        self.watch_queue(now, ask, &outcome);
        let env = &mut self.env;
        for (inbox, event) in outcome.published {
            let is_grant = matches!(event, Event::Granted { .. });
            if is_grant && !self.processes.contains_key(&ProcessId(inbox.0)) {
                env.fired(Fault::HandedToTheDead);
            }
            for conn in self.stores.server.heard_on(inbox) {
                env.network.push(env.now, &mut env.dice, &mut env.tally, conn, event.clone());
            }
        }
        if let (Ask::Release(request), Say::Release(Ok(Released::Released))) = (ask, &outcome.say)
            && request.keep.is_some()
        {
            env.watch.kept(&request.name, request.owner);
        }
        env.note(format_args!("server: {:?}", outcome.say));
        outcome.say
    }

    /// Follows who waits at the store, and who is served.
    fn watch_queue(&mut self, now: Moment, ask: &Ask, outcome: &Outcome) {
        if M::ORDER == Order::OfThoseWhoListen {
            return;
        }
        let arrivals = &mut self.stores.arrivals;
        let (mut replaced, mut barging) = (None, None);
        match (ask, &outcome.say) {
            (Ask::Acquire(claim, _), Say::Acquire(Ok(Answer::Granted { .. }))) => {
                replaced = claim.replaces.map(|_| claim.owner);
                barging = Some(claim.owner).filter(|_| claim.fairness == Fairness::Barging);
            }
            (Ask::Acquire(claim, _), Say::Acquire(Ok(Answer::Queued { valid_for, .. }))) => {
                arrivals.queued(now, &claim.name, claim.owner, now + *valid_for);
            }
            (Ask::Acquire(claim, _), Say::Acquire(Ok(Answer::Busy { .. }))) => {
                arrivals.left(&claim.name, claim.owner);
            }
            (Ask::Release(request), Say::Release(Ok(_))) => arrivals.left(&request.name, request.owner),
            _ => {}
        }
        let mut granted: Vec<_> = outcome.granted.iter().collect();
        // In the order in which they were granted.
        granted.sort_by_key(|lease| lease.tokens);
        for lease in granted {
            let (owner, passed) = (lease.owner, arrivals.granted(now, lease).filter(|_| replaced != Some(lease.owner)));
            match passed {
                Some(_) if barging == Some(owner) => self.env.fired(Fault::Barged),
                Some(first) => {
                    let what = format!("{owner:?} was served, and {first:?} has waited for longer at {}", lease.name);
                    self.env.watch.report(Rule::Overtaken, Err(what));
                }
                None => self.env.watch.report(Rule::Overtaken, Ok(())),
            }
        }
    }

    fn check_idle(&mut self) {
        let mut known = None;
        let (env, one) = (&mut self.env, &self.stores);
        for process in self.processes.values_mut() {
            let now = process.clock.read(env.now);
            for site in process.sites.iter_mut().filter(|site| site.station.is_idle() && !site.ledger.is_empty()) {
                let (stored, under_way) = known.get_or_insert_with(|| (one.server.owners(), one.claims_under_way(env)));
                let result = invariants::cancelled(&env.watch, site, stored, under_way, now);
                env.watch.report(Rule::Cancelled, result);
            }
        }
    }

    fn check_admitted(&mut self) {
        let watch = &mut self.env.watch;
        for hold in watch.take_admitted() {
            if let Some(epoch) = watch.epoch_of(hold.lease()) {
                let result = self.stores.tokens.admitted(epoch, &hold);
                watch.report(Rule::TokensRise, result);
            }
        }
    }

    /// A reader joins only if nobody has waited at the store since it came, or a moment ago.
    fn check_joined(&mut self) {
        let One { clock, arrivals, .. } = &mut self.stores;
        let (now, at) = (self.env.now, clock.read(self.env.now));
        for (name, since) in self.env.watch.take_joined() {
            let waited_for = arrivals.waited_since(at, &name).map(|since| now.since(clock.when(since)));
            let may_wait_for = now.since(since).max(WORD_FOR);
            if let Some(waited_for) = waited_for.filter(|time| *time > may_wait_for) {
                let what =
                    format!("a reader that came at {since:?} joined at {name}, where others wait for {waited_for:?}");
                self.env.watch.report(Rule::Overtaken, Err(what));
            }
        }
    }

    fn check_holdings(&mut self) {
        let (now, one, watch) = (self.env.now, &self.stores, &mut self.env.watch);
        let holdings: Vec<Holding<'_>> = self.processes.values().flat_map(|process| process.holdings(now)).collect();
        let outsider = one.outsider.as_ref().filter(|outsider| now < outsider.until);
        if let Err((rule, what)) = invariants::together(watch, &holdings, outsider) {
            watch.report(rule, Err(what));
        }
        let kept = invariants::store_keeps(watch, &holdings, &one.server, one.clock, now);
        watch.report(Rule::StoreKeeps, kept);
    }

    /// What must hold long after all is well.
    pub(crate) fn check_quiet(&mut self) {
        let One { server, clock, .. } = &mut self.stores;
        let left = server.left_over(clock.read(self.env.now), &self.names);
        let result = left.map_or(Ok(()), |what| Err(format!("the store still holds {what}")));
        self.env.watch.report(Rule::Outliving, result);
    }

    /// The store forgets what it knew, or some of it, and has these in line.
    pub(super) fn data_lost(&mut self, arrivals: Arrivals) {
        let mut excused = self.stores.claims_under_way(&self.env);
        excused.extend(self.stores.server.owners());
        self.stores.arrivals = arrivals;
        self.env.watch.data_lost(excused.into_iter());
    }
}

impl<M: Model> Stores for One<M> {
    type Backend = Translator;

    fn begin_process(world: &mut World<Self>) {
        let env = &mut world.env;
        let id = ProcessId(env.number());
        let inbox = env.dice.chance(650).then_some(Inbox(id.0));
        let waiting = if inbox.is_some() { Waiting::QueueWithPush } else { Waiting::Queue };
        let ordering = if env.dice.chance(650) { RequestOrder::InOrder } else { RequestOrder::Unordered };
        let capabilities = Capabilities::new("sim", waiting, Durability::ClockFloor).with_shared_counter();
        let mut policy = Policy::new(M::can(capabilities.with_ordering(ordering)));
        if env.dice.chance(500) {
            policy.chain = u32::try_from(env.dice.from(0, 2)).unwrap_or_default();
        }
        if world.stores.mistake == Some(Mistake::UnboundedDebt) {
            policy.owed_max = usize::MAX;
        }
        let clock = Clock::any(&mut env.dice);
        env.note(format_args!("{id:?} begins: {policy:?}"));
        let backend = Translator::new(id, inbox, policy.store.ordering, world.names.len(), world.stores.mistake);
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
    }

    fn check(world: &mut World<Self>) {
        world.check_holdings();
        world.check_admitted();
        world.check_joined();
        world.check_idle();
    }
}
