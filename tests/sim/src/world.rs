//! The world: processes, the stores that they ask, the network between them, and time, which advances from one event to
//! the next.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use lock_core::LockName;

use crate::client::{Backend, Motion, News, Process};
use crate::clock::Time;
use crate::env::{Env, Plan};
use crate::fault::Fault;
use crate::invariants::{self, Rule};
use crate::network::{ConnId, ConnectionEnd, Packet, ProcessId, StoreId, Tag, Talk};
use crate::wish::{Act, Wish};

type TalkOf<S> = <<S as Stores>::Backend as Backend>::Talk;
type AskOf<S> = <TalkOf<S> as Talk>::Ask;

/// One kind of store, and what goes wrong there.
pub(crate) trait Stores: fmt::Debug + Sized {
    /// The backend that processes use.
    type Backend: Backend;

    /// Another process, of any kind.
    fn begin_process(world: &mut World<Self>);

    /// A request arrives.
    fn asked(world: &mut World<Self>, conn: ConnId, tag: Tag, ask: AskOf<Self>);

    /// The store sees that a connection is gone.
    fn closed(&mut self, conn: ConnId);

    /// One thing goes wrong there.
    fn go_wrong(world: &mut World<Self>);

    /// What was planned for it is due.
    fn carry_out(world: &mut World<Self>, plan: Plan);

    /// From now on nothing goes wrong there.
    fn heal(world: &mut World<Self>);

    /// What must hold at every step.
    fn check(world: &mut World<Self>);
}

#[derive(Debug)]
pub(crate) struct World<S: Stores> {
    pub(crate) env: Env<TalkOf<S>>,
    pub(crate) stores: S,
    pub(crate) processes: BTreeMap<ProcessId, Process<S::Backend>>,
    pub(crate) names: Vec<LockName>,
    /// The pairs of locks that are acquired as one, in the order in which they are.
    pub(crate) sets: Vec<[usize; 2]>,
    /// The latches.
    pub(crate) latches: Vec<LockName>,
    /// The longest ttls that anybody asks for.
    pub(crate) ttls: &'static [Duration],
    /// The longest time between two users' arrivals at a process.
    pub(crate) pace: Duration,
    /// The longest time between two faults.
    pub(crate) lull: Duration,
    pub(crate) steps: u64,
}

impl<S: Stores> World<S> {
    pub(crate) fn new(env: Env<TalkOf<S>>, stores: S, names: Vec<LockName>, ttls: &'static [Duration]) -> Self {
        let (latches, sets) = (Vec::new(), Vec::new());
        Self { env, stores, processes: BTreeMap::new(), names, sets, latches, ttls, pace: PACE, lull: LULL, steps: 0 }
    }

    /// A process begins, and soon a user arrives.
    pub(crate) fn add_process(&mut self, process: Process<S::Backend>) {
        let soon = self.env.dice.between(Duration::ZERO, self.pace.saturating_sub(PACE));
        self.env.plan(soon, Plan::Arrival(process.id));
        self.processes.insert(process.id, process);
    }

    /// Everything goes wrong for some time. From then on all is well.
    pub(crate) fn go_through_chaos(&mut self) {
        let chaos = self.env.dice.millis(5000, 40_000);
        self.env.plan(Duration::from_millis(100), Plan::Mischief);
        self.heal_after(chaos);
    }

    /// Continues until there is nothing to do before `end`, or a rule is broken.
    pub(crate) fn run_until(&mut self, end: Time) {
        while self.env.watch.broken().is_none() {
            let Some(next) = self.next_due().filter(|next| *next <= end) else {
                self.env.now = end.max(self.env.now);
                return;
            };
            self.env.now = self.env.now.max(next);
            self.step();
            S::check(self);
            self.steps += 1;
        }
    }

    fn next_due(&self) -> Option<Time> {
        let wakes = self.processes.values().filter_map(Process::next_wake);
        wakes.chain(self.env.network.next_due()).chain(self.env.next_planned()).min()
    }

