//! One Redis in the world: how it answers, and what must hold there.

use std::collections::{BTreeSet, VecDeque};

use lock_core::{Capabilities, Durability, Moment, Owner, Policy, RequestOrder, Waiting};

use super::Mistake;
use super::backend::Translator;
use super::invariants::{self, Outsider, Tokens};
use super::server::{Ask, Database, Detail, Inbox, Say, Server};
use super::words::Words;
use crate::client::{Make, Process};
use crate::clock::{Clock, Time};
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::invariants::{Holding, Rule};
use crate::network::{ConnId, ProcessId, Tag};
use crate::world::{Stores, World};

/// When the server's clock begins: in 2025.
const SERVER_BEGINS: Moment = Moment::from_nanos(1_750_000_000_000_000_000);

/// What the server is doing.
#[derive(Debug)]
pub(super) enum Service {
    Up,
    /// It is suspended; what arrives waits.
    Frozen(VecDeque<(ConnId, Tag, Ask)>),
    /// It is away, since then, and comes back with these data.
    Down(Time, Return),
}

/// What a server has after a restart.
#[derive(Debug)]
pub(super) enum Return {
    WithItsData,
    Empty,
    FromCopy(Database),
}

#[derive(Debug)]
pub(crate) struct OneRedis {
    pub(super) server: Server,
    pub(super) clock: Clock,
    pub(super) service: Service,
    pub(super) copy: Option<Database>,
    pub(super) outsider: Option<Outsider>,
    tokens: Tokens,
    mistake: Option<Mistake>,
}

impl OneRedis {
    pub(super) fn new(env: &mut Env<Words>, mistake: Option<Mistake>) -> Self {
        Self {
            server: Server::new(mistake).telling(if env.dice.chance(500) { Detail::Full } else { Detail::AsRedis }),
            clock: Clock::new(SERVER_BEGINS, env.dice.rate()),
            service: Service::Up,
            copy: None,
            outsider: None,
            tokens: Tokens::default(),
            mistake,
        }
    }

    /// The owners of claims that may still arrive.
    fn claims_under_way(&self, env: &Env<Words>) -> BTreeSet<Owner> {
        let waiting = match &self.service {
            Service::Frozen(backlog) => Some(backlog.iter().map(|(.., ask)| ask)),
            Service::Up | Service::Down(..) => None,
        };
        let claims = env.network.asks().chain(waiting.into_iter().flatten()).filter_map(|ask| match ask {
            Ask::Acquire(claim, _) => Some(claim.owner),
            Ask::Hello(_) | Ask::Renew(_) | Ask::Release(_) | Ask::Fence(_) | Ask::Revoke(..) => None,
        });
        claims.collect()
    }
}

impl World<OneRedis> {
    /// Some processes, at one lock or two.
    pub(super) fn populate(&mut self) {
        if self.env.dice.chance(500) {
            self.names.truncate(1);
        }
        for _ in 0..self.env.dice.from(2, 4) {
            OneRedis::begin_process(self);
        }
    }

    /// The server runs a request, and answers.
    pub(super) fn serve(&mut self, conn: ConnId, tag: Tag, ask: &Ask) {
        if self.env.network.is_left(conn) && matches!(ask, Ask::Acquire(..)) {
            self.env.fired(Fault::Ghost);
        }
        let say = self.run_script(conn, ask);
        if let Say::Acquire(Err(_)) = say {
            self.env.fired(Fault::Buried);
        }
        self.env.say(conn, tag, say);
    }

    /// Runs one script, and sends what it publishes.
    pub(super) fn run_script(&mut self, conn: ConnId, ask: &Ask) -> Say {
        let redis = &mut self.stores;
        let outcome = redis.server.run(redis.clock.read(self.env.now), conn, ask);
        let env = &mut self.env;
        for lease in &outcome.granted {
            env.watch.granted(lease);
        }
        for (inbox, event) in outcome.published {
            if !self.processes.contains_key(&ProcessId(inbox.0)) {
                env.fired(Fault::HandedToTheDead);
            }
            for conn in redis.server.heard_on(inbox) {
                env.network.push(env.now, &mut env.dice, &mut env.tally, conn, event.clone());
            }
        }
        env.note(format_args!("server: {:?}", outcome.say));
        outcome.say
    }

    fn check_idle(&mut self) {
        let mut under_way = None;
        let (env, redis) = (&mut self.env, &self.stores);
        for process in self.processes.values_mut() {
            let now = process.clock.read(env.now);
            for site in process.sites.iter_mut().filter(|site| site.station.is_idle() && !site.ledger.is_empty()) {
                let under_way = under_way.get_or_insert_with(|| redis.claims_under_way(env));
                let result = invariants::cancelled(&env.watch, site, &redis.server, under_way, now);
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

    /// What must hold long after all is well.
    pub(super) fn check_quiet(&mut self) {
        let redis = &mut self.stores;
        redis.server.forget_what_is_over(redis.clock.read(self.env.now));
        let result = invariants::outliving(&redis.server);
        self.env.watch.report(Rule::Outliving, result);
    }

    /// The store forgets what it knew, or some of it.
    pub(super) fn data_lost(&mut self) {
        let mut excused = self.stores.claims_under_way(&self.env);
        excused.extend(self.stores.server.data.owners());
        self.env.watch.data_lost(excused.into_iter());
    }
}

impl Stores for OneRedis {
    type Backend = Translator;

    fn begin_process(world: &mut World<Self>) {
        let env = &mut world.env;
        let id = ProcessId(env.number());
        let inbox = env.dice.chance(650).then_some(Inbox(id.0));
        let waiting = if inbox.is_some() { Waiting::QueueWithPush } else { Waiting::Queue };
        let ordering = if env.dice.chance(650) { RequestOrder::InOrder } else { RequestOrder::Unordered };
        let capabilities = Capabilities::new("sim", waiting, Durability::ClockFloor).with_shared_counter();
        let mut policy = Policy::new(capabilities.with_ordering(ordering));
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
        world.add_process(process);
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
            | Plan::Handed(..)
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
        let (now, redis, watch) = (world.env.now, &world.stores, &mut world.env.watch);
        let holdings: Vec<Holding<'_>> = world.processes.values().flat_map(|process| process.holdings(now)).collect();
        let outsider = redis.outsider.as_ref().filter(|outsider| now < outsider.until);
        let one = invariants::one_holder(watch, &holdings, outsider);
        let kept = invariants::store_keeps(watch, &holdings, &redis.server, redis.clock);
        watch.report(Rule::OneHolder, one);
        watch.report(Rule::StoreKeeps, kept);
        world.check_admitted();
        world.check_idle();
    }
}
