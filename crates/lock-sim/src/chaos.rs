//! What goes wrong in the world, and how it goes on afterwards.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use crate::client::{Motion, Process};
use crate::env::Plan;
use crate::fault::Fault;
use crate::invariants::Outsider;
use crate::network::{ConnId, Farewell, ProcessId, Weather};
use crate::server::{Ask, Database};
use crate::world::{Return, Service, World};

/// An operator's connection, which nobody cuts.
const OPERATOR: ConnId = ConnId(0);
/// What remains to a holder of the plain layout of each second, so that it allows for clocks like everybody else.
const OUTSIDERS_PART: u32 = 98;

impl World {
    /// One thing goes wrong, and the next one later.
    pub(crate) fn do_mischief(&mut self) {
        match self.env.dice.from(0, 14) {
            0..=2 => self.cut_something(),
            3 => self.stop_somebody(Fault::Paused),
            4 => self.stop_somebody(Fault::Suspended),
            5 => self.kill_somebody(),
            6 => self.freeze(),
            7 => self.stop_server(),
            8 => self.flush(),
            9 | 10 => self.revoke(),
            11 => self.begin_outsider(),
            12 => self.copy = Some(self.server.data.clone()),
            _ => self.change_weather(),
        }
        let next = self.env.dice.millis(50, 2500);
        self.env.plan(next, Plan::Mischief);
    }

    fn change_weather(&mut self) {
        let dice = &mut self.env.dice;
        let (lose, double, slow) = (dice.pick(&[0, 0, 20, 100]), dice.pick(&[0, 50]), dice.pick(&[0, 20, 200]));
        let or_none = Option::unwrap_or_default;
        self.env.network.weather = Weather { lose: or_none(lose), double: or_none(double), slow: or_none(slow) };
    }

    fn somebody(&mut self) -> Option<ProcessId> {
        let running = self.processes.values().filter(|process| process.motion == Motion::Running);
        let running: Vec<_> = running.map(|process| process.id).collect();
        self.env.dice.pick(&running)
    }

    fn cut_something(&mut self) {
        let conns: Vec<_> = self.processes.values().flat_map(Process::conns).collect();
        if let Some(conn) = self.env.dice.pick(&conns) {
            self.env.fired(Fault::Cut);
            self.env.cut(conn);
        }
    }

    fn stop_somebody(&mut self, how: Fault) {
        let Some(id) = self.somebody() else { return };
        self.env.fired(how);
        if let Some(process) = self.processes.get_mut(&id) {
            process.stop(if how == Fault::Suspended { SUSPENDED_LATE } else { Duration::ZERO });
        }
        let most = self.env.dice.pick(&[50, 3000, 15_000, 40_000]).unwrap_or_default();
        let time = self.env.dice.millis(1, most);
        self.env.plan(time, Plan::Resume(id));
    }

    pub(crate) fn resume(&mut self, id: ProcessId) {
        if let Some(process) = self.processes.get_mut(&id).filter(|process| process.motion == Motion::Stopped) {
            process.resume(&mut self.env);
        }
    }

    fn kill_somebody(&mut self) {
        let Some(process) = self.somebody().and_then(|id| self.processes.remove(&id)) else { return };
        self.env.fired(Fault::Killed);
        let farewell = if self.env.dice.chance(500) { Farewell::Said } else { Farewell::HalfOpen };
        process.end(&mut self.env, farewell);
        let later = self.env.dice.millis(0, 5000);
        self.env.plan(later, Plan::Rebirth);
    }

    fn freeze(&mut self) {
        if matches!(self.service, Service::Up) {
            self.env.fired(Fault::Frozen);
            self.service = Service::Frozen(VecDeque::new());
            let time = self.env.dice.millis(1, 3000);
            self.env.plan(time, Plan::Thaw);
        }
    }

    pub(crate) fn thaw(&mut self) {
        if let Service::Frozen(backlog) = &mut self.service {
            let backlog = mem::take(backlog);
            self.service = Service::Up;
            for (conn, tag, ask) in backlog {
                self.serve(conn, tag, &ask);
            }
        }
    }

    fn stop_server(&mut self) {
        if !matches!(self.service, Service::Up) {
            return;
        }
        let how = match (self.env.dice.from(0, 3), &self.copy) {
            (0, _) => Return::Empty,
            (1 | 2, Some(copy)) => Return::FromCopy(copy.clone()),
            _ => Return::WithItsData,
        };
        self.env.network.server_ended(self.env.now, &mut self.env.dice);
        self.service = Service::Down(self.env.now, how);
        let time = self.env.dice.millis(50, 5000);
        self.env.plan(time, Plan::Start);
    }

    pub(crate) fn start_server(&mut self) {
        let Service::Down(since, how) = mem::replace(&mut self.service, Service::Up) else { return };
        let away = self.env.now.since(since);
        if self.env.dice.chance(300) {
            self.env.fired(Fault::SetBack);
            let by = self.env.dice.between(Duration::ZERO, away / 2);
            self.clock.set_back(by);
        }
        let (fault, data) = match how {
            Return::WithItsData => (Fault::RestartedWithData, mem::take(&mut self.server.data)),
            Return::Empty => (Fault::RestartedEmpty, Database::default()),
            Return::FromCopy(copy) => (Fault::RestartedFromCopy, copy),
        };
        self.env.fired(fault);
        self.env.note(format_args!("{fault:?}"));
        self.server.start_again(data);
        if fault != Fault::RestartedWithData {
            self.data_lost();
        }
    }

    fn flush(&mut self) {
        if matches!(self.service, Service::Up) && self.env.dice.chance(500) {
            self.env.fired(Fault::Flushed);
            self.server.data = Database::default();
            self.data_lost();
        }
    }

    fn revoke(&mut self) {
        let Some(name) = self.env.dice.pick(&self.names) else { return };
        let lock = self.server.data.locks.get(&name).and_then(|keys| keys.lock.as_ref());
        let Some(tokens) = lock.and_then(|lock| lock.value.tokens()) else { return };
        if matches!(self.service, Service::Up) {
            self.env.fired(Fault::Revoked);
            self.env.watch.revoked(&name, tokens);
            self.run_script(OPERATOR, &Ask::Revoke(name, tokens.high()));
        }
    }

    fn begin_outsider(&mut self) {
        let Some(name) = self.env.dice.pick(&self.names) else { return };
        let (value, life) = (self.env.number(), self.env.dice.millis(100, 5000));
        let millis = u64::try_from(life.as_millis()).unwrap_or_default();
        let up = matches!(self.service, Service::Up) && self.outsider.is_none();
        if up && self.server.foreign_set(self.clock.read(self.env.now), &name, value, millis) {
            self.env.fired(Fault::ForeignHeld);
            let (until, epoch) = (self.env.now + life * OUTSIDERS_PART / 100, self.env.watch.epoch());
            self.outsider = Some(Outsider { name, value, until, epoch });
            let done = self.env.dice.between(Duration::ZERO, life * 2);
            self.env.plan(done, Plan::ForeignDone);
        }
    }

    pub(crate) fn end_outsider(&mut self) {
        let Some(outsider) = self.outsider.take() else { return };
        if matches!(self.service, Service::Up) {
            self.server.foreign_delete(&outsider.name, outsider.value);
        }
    }
}

/// How late timers may be that stand still in suspend: whoever watches deadlines sleeps for a second at most.
const SUSPENDED_LATE: Duration = Duration::from_secs(1);
