//! A process: real stations and a real keeper, users who want locks, and a backend. It can be suspended, and can end.

mod acting;
mod backend;
mod latching;
mod outputs;
mod usage;
mod user;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub(crate) use backend::{Backend, Calling, Heard};
use latching::Call;
use lock_core::station::{Floor, Input, Output, Owners, Reply, Station, TurnId};
use lock_core::{Capabilities, Keeper, LockName, Moment, NameKind, Policy, StoreEvent};
pub(crate) use usage::Usage;
use user::User;

use crate::clock::{Clock, Time};
use crate::env::Env;
use crate::fault::Fault;
use crate::ledger::Ledger;
use crate::network::{ConnId, ConnectionEnd, Packet, ProcessId, Talk};
use crate::wish::Act;

/// How many outputs may follow from one input.
const OUTPUTS_MAX: usize = 200;

/// Something that reaches a process.
#[derive(Debug)]
pub(crate) enum News<B: Backend> {
    Packet(ConnId, Packet<<B::Talk as Talk>::Ask, <B::Talk as Talk>::Say>),
    Act(Act),
}

/// Whether a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    Running,
    /// Nothing reaches it. What arrives waits.
    Stopped,
}

/// This process at one name that is used as one kind.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) name: LockName,
    kind: NameKind,
    /// What users want from it.
    usage: Usage,
    pub(crate) station: Station,
    users: BTreeMap<TurnId, User>,
    pub(crate) ledger: Ledger,
}

#[derive(Debug)]
pub(crate) struct Process<B: Backend> {
    pub(crate) id: ProcessId,
    pub(crate) clock: Clock,
    pub(crate) sites: Vec<Site>,
    pub(crate) motion: Motion,
    /// What the store can do; with its abilities, users ask for more than the four verbs.
    store: Capabilities,
    policy: Policy,
    keeper: Keeper,
    pub(crate) backend: B,
    backlog: VecDeque<News<B>>,
    /// Its timers do not fire before.
    timers_from: Time,
    /// How late they may be when it continues.
    timers_late: Duration,
    soon: VecDeque<(usize, Input)>,
    /// What users do with latches, by their numbers.
    calls: BTreeMap<u64, Call>,
}

/// What a process is made of.
#[derive(Debug)]
pub(crate) struct Make<'a, B> {
    pub(crate) id: ProcessId,
    pub(crate) clock: Clock,
    pub(crate) policy: Policy,
    pub(crate) names: &'a [LockName],
    pub(crate) backend: B,
}

impl<B: Backend> Process<B> {
    pub(crate) fn new(env: &mut Env<B::Talk>, make: Make<'_, B>) -> Self {
        let Make { id, clock, policy, names, backend } = make;
        let floor = Floor::default();
        let mut site = |name: &LockName, kind: NameKind| {
            let owners = Owners::new(env.dice.secret());
            let station = Station::new(name.clone(), kind, policy, owners).sharing(&floor);
            let ledger = Ledger::new(policy.store.waiting, backend.has_session());
            Site { name: name.clone(), kind, usage: Usage::Mutex, station, users: BTreeMap::new(), ledger }
        };
        let locks: Vec<_> = names.iter().map(|name| site(name, NameKind::Lock)).collect();
        let semaphores = names.iter().map(|name| site(name, NameKind::Semaphore));
        let sites = locks.into_iter().chain(semaphores).collect();
        Self {
            id,
            clock,
            sites,
            motion: Motion::Running,
            store: policy.store,
            policy,
            keeper: Keeper::new(policy, env.dice.number()),
            backend,
            backlog: VecDeque::new(),
            timers_from: Time::START,
            timers_late: Duration::ZERO,
            soon: VecDeque::new(),
            calls: BTreeMap::new(),
        }
    }

    /// What users want from each of its locks.
    pub(crate) fn with_usages(mut self, usages: &[Usage]) -> Self {
        self.sites.iter_mut().zip(usages.iter().cycle()).for_each(|(site, usage)| site.usage = *usage);
        self
    }

