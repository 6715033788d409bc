//! The store in the world: how it answers, and what must hold there.

use std::time::Duration;

use lock_core::{
    Ability, Answer, Capabilities, Durability, Event, ModeKind, Moment, Policy, Released, RequestOrder, Waiting,
};
use lock_memory::store::ClientId;

use super::Mistake;
use super::asked::{Ask, Say};
use super::backend::Direct;
use super::invariants::{self, Arrivals, Tokens};
use super::store::{Message, Server, Words};
use crate::client::{Make, Process, Usage};
use crate::clock::Clock;
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::invariants::{Holding, Rule};
use crate::network::{ConnId, ProcessId, Tag, Weather};
use crate::world::{Stores, World};

/// On how many connections requests go where they may overtake each other.
const POOL: usize = 3;
/// How old the store's word that nobody waits may be for a reader to join a lease: 20 ms on any clock.
const WORD_FOR: Duration = Duration::from_millis(21);

#[derive(Debug)]
pub(crate) struct InMemory {
    server: Server,
    clock: Clock,
    /// What its names are used as.
    usages: Vec<Usage>,
    tokens: Tokens,
    arrivals: Arrivals,
}

impl InMemory {
    pub(super) fn new(env: &mut Env<Words>, names: usize, mistake: Option<Mistake>) -> Self {
        let server = Server::new(mistake);
        let clock = Clock::new(Moment::ORIGIN + Duration::from_secs(1000), env.dice.rate());
        let usages = (0..names).map(|_| Usage::any(&mut env.dice)).collect();
        Self { server, clock, usages, tokens: Tokens::default(), arrivals: Arrivals::default() }
    }
}

impl World<InMemory> {
    /// Some processes, at one lock or two.
    pub(super) fn populate(&mut self) {
        if self.env.dice.chance(500) {
            self.names.truncate(1);
        }
        for _ in 0..self.env.dice.from(2, 4) {
            InMemory::begin_process(self);
        }
    }

    fn check_admitted(&mut self) -> Result<(), String> {
        let admitted = self.env.watch.take_admitted();
        admitted.iter().try_for_each(|hold| self.stores.tokens.admitted(hold))
    }

    /// A reader joins only if nobody has waited at the store since it came, or a moment ago.
    fn check_joined(&mut self) -> Result<(), String> {
        let InMemory { clock, arrivals, .. } = &mut self.stores;
        let (now, at) = (self.env.now, clock.read(self.env.now));
        for (name, since) in self.env.watch.take_joined() {
            let waited_for = arrivals.waited_since(at, &name).map(|since| now.since(clock.when(since)));
            let may_wait_for = now.since(since).max(WORD_FOR);
            if let Some(waited_for) = waited_for.filter(|time| *time > may_wait_for) {
                return Err(format!(
                    "a reader that came at {since:?} joined at {name}, where others wait for {waited_for:?}"
                ));
            }
        }
        Ok(())
    }

    fn check_holdings(&self) -> Result<(), (Rule, String)> {
        let (now, InMemory { server, clock, .. }) = (self.env.now, &self.stores);
        let holdings: Vec<Holding<'_>> = self.processes.values().flat_map(|process| process.holdings(now)).collect();
        invariants::together(&holdings)?;
        let keeps = |holding| invariants::store_keeps(server, clock.read(now), *clock, holding);
        holdings.iter().try_for_each(keeps).map_err(|what| (Rule::StoreKeeps, what))
    }

    /// What must hold long after all is well.
    pub(super) fn check_quiet(&mut self) {
        let InMemory { server, clock, .. } = &self.stores;
        let result = invariants::outliving(server, clock.read(self.env.now), &self.names);
        self.env.watch.report(Rule::Outliving, result);
    }

    /// Follows who waits at the store, and who is served.
    fn watch_queue(&mut self, now: Moment, ask: &Ask, say: &Say, messages: &[Message]) {
        let pushed = messages.iter().filter_map(|message| match &message.event {
            Event::Granted { lease, .. } => Some((lease, None)),
            Event::Wanted { .. } | Event::Freed { .. } | Event::RecheckAll | _ => None,
        });
        let arrivals = &mut self.stores.arrivals;
        let mut granted: Vec<_> = pushed.collect();
        match (ask, say) {
            (Ask::Acquire(claim), Say::Acquire(Ok(Answer::Granted { lease, .. }))) => {
                granted.push((lease, claim.replaces))
            }
            (Ask::Acquire(claim), Say::Acquire(Ok(Answer::Queued { valid_for, .. }))) => {
                arrivals.queued(now, &claim.name, claim.owner, now + *valid_for);
            }
            (Ask::Acquire(claim), Say::Acquire(Ok(Answer::Busy { .. }))) => arrivals.left(&claim.name, claim.owner),
            (Ask::Release(request), Say::Release(Ok(_))) => arrivals.left(&request.name, request.owner),
            _ => {}
        }
        // In the order in which they were granted.
        granted.sort_by_key(|(lease, _)| lease.tokens);
        for (lease, replaces) in granted {
            let result = arrivals.granted(now, lease, replaces);
            self.env.watch.report(Rule::Overtaken, result);
        }
    }

