//! What goes wrong in the world, and how it ends.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use lock_core::{LockName, Moment};

use super::invariants::{Arrivals, Outsider};
use super::model::{Model, Stored};
use super::stores::{Copied, One, Return, Service};
use super::units::millis;
use super::words::{Ask, SERVER, Say};
use crate::client::Usage;
use crate::env::Plan;
use crate::fault::Fault;
use crate::network::{ConnId, Weather};
use crate::wish::{Act, Wait, Wish};
use crate::world::World;

/// An operator's connection, which nobody cuts.
const OPERATOR: ConnId = ConnId(0);
/// How much of each second a holder of the plain layout relies on, so that it allows for clock drift like all others.
const OUTSIDERS_PART: u32 = 98;
/// How long a server hangs: for longer than all leases but the longest, and for longer than that.
const HANGS_MIN: Duration = Duration::from_secs(13);
const HANGS_MAX: Duration = Duration::from_secs(45);
/// How often a client that keeps trying tries.
const TRIES_EVERY: Duration = Duration::from_millis(700);

impl<M: Model> World<One<M>> {
    /// One thing goes wrong.
    pub(super) fn go_wrong(&mut self) {
        match self.env.dice.from(0, 14) {
            0..=2 => self.cut_something(),
            3 => self.stop_somebody(Fault::Paused),
            4 => self.stop_somebody(Fault::Suspended),
            5 => self.kill_somebody(),
            6 if self.env.dice.chance(200) => self.hang(),
            6 => self.freeze(),
            7 => self.stop_server(),
            8 => self.flush(),
            9 | 10 => self.revoke(),
            11 => {
                let now = self.stores.clock.read(self.env.now);
                let fault = self.stores.server.go_wrong(now, &mut self.env.dice);
                self.stores.server.take_dropped().into_iter().for_each(|conn| self.env.cut(conn));
                match fault {
                    Some(fault) => self.env.fired(fault),
                    None => self.begin_outsider(),
                }
            }
            12 => self.copy_data(),
            _ => self.change_weather(),
        }
    }

    fn copy_data(&mut self) {
        let (data, arrivals) = (self.stores.server.data().clone(), self.stores.arrivals.clone());
        self.stores.copy = Some(Copied { data, arrivals });
    }

    fn change_weather(&mut self) {
        let dice = &mut self.env.dice;
        let (lose, double, slow) = (dice.pick(&[0, 0, 20, 100]), dice.pick(&[0, 50]), dice.pick(&[0, 20, 200]));
        let or_none = Option::unwrap_or_default;
        let repeat = or_none(dice.pick(M::REPEATS));
        self.env.network.weather =
            Weather { lose: or_none(lose), double: or_none(double), repeat, slow: or_none(slow) };
    }

    fn freeze(&mut self) {
        if self.stores.is_up() {
            self.env.fired(Fault::Frozen);
            let time = self.env.dice.millis(1, 3000);
            self.stand_still(time);
        }
    }

    /// Meanwhile waiters give up, and a client keeps trying.
    fn hang(&mut self) {
        if !self.stores.is_up() {
            return;
        }
        self.env.fired(Fault::Hung);
        let time = self.env.dice.between(HANGS_MIN, HANGS_MAX);
        self.stand_still(time);
        let Some(process) = self.somebody() else { return };
        let site = self.env.dice.from(0, self.names.len() - 1);
        for try_at in (1..).map(|number| TRIES_EVERY * number).take_while(|at| *at < time) {
            let wish = Wish { wait: Wait::Not, cancel: None, ..Wish::patient(&mut self.env.dice, site, &M::TTLS[3..]) };
            self.env.plan(try_at, Plan::Act(process, Act::GiveUp { site }));
            self.env.plan(try_at, Plan::Act(process, Act::Join(wish)));
        }
    }

    fn stand_still(&mut self, time: Duration) {
        self.stores.service = Service::Frozen(VecDeque::new());
        self.env.plan(time, Plan::Thaw(SERVER));
    }

    pub(super) fn thaw(&mut self) {
        if let Service::Frozen(backlog) = &mut self.stores.service {
            let backlog = mem::take(backlog);
            self.stores.service = Service::Up;
            for (conn, tag, ask) in backlog {
                if let Ask::Acquire(claim, _) = ask.request() {
                    self.stores.served_late.insert(claim.owner);
                }
                self.serve(conn, tag, &ask);
            }
        }
    }

