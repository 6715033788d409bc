//! The world: processes, one server, the network between them, and time, which goes on from one event to the next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use lock_core::{Capabilities, Durability, LockName, Moment, Ordering, Owner, Policy, Waiting};

use crate::Mistake;
use crate::client::{Act, Make, Motion, News, Process, Wish};
use crate::clock::{Clock, Time};
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::invariants::{self, Holding, Outsider, Rule};
use crate::network::{ConnId, Letter, ProcessId, Tag, Weather};
use crate::server::{Ask, Database, Inbox, Say, Server};

/// When the server's clock begins: in 2025.
const SERVER_BEGINS: Moment = Moment::from_nanos(1_750_000_000_000_000_000);

/// What the server is doing.
#[derive(Debug)]
pub(crate) enum Service {
    Up,
    /// It stands still; what arrives waits.
    Frozen(VecDeque<(ConnId, Tag, Ask)>),
    /// It is away, since then, and comes back with these data.
    Down(Time, Return),
}

/// With what a server comes back.
#[derive(Debug)]
pub(crate) enum Return {
    WithItsData,
    Empty,
    FromCopy(Database),
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) env: Env,
    pub(crate) server: Server,
    pub(crate) clock: Clock,
    pub(crate) service: Service,
    pub(crate) copy: Option<Database>,
    pub(crate) processes: BTreeMap<ProcessId, Process>,
    pub(crate) names: Vec<LockName>,
    pub(crate) outsider: Option<Outsider>,
    mistake: Option<Mistake>,
    pub(crate) steps: u64,
}

impl World {
    pub(crate) fn new(seed: u64, names: Vec<LockName>, mistake: Option<Mistake>) -> Self {
        let mut env = Env::new(seed, Weather::CALM);
        let clock = Clock::new(SERVER_BEGINS, env.dice.rate());
        let mut world = Self {
            env,
            server: Server::new(mistake),
            clock,
            service: Service::Up,
            copy: None,
            processes: BTreeMap::new(),
            names,
            outsider: None,
            mistake,
            steps: 0,
        };
        if world.env.dice.chance(500) {
            world.names.truncate(1);
        }
        for _ in 0..world.env.dice.from(2, 4) {
            world.begin_process();
        }
        world
    }

    /// Another process, of any kind.
    pub(crate) fn begin_process(&mut self) {
        let env = &mut self.env;
        let id = ProcessId(env.number());
        let inbox = env.dice.chance(650).then_some(Inbox(id.0));
        let waiting = if inbox.is_some() { Waiting::QueueWithPush } else { Waiting::Queue };
        let ordering = if env.dice.chance(650) { Ordering::InOrder } else { Ordering::Unordered };
        let mut policy = Policy::new(Capabilities::new("sim", waiting, Durability::ClockFloor).with_ordering(ordering));
        if env.dice.chance(500) {
            policy.chain = u32::try_from(env.dice.from(0, 2)).unwrap_or_default();
        }
        let origin = Moment::ORIGIN + env.dice.millis(1_000_000, 9_000_000);
        let clock = Clock::new(origin, env.dice.rate());
        env.note(format_args!("{id:?} begins: {policy:?}"));
        let make = Make { id, clock, policy, inbox, names: &self.names, mistake: self.mistake };
        let process = Process::new(env, &make);
        self.processes.insert(id, process);
        env.plan(Duration::ZERO, Plan::Arrival(id));
    }

    /// Goes on until there is nothing to do before `end`, or a rule is broken.
    pub(crate) fn run_until(&mut self, end: Time) {
        while self.env.watch.broken().is_none() {
            let Some(next) = self.next_due().filter(|next| *next <= end) else {
                self.env.now = end.max(self.env.now);
                return;
            };
            self.env.now = self.env.now.max(next);
            self.step();
            self.check();
            self.steps += 1;
        }
    }

    fn next_due(&self) -> Option<Time> {
        let wakes = self.processes.values().filter_map(Process::next_wake);
        wakes.chain(self.env.network.next_due()).chain(self.env.next_planned()).min()
    }

    fn step(&mut self) {
        if let Some((conn, letter)) = self.env.network.take_due(self.env.now) {
            self.deliver(conn, letter);
        } else if let Some(plan) = self.env.take_planned() {
            self.carry_out(plan);
        } else {
            let now = self.env.now;
            let due = self.processes.values_mut().find(|process| process.next_wake().is_some_and(|wake| wake <= now));
            if let Some(process) = due {
                self.env.note(format_args!("{:?} wakes", process.id));
                process.wake(&mut self.env);
            }
        }
    }

    fn deliver(&mut self, conn: ConnId, letter: Letter) {
        self.env.note(format_args!("{conn:?} {letter:?}"));
        match letter {
            Letter::Ask(tag, ask) => self.asked(conn, tag, ask),
            Letter::CutAtServer => self.server.closed(conn),
            Letter::Say(..) | Letter::Push(_) | Letter::CutAtClient => {
                let process = self.env.network.process(conn);
                if let Some(process) = process.and_then(|process| self.processes.get_mut(&process)) {
                    process.hear(&mut self.env, News::Letter(conn, letter));
                }
            }
        }
    }

    fn asked(&mut self, conn: ConnId, tag: Tag, ask: Ask) {
        match &mut self.service {
            Service::Up => self.serve(conn, tag, &ask),
            Service::Frozen(backlog) => backlog.push_back((conn, tag, ask)),
            Service::Down(..) => self.env.network.refuse(self.env.now, conn),
        }
    }

