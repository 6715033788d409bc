//! The servers: what they answer, and when. What happens to them is in `failover` and `mischief`.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lock_core::{Answer, Moment, StoreEvent};

use super::backend::Follower;
use super::deed::{Deed, Deeds};
use super::mistake::Mistake;
use super::node::{Node, Role};
use super::topology::{Chosen, SENTINELS, Sentinel};
use crate::client::{Make, Process};
use crate::clock::{Clock, Time};
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::network::{ConnId, StoreId, Tag};
use crate::one::{Ask, Inbox, Model, Outcome, Say, Tokens, Translator, Words, any_client};
use crate::redis::Server;
use crate::world::{Stores, World};

/// When the servers' clocks begin: in 2025.
const SERVERS_BEGIN: Moment = Moment::from_nanos(1_750_000_000_000_000_000);
/// How far apart the servers' clocks may be.
const APART_MAX: Duration = Duration::from_secs(2);
/// How far apart they may be if only the dwell protects.
const NEAR: Duration = Duration::from_millis(20);
/// How often a primary fails just when it has granted something, in a thousand.
const INTERRUPTED: u32 = 50;
/// How long a request waits for replicas.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_millis(400);
/// How long it takes until a replica has what was written.
const REPLICATED_WITHIN: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));

/// What the servers promise, and so what may go wrong with them. Both have the dwell and epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// Grants and renewals are acknowledged by all replicas. Anything may go wrong: an old primary may go on, servers may lose
    /// their data, and their clocks may be apart.
    Acknowledged,
    /// Nothing is acknowledged. A primary is replaced only once it is down, and nobody is served by it any more when it is back;
    /// the servers' clocks differ by less than that takes.
    DwellAlone,
}

#[derive(Debug)]
pub(super) struct Replicated {
    pub(super) nodes: Vec<Node>,
    pub(super) sentinels: Vec<Sentinel>,
    pub(super) promise: Promise,
    /// How many replicas have to acknowledge.
    acknowledgements: usize,
    pub(super) chosen: Chosen,
    /// Whether the primary is down.
    pub(super) is_failing: bool,
    /// Whether nothing goes wrong any more.
    pub(super) is_calm: bool,
    pub(super) deeds: Deeds,
    /// The connections whose last request waits for replicas.
    pub(super) blocked: BTreeMap<ConnId, Blocked>,
    pub(super) tokens: Tokens,
    mistake: Option<Mistake>,
}

/// A request that waits for replicas, and what came after it.
#[derive(Debug)]
pub(super) struct Blocked {
    pub(super) at: StoreId,
    offset: u64,
    tag: Tag,
    say: Say,
    backlog: VecDeque<(Tag, Ask)>,
}

impl Replicated {
    pub(super) fn new(env: &mut Env<Words>, mistake: Option<Mistake>) -> Self {
        let promise = match mistake {
            None | Some(Mistake::NoDwell | Mistake::EveryReleaseHandsOver) if env.dice.chance(400) => {
                Promise::DwellAlone
            }
            Some(_) | None => Promise::Acknowledged,
        };
        let replicas = if mistake == Some(Mistake::OneOfTwo) { 2 } else { env.dice.from(1, 2) };
        let acknowledgements = match (promise, mistake) {
            (Promise::DwellAlone, _) | (_, Some(Mistake::NoAcknowledgement)) => 0,
            (Promise::Acknowledged, Some(Mistake::OneOfTwo)) => 1,
            (Promise::Acknowledged, _) => replicas,
        };
        env.note(format_args!("{promise:?}, {replicas} replicas, {acknowledgements} acknowledge"));
        let first = Chosen::FIRST;
        let mut nodes: Vec<_> = (0..=replicas).map(|number| node(env, promise, number, mistake)).collect();
        nodes[first.primary.0].init();
        let entry = nodes[first.primary.0].entry();
        for replica in &mut nodes[1..] {
            replica.send(Time::START, entry.clone());
            replica.take_in(Time::START);
        }
        Self {
            nodes,
            sentinels: SENTINELS.map(|_| Sentinel::default()).into(),
            promise,
            acknowledgements,
            chosen: first,
            is_failing: false,
            is_calm: false,
            deeds: Deeds::default(),
            blocked: BTreeMap::new(),
            tokens: Tokens::default(),
            mistake,
        }
    }