    fn stop_server(&mut self) {
        if !self.stores.is_up() {
            return;
        }
        let how = match (self.env.dice.from(0, 3), &self.stores.copy) {
            (0, _) => Return::Empty,
            (1 | 2, Some(copy)) => Return::FromCopy(copy.clone()),
            _ => Return::WithItsData,
        };
        self.env.network.store_ended(self.env.now, &mut self.env.dice, SERVER);
        self.stores.service = Service::Down(self.env.now, how);
        let time = self.env.dice.millis(50, 5000);
        self.env.plan(time, Plan::Start(SERVER));
    }

    pub(super) fn start_server(&mut self) {
        let Service::Down(since, how) = mem::replace(&mut self.stores.service, Service::Up) else { return };
        let away = self.env.now.since(since);
        if self.env.dice.chance(300) {
            self.env.fired(Fault::SetBack);
            let by = self.env.dice.between(Duration::ZERO, away / 2);
            self.stores.clock.set_back(by);
        }
        let (fault, Copied { data, arrivals }) = match how {
            Return::WithItsData => {
                let (data, arrivals) = (self.stores.server.data().clone(), mem::take(&mut self.stores.arrivals));
                (Fault::RestartedWithData, Copied { data, arrivals })
            }
            Return::Empty => (Fault::RestartedEmpty, Copied::default()),
            Return::FromCopy(copy) => (Fault::RestartedFromCopy, copy),
        };
        self.env.fired(fault);
        self.env.note(format_args!("{fault:?}"));
        self.stores.server.start_again(self.stores.clock.read(self.env.now), data);
        if fault == Fault::RestartedWithData {
            self.stores.arrivals = arrivals;
        } else {
            self.data_lost(arrivals);
        }
    }

    fn flush(&mut self) {
        if self.stores.is_up() && self.env.dice.chance(500) {
            self.env.fired(Fault::Flushed);
            self.stores.server.flush(self.stores.clock.read(self.env.now));
            self.data_lost(Arrivals::default());
        }
    }

    fn revoke(&mut self) {
        let Some(name) = self.env.dice.pick(&self.names) else { return };
        let holds = self.stores.server.holds(self.stores.clock.read(self.env.now), &name);
        let Some(Stored { tokens, owner, .. }) = self.env.dice.pick(&holds) else { return };
        if self.stores.is_up() {
            self.env.fired(Fault::Revoked);
            self.env.watch.revoked(self.env.now, &name, tokens);
            let holdings = self.processes.values().flat_map(|process| process.holdings(self.env.now));
            // Who does not know yet that its lease was replaced.
            for holding in holdings.filter(|holding| holding.replacing == Some(owner)) {
                self.env.watch.revoked(self.env.now, &name, holding.hold.lease().tokens);
            }
            self.run(OPERATOR, &Ask::Revoke(name, tokens.high()));
        }
    }

    /// At a name that is used as a lock: a plain client knows nothing else.
    fn begin_outsider(&mut self) {
        let Some(name) = self.env.dice.pick(&self.names) else { return };
        let (value, life) = (self.env.number(), self.env.dice.millis(100, 5000));
        if !self.stores.is_up() || self.stores.outsider.is_some() || self.is_semaphore(&name) {
            return;
        }
        let lasts = millis(Moment::ORIGIN + life);
        if self.run(OPERATOR, &Ask::ForeignSet(name.clone(), value, lasts)) == Say::Foreign(true) {
            self.env.fired(Fault::ForeignHeld);
            let (until, epoch) = (self.env.now + life * OUTSIDERS_PART / 100, self.env.watch.epoch());
            self.stores.outsider = Some(Outsider { name, value, until, epoch });
            let done = self.env.dice.between(Duration::ZERO, life * 2);
            self.env.plan(done, Plan::ForeignDone);
        }
    }

    fn is_semaphore(&self, name: &LockName) -> bool {
        let usages = self.names.iter().zip(&self.stores.usages);
        usages.into_iter().any(|(known, usage)| known == name && matches!(usage, Usage::Semaphore(_)))
    }

    pub(super) fn end_outsider(&mut self) {
        let Some(outsider) = self.stores.outsider.take() else { return };
        if self.stores.is_up() {
            self.run(OPERATOR, &Ask::ForeignDelete(outsider.name, outsider.value));
        }
    }
}