    fn step(&mut self) {
        if let Some((conn, packet)) = self.env.network.take_due(self.env.now) {
            self.deliver(conn, packet);
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

    fn deliver(&mut self, conn: ConnId, packet: Packet<AskOf<S>, <TalkOf<S> as Talk>::Say>) {
        self.env.note(format_args!("{conn:?} {packet:?}"));
        match packet {
            Packet::Ask(tag, ask) => S::asked(self, conn, tag, ask),
            Packet::CutAtServer => self.stores.closed(conn),
            Packet::Say(..) | Packet::Push(_) | Packet::CutAtClient => {
                let process = self.env.network.process(conn);
                if let Some(process) = process.and_then(|process| self.processes.get_mut(&process)) {
                    process.hear(&mut self.env, News::Packet(conn, packet));
                }
            }
        }
    }

    fn carry_out(&mut self, plan: Plan) {
        self.env.note(format_args!("{plan:?}"));
        match plan {
            Plan::Act(process, act) => self.act(process, act),
            Plan::Arrival(process) => self.arrive(process),
            Plan::Resume(process) => self.resume(process),
            Plan::Death(process) => self.end_process(process),
            Plan::Rebirth => S::begin_process(self),
            Plan::Mischief => {
                S::go_wrong(self);
                let next = self.env.dice.between(Duration::from_millis(50), self.lull);
                self.env.plan(next, Plan::Mischief);
            }
            plan @ (Plan::Thaw(_) | Plan::Start(_) | Plan::ForeignDone | Plan::ClockRight(_) | Plan::Cue(_)) => {
                S::carry_out(self, plan);
            }
        }
    }

    pub(crate) fn act(&mut self, process: ProcessId, act: Act) {
        // A ticket goes to anybody.
        let process = if let Act::Adopt(..) = act { self.somebody() } else { Some(process) };
        if let Some(process) = process.and_then(|process| self.processes.get_mut(&process)) {
            process.hear(&mut self.env, News::Act(act));
        }
    }

    /// A user arrives, and the next one a little later.
    fn arrive(&mut self, id: ProcessId) {
        if !self.processes.contains_key(&id) {
            return;
        }
        let act = self.any_act();
        self.act(id, act);
        let next = if self.env.dice.chance(300) {
            self.env.dice.millis(0, 5)
        } else {
            self.env.dice.between(Duration::from_millis(50), self.pace)
        };
        self.env.plan(next, Plan::Arrival(id));
    }

    /// Everything goes wrong for this long. From then on all is well.
    pub(crate) fn heal_after(&mut self, chaos: Duration) {
        self.run_until(Time::START + chaos);
        self.heal();
    }

    /// From now on nothing goes wrong any more. A user arrives at each process and lock.
    fn heal(&mut self) {
        self.env.note(format_args!("all is well from now on"));
        self.env.network.calm_down();
        self.env.cancel(|plan| matches!(plan, Plan::Arrival(_) | Plan::Mischief | Plan::Rebirth | Plan::Death(_)));
        S::heal(self);
        let stopped = self.processes.values().filter(|process| process.motion == Motion::Stopped);
        for id in stopped.map(|process| process.id).collect::<Vec<_>>() {
            self.resume(id);
        }
        for id in self.processes.keys().copied().collect::<Vec<_>>() {
            for site in 0..self.names.len() {
                let wish = Wish::patient(&mut self.env.dice, site, self.ttls);
                self.act(id, Act::Join(wish));
            }
        }
    }

    /// Continues for this long, in which every user must get what it wants.
    pub(crate) fn rest_within(&mut self, time: Duration) {
        self.run_until(self.env.now + time);
        let result = invariants::everybody(self.processes.values().filter_map(Process::restless));
        self.env.watch.report(Rule::Everybody, result);
    }

    pub(crate) fn somebody(&mut self) -> Option<ProcessId> {
        let running = self.processes.values().filter(|process| process.motion == Motion::Running);
        let running: Vec<_> = running.map(|process| process.id).collect();
        self.env.dice.pick(&running)
    }

    pub(crate) fn cut_something(&mut self) {
        let conns: Vec<_> = self.processes.values().flat_map(Process::conns).collect();
        if let Some(conn) = self.env.dice.pick(&conns) {
            self.env.fired(Fault::Cut);
            self.env.cut(conn);
        }
    }

    pub(crate) fn stop_somebody(&mut self, how: Fault) {
        let Some(id) = self.somebody() else { return };
        let most = self.env.dice.pick(&[50, 3000, 15_000, 40_000]).unwrap_or_default();
        let time = self.env.dice.millis(1, most);
        self.stop(id, how, time);
    }

    pub(crate) fn stop(&mut self, id: ProcessId, how: Fault, time: Duration) {
        let Some(process) = self.processes.get_mut(&id).filter(|process| process.motion == Motion::Running) else {
            return;
        };
        process.stop(if how == Fault::Suspended { SUSPENDED_LATE } else { Duration::ZERO });
        self.env.fired(how);
        self.env.plan(time, Plan::Resume(id));
    }

    fn resume(&mut self, id: ProcessId) {
        if let Some(process) = self.processes.get_mut(&id).filter(|process| process.motion == Motion::Stopped) {
            process.resume(&mut self.env);
        }
    }

    pub(crate) fn kill_somebody(&mut self) {
        if let Some(id) = self.somebody() {
            self.end_process(id);
        }
    }

    fn end_process(&mut self, id: ProcessId) {
        let Some(process) = self.processes.remove(&id) else { return };
        self.env.fired(Fault::Killed);
        let farewell = if self.env.dice.chance(500) { ConnectionEnd::Said } else { ConnectionEnd::HalfOpen };
        process.end(&mut self.env, farewell);
        let later = self.env.dice.millis(0, 5000);
        self.env.plan(later, Plan::Rebirth);
    }

    /// Which store a connection leads to.
    pub(crate) fn store_of(&self, conn: ConnId) -> Option<StoreId> {
        self.env.network.store(conn)
    }
}

/// The usual lull.
const LULL: Duration = Duration::from_millis(2500);
/// The usual pace.
const PACE: Duration = Duration::from_secs(3);
/// How late timers that stop in suspend may be: the thread that watches deadlines sleeps for at most a second.
const SUSPENDED_LATE: Duration = Duration::from_secs(1);