    /// What follows this one.
    pub(super) fn replicas_of(&self, primary: StoreId) -> Vec<StoreId> {
        let follows = |node: &Node| node.role == Role::Replica(primary);
        let replicas = self.nodes.iter().enumerate().filter(|(_, node)| follows(node) && node.is_up);
        replicas.map(|(number, _)| StoreId(number)).collect()
    }

    /// Sends what it has to its replicas.
    fn replicate(&mut self, env: &mut Env<Words>, primary: StoreId) {
        let entry = self.nodes[primary.0].entry();
        for replica in self.replicas_of(primary) {
            let at = env.now + env.dice.between(REPLICATED_WITHIN.0, REPLICATED_WITHIN.1);
            let at = self.nodes[replica.0].send(at, entry.clone());
            self.deeds.plan(env, at.since(env.now), Deed::TakeIn(replica));
        }
        self.nodes[primary.0].remember(env.now, entry);
    }

    fn is_acknowledged(&self, primary: StoreId, offset: u64) -> bool {
        let has = |replica: &StoreId| self.nodes[replica.0].offset >= offset;
        self.replicas_of(primary).iter().filter(|replica| has(replica)).count() >= self.acknowledgements
    }

    fn tell(&mut self, env: &mut Env<Words>, at: StoreId, published: Vec<(Inbox, StoreEvent)>) {
        let at_once = self.acknowledgements == 0 || self.mistake == Some(Mistake::PushedAtOnce);
        for (inbox, event) in published {
            let event =
                if matches!(event, StoreEvent::Granted { .. }) && !at_once { StoreEvent::RecheckAll } else { event };
            for conn in self.nodes[at.0].model().heard_on(inbox) {
                env.network.push(env.now, &mut env.dice, &mut env.tally, conn, event.clone());
            }
        }
    }

    /// What has been acknowledged by now.
    fn acknowledged(&self) -> Vec<ConnId> {
        let done = self.blocked.iter().filter(|(_, blocked)| self.is_acknowledged(blocked.at, blocked.offset));
        done.map(|(conn, _)| *conn).collect()
    }
}

/// A server with its clock. In the beginning the first is the primary.
fn node(env: &mut Env<Words>, promise: Promise, number: usize, mistake: Option<Mistake>) -> Node {
    let apart = if promise == Promise::Acknowledged && env.dice.chance(300) { APART_MAX } else { NEAR };
    let begins = SERVERS_BEGIN + env.dice.between(Duration::ZERO, apart);
    let clock = Clock::new(begins, env.dice.rate());
    let first = Chosen::FIRST;
    let role = if StoreId(number) == first.primary { Role::Primary(first.epoch) } else { Role::Replica(first.primary) };
    Node::new(&mut env.dice, u64::try_from(number).unwrap_or_default() + 1, role, clock, mistake)
}

impl World<Replicated> {
    /// A server runs a request. A grant or a renewal waits for replicas, and what comes after it on the connection does as well.
    pub(super) fn serve(&mut self, at: StoreId, conn: ConnId, tag: Tag, ask: &Ask) {
        let Self { env, stores, .. } = self;
        if at != stores.chosen.primary {
            env.fired(Fault::ServedByOld);
        }
        if env.network.is_left(conn) && matches!(ask, Ask::Acquire(..)) {
            env.fired(Fault::Ghost);
        }
        let (Outcome { say, published, granted }, fault) = stores.nodes[at.0].run(env.now, conn, ask);
        env.note(format_args!("{at:?}: {say:?} {fault:?}"));
        fault.into_iter().for_each(|fault| env.fired(fault));
        granted.iter().for_each(|lease| env.watch.granted(lease));
        stores.tell(env, at, published);
        if !granted.is_empty() && !stores.is_calm && env.dice.chance(INTERRUPTED) {
            return self.fail_over();
        }
        stores.replicate(env, at);
        let offset = stores.nodes[at.0].offset;
        let needs = matches!(say, Say::Acquire(Ok(Answer::Granted { .. })) | Say::Renew(_));
        if needs && !stores.is_acknowledged(at, offset) {
            stores.deeds.plan(env, ACKNOWLEDGED_WITHIN, Deed::GiveUp(conn, tag));
            stores.blocked.insert(conn, Blocked { at, offset, tag, say, backlog: VecDeque::new() });
        } else {
            env.say(conn, tag, say);
        }
    }