    /// What the store says is written down by those who watch.
    fn watch(&mut self, ask: &Ask, say: &Say) {
        match (ask, say) {
            (_, Say::Acquire(Ok(Answer::Granted { lease, .. }))) => self.env.watch.granted(lease),
            (Ask::Acquire(_), Say::Acquire(Err(_))) => self.env.fired(Fault::Buried),
            (Ask::Release(request), Say::Release(Ok(Released::Released))) if request.keep.is_some() => {
                self.env.watch.kept(&request.name, request.owner);
            }
            _ => {}
        }
    }
}

impl Stores for InMemory {
    type Backend = Direct;

    fn begin_process(world: &mut World<Self>) {
        let env = &mut world.env;
        let id = ProcessId(env.number());
        let (ordering, pool) =
            if env.dice.chance(650) { (RequestOrder::InOrder, 1) } else { (RequestOrder::Unordered, POOL) };
        let capabilities = Capabilities::new("sim", Waiting::QueueWithPush, Durability::Process).with_shared_counter();
        let capabilities = capabilities.with_modes(&[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits]);
        let capabilities = capabilities.with_ordering(ordering).with_abilities(&[Ability::Keep, Ability::Replace]);
        let mut policy = Policy::new(capabilities);
        if env.dice.chance(500) {
            policy.chain = u32::try_from(env.dice.from(0, 2)).unwrap_or_default();
        }
        let clock = Clock::any(&mut env.dice);
        env.note(format_args!("{id:?} begins: {policy:?}"));
        let backend = Direct::new(env, id, pool, world.stores.server.mistake);
        let process = Process::new(env, Make { id, clock, policy, names: &world.names, backend });
        world.add_process(process.with_usages(&world.stores.usages));
    }

    fn asked(world: &mut World<Self>, conn: ConnId, tag: Tag, ask: Ask) {
        let Some(process) = world.env.network.process(conn) else { return };
        if world.env.network.is_left(conn) && matches!(ask, Ask::Acquire(_)) {
            world.env.fired(Fault::Ghost);
        }
        let now = world.stores.clock.read(world.env.now);
        let (say, messages) = world.stores.server.run(now, conn, ClientId::new(process.0), &ask);
        world.watch(&ask, &say);
        world.watch_queue(now, &ask, &say, &messages);
        let env = &mut world.env;
        for message in messages {
            if let Event::Granted { lease, .. } = &message.event {
                env.watch.granted(lease);
                let reader = message.conn.and_then(|conn| env.network.process(conn));
                if reader.is_none_or(|reader| !world.processes.contains_key(&reader)) {
                    env.fired(Fault::HandedToTheDead);
                }
            }
            if let Some(conn) = message.conn {
                env.network.push(env.now, &mut env.dice, &mut env.tally, conn, message.event);
            }
        }
        env.note(format_args!("store: {say:?}"));
        env.say(conn, tag, say);
    }

    fn closed(&mut self, _: ConnId) {}

    fn go_wrong(world: &mut World<Self>) {
        match world.env.dice.from(0, 7) {
            0..=2 => world.cut_something(),
            3 => world.stop_somebody(Fault::Paused),
            4 => world.stop_somebody(Fault::Suspended),
            5 => world.kill_somebody(),
            _ => {
                let dice = &mut world.env.dice;
                let mut chance = |of: &[u32]| dice.pick(of).unwrap_or_default();
                world.env.network.weather = Weather {
                    lose: chance(&[0, 0, 20, 100]),
                    double: chance(&[0, 50]),
                    repeat: chance(&[0, 50]),
                    slow: chance(&[0, 20, 200]),
                };
            }
        }
    }

    fn carry_out(_: &mut World<Self>, _: Plan) {}

    fn heal(_: &mut World<Self>) {}

    fn check(world: &mut World<Self>) {
        let rising = world.check_admitted();
        world.env.watch.report(Rule::TokensRise, rising);
        let joined = world.check_joined();
        world.env.watch.report(Rule::Overtaken, joined);
        if let Err((rule, what)) = world.check_holdings() {
            world.env.watch.report(rule, Err(what));
        }
    }
}
