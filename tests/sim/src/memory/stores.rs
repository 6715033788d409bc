//! The store in the world: how it answers, and what must hold there.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::{
    Ability, Answer, Capabilities, Durability, Event, FencingToken, LockName, Mode, ModeKind, Moment, Policy, Released,
    RequestOrder, Waiting,
};
use lock_memory::store::ClientId;

use super::Mistake;
use super::backend::Direct;
use super::store::{Ask, Say, Server, Words};
use crate::client::{Make, Process};
use crate::clock::Clock;
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::invariants::{Holding, Rule};
use crate::network::{ConnId, ProcessId, Tag, Weather};
use crate::world::{Stores, World};

/// On how many connections requests go where they may overtake each other.
const POOL: usize = 3;

#[derive(Debug)]
pub(crate) struct InMemory {
    server: Server,
    clock: Clock,
    /// The highest token that was admitted at each lock, and the highest of a writer.
    admitted: BTreeMap<LockName, (FencingToken, Option<FencingToken>)>,
}

impl InMemory {
    pub(super) fn new(env: &mut Env<Words>, mistake: Option<Mistake>) -> Self {
        let server = Server::new(mistake);
        let clock = Clock::new(Moment::ORIGIN + Duration::from_secs(1000), env.dice.rate());
        Self { server, clock, admitted: BTreeMap::new() }
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
        for hold in self.env.watch.take_admitted() {
            let (name, token) = (&hold.lease().name, hold.token());
            let reads = hold.lease().terms.mode == Mode::Shared;
            let before = self.stores.admitted.get(name).copied();
            let floor = before.and_then(|(highest, written)| if reads { written } else { Some(highest) });
            if let Some(floor) = floor.filter(|floor| *floor >= token) {
                return Err(format!("token {token} was admitted after {floor}"));
            }
            let highest = before.map_or(token, |(highest, _)| highest.max(token));
            let written = if reads { before.and_then(|(_, written)| written) } else { Some(token) };
            self.stores.admitted.insert(name.clone(), (highest, written));
        }
        Ok(())
    }

    fn check_holdings(&self) -> Result<(), (Rule, String)> {
        let now = self.env.now;
        let holdings: Vec<Holding<'_>> = self.processes.values().flat_map(|process| process.holdings(now)).collect();
        for (index, one) in holdings.iter().enumerate() {
            let name = &one.hold.lease().name;
            let beside = |other: &&Holding<'_>| other.hold.lease().name == *name && !(one.reads && other.reads);
            if let Some(other) = holdings[index + 1..].iter().find(beside) {
                return Err((Rule::OneHolder, format!("two hold: {:?} and {:?}", one.hold, other.hold)));
            }
            let stored = self.stores.server.holds(self.stores.clock.read(now), name);
            let owners = [Some(one.hold.lease().owner), one.replacing];
            let until = self.stores.clock.read(one.until);
            if !stored.iter().any(|(owner, ends)| owners.contains(&Some(*owner)) && until <= *ends) {
                return Err((Rule::StoreKeeps, format!("{one:?} is relied on, but the store has {stored:?}")));
            }
        }
        Ok(())
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
        let capabilities = capabilities.with_modes(&[ModeKind::Exclusive, ModeKind::Shared]);
        let capabilities = capabilities.with_ordering(ordering).with_abilities(&[Ability::Keep, Ability::Replace]);
        let mut policy = Policy::new(capabilities);
        if env.dice.chance(500) {
            policy.chain = u32::try_from(env.dice.from(0, 2)).unwrap_or_default();
        }
        let clock = Clock::any(&mut env.dice);
        env.note(format_args!("{id:?} begins: {policy:?}"));
        let backend = Direct::new(env, id, pool, world.stores.server.mistake);
        let process = Process::new(env, Make { id, clock, policy, names: &world.names, backend });
        world.add_process(process);
    }

    fn asked(world: &mut World<Self>, conn: ConnId, tag: Tag, ask: Ask) {
        let Some(process) = world.env.network.process(conn) else { return };
        if world.env.network.is_left(conn) && matches!(ask, Ask::Acquire(_)) {
            world.env.fired(Fault::Ghost);
        }
        let now = world.stores.clock.read(world.env.now);
        let (say, messages) = world.stores.server.run(now, conn, ClientId::new(process.0), &ask);
        world.watch(&ask, &say);
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
        if let Err((rule, what)) = world.check_holdings() {
            world.env.watch.report(rule, Err(what));
        }
    }
}