    /// A replica takes in what has arrived, and some requests are answered.
    pub(super) fn take_in(&mut self, replica: StoreId) {
        if self.stores.nodes[replica.0].is_up {
            self.stores.nodes[replica.0].take_in(self.env.now);
        }
        for conn in self.stores.acknowledged() {
            self.unblock(conn, None);
        }
    }

    /// A request has waited long enough for replicas.
    pub(super) fn give_up(&mut self, conn: ConnId, tag: Tag) {
        if self.stores.blocked.get(&conn).is_some_and(|blocked| blocked.tag == tag) {
            self.env.fired(Fault::TooFewReplicas);
            self.unblock(conn, Some(Say::TooFew));
        }
    }

    /// Answers, and runs what came after it.
    fn unblock(&mut self, conn: ConnId, instead: Option<Say>) {
        let Some(Blocked { at, tag, say, mut backlog, .. }) = self.stores.blocked.remove(&conn) else { return };
        self.env.say(conn, tag, instead.unwrap_or(say));
        while let Some((tag, ask)) = backlog.pop_front() {
            self.serve(at, conn, tag, &ask);
            if let Some(blocked) = self.stores.blocked.get_mut(&conn) {
                blocked.backlog = backlog;
                return;
            }
        }
    }
}

impl Stores for Replicated {
    type Backend = Follower;

    fn begin_process(world: &mut World<Self>) {
        let env = &mut world.env;
        let (id, inbox, policy) = any_client::<Server>(env);
        let clock = Clock::any(&mut env.dice);
        env.note(format_args!("{id:?} begins: {policy:?}"));
        let inner = Translator::new(id, inbox, policy.store.ordering, None);
        let watches = env.dice.pick(&SENTINELS).unwrap_or(SENTINELS[0]);
        let backend = Follower::new(id, inner, watches, world.stores.mistake);
        let process = Process::new(env, Make { id, clock, policy, names: &world.names, backend });
        world.add_process(process);
    }

    fn asked(world: &mut World<Self>, conn: ConnId, tag: Tag, ask: Ask) {
        let (Some(at), now) = (world.store_of(conn), world.env.now) else { return };
        if let Some(sentinel) = SENTINELS.iter().position(|sentinel| *sentinel == at) {
            let Chosen { primary, epoch } = world.stores.sentinels[sentinel].knows(now);
            return world.env.say(conn, tag, Say::Primary(primary.0, epoch));
        }
        if let Some(blocked) = world.stores.blocked.get_mut(&conn) {
            return blocked.backlog.push_back((tag, ask));
        }
        let node = &world.stores.nodes[at.0];
        match (node.is_up, node.role, &ask) {
            (true, Role::Primary(_), _) => world.serve(at, conn, tag, &ask),
            (true, Role::Replica(_), Ask::Hello(_)) => world.env.say(conn, tag, Say::NotPrimary),
            _ => world.env.network.refuse(now, conn),
        }
    }

    fn closed(&mut self, conn: ConnId) {
        self.blocked.remove(&conn);
        self.nodes.iter_mut().for_each(|node| node.model().closed(conn));
    }

    fn go_wrong(world: &mut World<Self>) {
        world.go_wrong();
    }

    fn carry_out(world: &mut World<Self>, plan: Plan) {
        if let Plan::Cue(number) = plan
            && let Some(deed) = world.stores.deeds.take(number)
        {
            world.do_deed(deed);
        }
    }

    fn heal(world: &mut World<Self>) {
        world.heal_servers();
    }

    fn check(world: &mut World<Self>) {
        world.check_holdings();
        world.stores.tokens.check(&mut world.env.watch);
        world.check_epochs();
    }
}