    /// When its timers fire next.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        if self.motion == Motion::Stopped {
            return None;
        }
        let stations = self.sites.iter().filter_map(|site| site.station.next_wake());
        let calls = self.calls.values().filter_map(Call::due);
        let wake = stations.chain(calls).chain(self.keeper.next_due()).chain(self.backend.next_wake()).min()?;
        Some(self.clock.when(wake).max(self.timers_from))
    }

    pub(crate) fn wake(&mut self, env: &mut Env<B::Talk>) {
        let now = self.clock.read(env.now);
        for site in 0..self.sites.len() {
            if self.sites[site].station.next_wake().is_some_and(|wake| wake <= now) {
                self.soon.push_back((site, Input::Tick));
            }
        }
        let heard = self.backend.wake(env, now);
        self.all_heard(now, heard);
        while let Some(batch) = self.keeper.take_due(now) {
            let heard = self.backend.renew(env, now, batch);
            self.all_heard(now, heard);
        }
        self.go_on_with_calls(env, now);
        self.drain(env);
    }

    /// Processes an event, or keeps it until the process runs again.
    pub(crate) fn hear(&mut self, env: &mut Env<B::Talk>, news: News<B>) {
        if self.motion == Motion::Stopped {
            self.backlog.push_back(news);
            return;
        }
        let now = self.clock.read(env.now);
        match news {
            News::Packet(conn, Packet::Say(tag, say)) => {
                let heard = self.backend.said(env, now, conn, tag, say);
                self.all_heard(now, heard);
            }
            News::Packet(conn, Packet::Push(event)) if self.backend.hears(conn) => self.told(now, &event),
            News::Packet(conn, Packet::CutAtClient) => {
                let heard = self.backend.cut(env, now, conn);
                self.all_heard(now, heard);
            }
            News::Packet(_, Packet::Push(_) | Packet::Ask(..) | Packet::CutAtServer) => {}
            News::Act(act) => self.act(env, now, act),
        }
        self.go_on_with_calls(env, now);
        self.drain(env);
    }

    fn all_heard(&mut self, now: Moment, heard: Vec<Heard>) {
        for heard in heard {
            self.heard(now, heard);
        }
    }

    fn heard(&mut self, now: Moment, heard: Heard) {
        match heard {
            Heard::Reply(site, id, reply) => self.soon.push_back((site, Input::Reply(id, reply))),
            Heard::Reconnected => self.told(now, &StoreEvent::RecheckAll),
            Heard::SessionEnded => self.told(now, &StoreEvent::SessionEnded),
            Heard::Latch(call, answer) => {
                self.calls.get_mut(&call).into_iter().for_each(|call| call.answered(now, answer.clone()));
            }
            Heard::Renewal(batch, result) => {
                for renewal in self.keeper.answered(now, batch, result) {
                    let is_it = |site: &Site| site.name == renewal.name && site.station.knows(renewal.owner);
                    let site = self.sites.iter().position(is_it);
                    let (owner, asked_at, answer) = (renewal.owner, renewal.asked_at, renewal.answer);
                    let input = Input::Renewal { owner, asked_at, answer };
                    self.soon.extend(site.map(|site| (site, input)));
                }
            }
        }
    }

    fn told(&mut self, now: Moment, event: &StoreEvent) {
        for call in self.calls.values_mut() {
            let changed = matches!(event, StoreEvent::LatchChanged { name } if name == call.name());
            if changed || *event == StoreEvent::RecheckAll {
                call.hear(now);
            }
        }
        for (index, site) in self.sites.iter().enumerate() {
            let concerned = match event {
                StoreEvent::Granted { lease, .. } => lease.name == site.name,
                StoreEvent::Freed { name } | StoreEvent::Wanted { name } | StoreEvent::Revoked { name } => {
                    *name == site.name
                }
                StoreEvent::LatchChanged { .. } => false,
                StoreEvent::RecheckAll | _ => true,
            };
            if concerned {
                self.soon.push_back((index, Input::Event(event.clone())));
            }
        }
    }

    /// Is suspended from now on, until it is resumed. Its timers may then be this late.
    pub(crate) fn stop(&mut self, timers_late: Duration) {
        self.motion = Motion::Stopped;
        self.timers_late = timers_late;
    }

    /// Continues. What arrived meanwhile is processed before the timers fire, or after.
    pub(crate) fn resume(&mut self, env: &mut Env<B::Talk>) {
        self.motion = Motion::Running;
        self.timers_from = env.now + env.dice.between(Duration::ZERO, self.timers_late);
        if self.timers_late.is_zero() && env.dice.chance(500) {
            self.wake(env);
        }
        for news in std::mem::take(&mut self.backlog) {
            match news {
                // The task that reads messages may be the last to run again.
                News::Packet(conn, push @ Packet::Push(_)) if env.dice.chance(400) => {
                    let later = env.now + env.dice.millis(0, 50);
                    env.network.post(later, conn, push);
                }
                news @ (News::Packet(..) | News::Act(_)) => self.hear(env, news),
            }
        }
    }

    /// The process ends, and everything in it.
    pub(crate) fn end(self, env: &mut Env<B::Talk>, farewell: ConnectionEnd) {
        for conn in self.backend.conns() {
            env.leave(conn, farewell);
        }
    }

    pub(crate) fn conns(&self) -> Vec<ConnId> {
        self.backend.conns()
    }

    /// Whether nobody waits or holds here and nothing is in flight.
    pub(crate) fn is_at_rest(&self) -> bool {
        let at_rest = |site: &Site| site.users.is_empty() && site.station.is_idle();
        self.sites.iter().all(at_rest) && self.keeper.is_empty() && self.calls.is_empty()
    }

    /// What is in flight here, if anything is.
    pub(crate) fn restless(&self) -> Option<String> {
        let stations = || self.sites.iter().map(|site| &site.station).collect::<Vec<_>>();
        (!self.is_at_rest()).then(|| format!("{:?}: {:?}, {:?}", self.id, stations(), self.calls))
    }

    /// Feeds the stations until they have no more outputs.
    fn drain(&mut self, env: &mut Env<B::Talk>) {
        let now = self.clock.read(env.now);
        for _ in 0..OUTPUTS_MAX {
            let Some((index, input)) = self.soon.pop_front() else { return };
            let input = self.backend.inward(now, index, input);
            let site = &mut self.sites[index];
            site.ledger.heard(&input);
            let by_push = matches!(&input, Input::Event(StoreEvent::Granted { .. }));
            let by_grant = by_push || matches!(&input, Input::Reply(_, Reply::Acquire(_)));
            for output in site.station.handle_input(now, input) {
                if by_push && matches!(output, Output::Admit { .. }) {
                    env.fired(Fault::AdmittedByPush);
                }
                if let Output::Admit { turn, hold } = &output
                    && !by_grant
                {
                    self.may_join(env, index, *turn, hold);
                }
                self.carry_out(env, now, index, output);
            }
        }
        env.watch.endless(self.id);
    }
}