    /// The server runs what is asked, and answers.
    pub(crate) fn serve(&mut self, conn: ConnId, tag: Tag, ask: &Ask) {
        let late = self.env.network.is_left(conn);
        if late && matches!(ask, Ask::Acquire(..)) {
            self.env.fired(Fault::Ghost);
        }
        let say = self.run_script(conn, ask);
        if let Say::Acquire(Err(_)) = say {
            self.env.fired(Fault::Buried);
        }
        let env = &mut self.env;
        env.network.say(env.now, &mut env.dice, &mut env.tally, conn, tag, say);
    }

    /// Runs one script, and sends what it publishes.
    pub(crate) fn run_script(&mut self, conn: ConnId, ask: &Ask) -> Say {
        let outcome = self.server.run(self.clock.read(self.env.now), conn, ask);
        let env = &mut self.env;
        for lease in &outcome.granted {
            env.watch.granted(lease);
        }
        for (inbox, event) in outcome.published {
            if !self.processes.contains_key(&ProcessId(inbox.0)) {
                env.fired(Fault::HandedToTheDead);
            }
            for conn in self.server.heard_on(inbox) {
                env.network.push(env.now, &mut env.dice, &mut env.tally, conn, event.clone());
            }
        }
        env.note(format_args!("server: {:?}", outcome.say));
        outcome.say
    }

    fn carry_out(&mut self, plan: Plan) {
        self.env.note(format_args!("{plan:?}"));
        match plan {
            Plan::Act(process, act) => self.act(process, act),
            Plan::Arrival(process) => self.arrive(process),
            Plan::Resume(process) => self.resume(process),
            Plan::Rebirth => self.begin_process(),
            Plan::Mischief => self.do_mischief(),
            Plan::Thaw => self.thaw(),
            Plan::Start => self.start_server(),
            Plan::ForeignDone => self.end_outsider(),
        }
    }

    fn act(&mut self, process: ProcessId, act: Act) {
        if let Some(process) = self.processes.get_mut(&process) {
            process.hear(&mut self.env, News::Act(act));
        }
    }

    /// Somebody comes, and the next one a little later.
    fn arrive(&mut self, id: ProcessId) {
        if !self.processes.contains_key(&id) {
            return;
        }
        let wish = Wish::any(&mut self.env.dice, self.names.len());
        self.act(id, Act::Join(wish));
        let next = if self.env.dice.chance(300) { self.env.dice.millis(0, 5) } else { self.env.dice.millis(50, 3000) };
        self.env.plan(next, Plan::Arrival(id));
    }

    /// From now on nothing goes wrong any more. Somebody comes to each process and lock.
    pub(crate) fn heal(&mut self) {
        self.env.note(format_args!("all is well from now on"));
        self.env.network.weather = Weather::CALM;
        self.env.cancel(|plan| matches!(plan, Plan::Arrival(_) | Plan::Mischief | Plan::Rebirth));
        self.thaw();
        self.start_server();
        let stopped = self.processes.values().filter(|process| process.motion == Motion::Stopped);
        for id in stopped.map(|process| process.id).collect::<Vec<_>>() {
            self.resume(id);
        }
        for id in self.processes.keys().copied().collect::<Vec<_>>() {
            for site in 0..self.names.len() {
                let wish = Wish::patient(&mut self.env.dice, site);
                self.act(id, Act::Join(wish));
            }
        }
    }

    /// What must hold at every step.
    fn check(&mut self) {
        let now = self.env.now;
        let holdings: Vec<Holding<'_>> = self.processes.values().flat_map(|process| process.holdings(now)).collect();
        let outsider = self.outsider.as_ref().filter(|outsider| now < outsider.until);
        let one = invariants::one_holder(&self.env.watch, &holdings, outsider);
        let kept = invariants::store_keeps(&self.env.watch, &holdings, &self.server, self.clock);
        self.env.watch.report(Rule::OneHolder, one);
        self.env.watch.report(Rule::StoreKeeps, kept);
        self.check_idle();
    }

    fn check_idle(&mut self) {
        let mut under_way = None;
        for process in self.processes.values_mut() {
            let now = process.clock.read(self.env.now);
            for site in process.sites.iter_mut().filter(|site| site.station.is_idle() && !site.ledger.is_empty()) {
                let under_way = under_way.get_or_insert_with(|| claims_under_way(&self.env, &self.service));
                let result = invariants::cancelled(&self.env.watch, site, &self.server, under_way, now);
                self.env.watch.report(Rule::Cancelled, result);
            }
        }
    }

    /// What must hold once everybody had time enough.
    pub(crate) fn check_rest(&mut self) {
        let result = invariants::everybody(self.processes.values());
        self.env.watch.report(Rule::Everybody, result);
    }

    /// What must hold long after that.
    pub(crate) fn check_quiet(&mut self) {
        self.server.forget_what_is_over(self.clock.read(self.env.now));
        let result = invariants::outliving(&self.server);
        self.env.watch.report(Rule::Outliving, result);
    }

    /// The store forgets what it knew, or some of it.
    pub(crate) fn data_lost(&mut self) {
        let mut excused = claims_under_way(&self.env, &self.service);
        excused.extend(self.server.data.owners());
        self.env.watch.data_lost(excused.into_iter());
    }
}

/// The owners of claims that may still arrive.
fn claims_under_way(env: &Env, service: &Service) -> BTreeSet<Owner> {
    let waiting = match service {
        Service::Frozen(backlog) => Some(backlog.iter().map(|(.., ask)| ask)),
        Service::Up | Service::Down(..) => None,
    };
    let claims = env.network.asks().chain(waiting.into_iter().flatten()).filter_map(|ask| match ask {
        Ask::Acquire(claim, _) => Some(claim.owner),
        Ask::Hello(_) | Ask::Renew(_) | Ask::Release(_) | Ask::Fence(_) | Ask::Revoke(..) => None,
    });
    claims.collect()
}
