//! The store in the world: how it answers, and what must hold there.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::{
    Ability, Answer, Capabilities, Durability, Event, FencingToken, Lease, LockName, Mode, ModeKind, Moment, Policy,
    Released, RequestOrder, Waiting,
};
use lock_memory::store::ClientId;

use super::Mistake;
use super::backend::Direct;
use super::store::{Ask, Message, Say, Server, Words};
use crate::client::{Make, Process};
use crate::clock::Clock;
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::invariants::{Holding, Rule};
use crate::network::{ConnId, ProcessId, Tag, Weather};
use crate::world::{Stores, World};

/// The name that is used as a semaphore.
const SEMAPHORE: &str = "s";
/// On how many connections requests go where they may overtake each other.
const POOL: usize = 3;

#[derive(Debug)]
pub(crate) struct InMemory {
    server: Server,
    clock: Clock,
    /// The highest token that was admitted at each lock, and the highest of a writer.
    admitted: BTreeMap<LockName, (FencingToken, Option<FencingToken>)>,
    /// The highest token that was admitted for each slot of the semaphore.
    slots: BTreeMap<u32, FencingToken>,
    /// How many permits the semaphore has.
    limit: u32,
}

impl InMemory {
    pub(super) fn new(env: &mut Env<Words>, mistake: Option<Mistake>) -> Self {
        let server = Server::new(mistake);
        let clock = Clock::new(Moment::ORIGIN + Duration::from_secs(1000), env.dice.rate());
        let limit = env.dice.pick(&[1, 2, 3, 8]).unwrap_or(1);
        Self { server, clock, admitted: BTreeMap::new(), slots: BTreeMap::new(), limit }
    }
}

impl World<InMemory> {
    /// Some processes, at one lock or two, and at a semaphore.
    pub(super) fn populate(&mut self) {
        if self.env.dice.chance(500) {
            self.names.truncate(1);
        }
        self.names.extend(SEMAPHORE.parse());
        for _ in 0..self.env.dice.from(2, 4) {
            InMemory::begin_process(self);
        }
    }

    fn check_admitted(&mut self) -> Result<(), String> {
        for hold in self.env.watch.take_admitted() {
            let (name, token) = (&hold.lease().name, hold.token());
            let slots = hold.lease().slots.get();
            if !slots.is_empty() {
                self.check_slots(hold.lease())?;
                continue;
            }
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

    /// The tokens of each slot rise.
    fn check_slots(&mut self, lease: &Lease) -> Result<(), String> {
        let tokens = (0..).filter_map(|index| lease.tokens.nth(index));
        for (slot, token) in lease.slots.get().iter().zip(tokens) {
            if let Some(before) = self.stores.slots.insert(*slot, token).filter(|before| *before >= token) {
                return Err(format!("token {token} of slot {slot} was admitted after {before}"));
            }
        }
        Ok(())
    }

    fn check_holdings(&self) -> Result<(), (Rule, String)> {
        let now = self.env.now;
        let holdings: Vec<Holding<'_>> = self.processes.values().flat_map(|process| process.holdings(now)).collect();
        for (index, one) in holdings.iter().enumerate() {
            let name = &one.hold.lease().name;
            let same_slot = |other: &Holding<'_>| other.slots.iter().any(|slot| one.slots.contains(slot));
            let are_apart = |other: &Holding<'_>| {
                one.reads && other.reads || !one.slots.is_empty() && !other.slots.is_empty() && !same_slot(other)
            };
            let beside = |other: &&Holding<'_>| other.hold.lease().name == *name && !are_apart(other);
            if one.slots.iter().any(|slot| *slot >= self.stores.limit) {
                return Err((Rule::OneHolder, format!("there are only {} permits: {:?}", self.stores.limit, one.hold)));
            }
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

    /// Those who came to the store earlier are served earlier.
    fn watch_turns(&mut self, now: Moment, ask: &Ask, say: &Say, messages: &[Message]) {
        let in_turn = &mut self.stores.server.in_turn;
        let mut handed = Vec::new();
        for message in messages {
            if let Event::Granted { lease, .. } = &message.event {
                handed.push(lease.owner);
            }
        }
        let result = match (ask, say) {
            (Ask::Release(request), _) => {
                in_turn.left(&request.name, request.owner);
                in_turn.granted(now, &request.name, &handed)
            }
            (Ask::Acquire(claim), Say::Acquire(result)) => in_turn.answered(now, claim, result.as_ref().ok(), handed),
            _ => Ok(()),
        };
        self.env.watch.report(Rule::InTurn, result);
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
        let process = match SEMAPHORE.parse() {
            Ok(name) => process.with_semaphore(&name, world.stores.limit),
            Err(_) => process,
        };
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
        world.watch_turns(now, &ask, &say, &messages);
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
