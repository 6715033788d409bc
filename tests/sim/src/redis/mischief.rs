//! What goes wrong in the world, and how it ends.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use super::TTLS;
use super::invariants::Outsider;
use super::server::{Ask, Database};
use super::stores::{OneRedis, Return, Service};
use super::words::REDIS;
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

impl World<OneRedis> {
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
            11 => self.begin_outsider(),
            12 => self.stores.copy = Some(self.stores.server.data.clone()),
            _ => self.change_weather(),
        }
    }

    fn change_weather(&mut self) {
        let dice = &mut self.env.dice;
        let (lose, double, slow) = (dice.pick(&[0, 0, 20, 100]), dice.pick(&[0, 50]), dice.pick(&[0, 20, 200]));
        let or_none = Option::unwrap_or_default;
        self.env.network.weather =
            Weather { lose: or_none(lose), double: or_none(double), repeat: 0, slow: or_none(slow) };
    }

    fn freeze(&mut self) {
        if matches!(self.stores.service, Service::Up) {
            self.env.fired(Fault::Frozen);
            let time = self.env.dice.millis(1, 3000);
            self.stand_still(time);
        }
    }

    /// Meanwhile waiters give up, and a client keeps trying.
    fn hang(&mut self) {
        if !matches!(self.stores.service, Service::Up) {
            return;
        }
        self.env.fired(Fault::Hung);
        let time = self.env.dice.between(HANGS_MIN, HANGS_MAX);
        self.stand_still(time);
        let Some(process) = self.somebody() else { return };
        let site = self.env.dice.from(0, self.names.len() - 1);
        for try_at in (1..).map(|number| TRIES_EVERY * number).take_while(|at| *at < time) {
            let wish = Wish { wait: Wait::Not, cancel: None, ..Wish::patient(&mut self.env.dice, site, &TTLS[3..]) };
            self.env.plan(try_at, Plan::Act(process, Act::GiveUp { site }));
            self.env.plan(try_at, Plan::Act(process, Act::Join(wish)));
        }
    }

    fn stand_still(&mut self, time: Duration) {
        self.stores.service = Service::Frozen(VecDeque::new());
        self.env.plan(time, Plan::Thaw(REDIS));
    }

    pub(super) fn thaw(&mut self) {
        if let Service::Frozen(backlog) = &mut self.stores.service {
            let backlog = mem::take(backlog);
            self.stores.service = Service::Up;
            for (conn, tag, ask) in backlog {
                self.serve(conn, tag, &ask);
            }
        }
    }

    fn stop_server(&mut self) {
        if !matches!(self.stores.service, Service::Up) {
            return;
        }
        let how = match (self.env.dice.from(0, 3), &self.stores.copy) {
            (0, _) => Return::Empty,
            (1 | 2, Some(copy)) => Return::FromCopy(copy.clone()),
            _ => Return::WithItsData,
        };
        self.env.network.store_ended(self.env.now, &mut self.env.dice, REDIS);
        self.stores.service = Service::Down(self.env.now, how);
        let time = self.env.dice.millis(50, 5000);
        self.env.plan(time, Plan::Start(REDIS));
    }

    pub(super) fn start_server(&mut self) {
        let Service::Down(since, how) = mem::replace(&mut self.stores.service, Service::Up) else { return };
        let away = self.env.now.since(since);
        if self.env.dice.chance(300) {
            self.env.fired(Fault::SetBack);
            let by = self.env.dice.between(Duration::ZERO, away / 2);
            self.stores.clock.set_back(by);
        }
        let (fault, data) = match how {
            Return::WithItsData => (Fault::RestartedWithData, mem::take(&mut self.stores.server.data)),
            Return::Empty => (Fault::RestartedEmpty, Database::default()),
            Return::FromCopy(copy) => (Fault::RestartedFromCopy, copy),
        };
        self.env.fired(fault);
        self.env.note(format_args!("{fault:?}"));
        self.stores.server.start_again(data);
        if fault != Fault::RestartedWithData {
            self.data_lost();
        }
    }

    fn flush(&mut self) {
        if matches!(self.stores.service, Service::Up) && self.env.dice.chance(500) {
            self.env.fired(Fault::Flushed);
            self.stores.server.data = Database::default();
            self.data_lost();
        }
    }

    fn revoke(&mut self) {
        let Some(name) = self.env.dice.pick(&self.names) else { return };
        let lock = self.stores.server.data.locks.get(&name).and_then(|keys| keys.lock.as_ref());
        let Some(tokens) = lock.and_then(|lock| lock.value.tokens()) else { return };
        if matches!(self.stores.service, Service::Up) {
            self.env.fired(Fault::Revoked);
            self.env.watch.revoked(&name, tokens);
            self.run_script(OPERATOR, &Ask::Revoke(name, tokens.high()));
        }
    }

    fn begin_outsider(&mut self) {
        let Some(name) = self.env.dice.pick(&self.names) else { return };
        let (value, life) = (self.env.number(), self.env.dice.millis(100, 5000));
        let millis = u64::try_from(life.as_millis()).unwrap_or_default();
        let up = matches!(self.stores.service, Service::Up) && self.stores.outsider.is_none();
        if up && self.stores.server.foreign_set(self.stores.clock.read(self.env.now), &name, value, millis) {
            self.env.fired(Fault::ForeignHeld);
            let (until, epoch) = (self.env.now + life * OUTSIDERS_PART / 100, self.env.watch.epoch());
            self.stores.outsider = Some(Outsider { name, value, until, epoch });
            let done = self.env.dice.between(Duration::ZERO, life * 2);
            self.env.plan(done, Plan::ForeignDone);
        }
    }

    pub(super) fn end_outsider(&mut self) {
        let Some(outsider) = self.stores.outsider.take() else { return };
        if matches!(self.stores.service, Service::Up) {
            self.stores.server.foreign_delete(&outsider.name, outsider.value);
        }
    }
}
