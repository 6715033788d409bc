//! What goes wrong in the world.

use super::deed::Deed;
use super::servers::{Promise, Replicated};
use crate::env::Plan;
use crate::fault::Fault;
use crate::network::Weather;
use crate::wish::{Act, Wish};
use crate::world::World;

/// How long a replica gets nothing, and how long one has no data after a restart, in milliseconds.
const LAGS: (u64, u64) = (50, 5000);
const EMPTY_FOR: (u64, u64) = (1, 5000);
/// When the primary fails first, in milliseconds.
const FAILS_AFTER: (u64, u64) = (500, 4000);
/// How many users of each process want the lock that is handed over.
const CROWD: usize = 4;
/// How long somebody holds who holds for a long time, in milliseconds.
const HOLDS: (u64, u64) = (2000, 15_000);

impl World<Replicated> {
    /// One thing goes wrong.
    pub(super) fn go_wrong(&mut self) {
        match self.env.dice.from(0, 15) {
            0 | 1 => self.cut_something(),
            2 => self.stop_somebody(Fault::Paused),
            3 => self.stop_somebody(Fault::Suspended),
            4 => self.kill_somebody(),
            5 | 6 => self.change_weather(),
            7..=9 => self.lag(),
            10 => self.forget(),
            11 | 12 => self.hold_long(),
            _ if self.is_held() || self.env.dice.chance(100) => self.fail_over(),
            _ => {}
        }
    }

    fn is_held(&self) -> bool {
        self.processes.values().any(|process| process.holdings(self.env.now).next().is_some())
    }

    /// The primary is replaced, or ends.
    pub(super) fn fail_over(&mut self) {
        if self.stores.promise == Promise::Acknowledged && self.env.dice.chance(500) {
            self.replace();
        } else {
            self.crash();
        }
    }

    /// In the beginning everybody wants one lock, for short or long ttls, and the primary is replaced while they hold and wait.
    pub(super) fn compete(&mut self) {
        let ttls: Vec<_> = self.env.dice.pick(self.ttls).into_iter().collect();
        for process in self.processes.keys().copied().collect::<Vec<_>>() {
            for _ in 0..self.env.dice.from(1, 2) {
                let hold_for = self.env.dice.millis(100, 6000);
                let wish = Wish { hold_for, ..Wish::patient(&mut self.env.dice, 0, &ttls) };
                let at = self.env.dice.millis(50, 500);
                self.env.plan(at, Plan::Act(process, Act::Join(wish)));
            }
        }
        self.plan(FAILS_AFTER, Deed::FailOver);
    }

    /// Many wait for one lock, which is handed over and over for short ttls, and the primary is replaced meanwhile.
    pub(super) fn crowd(&mut self) {
        let ttls: Vec<_> = self.env.dice.pick(&self.ttls[..2]).into_iter().collect();
        for process in self.processes.keys().copied().collect::<Vec<_>>() {
            for _ in 0..CROWD {
                let hold_for = self.env.dice.millis(100, 1500);
                let wish = Wish { hold_for, ..Wish::patient(&mut self.env.dice, 0, &ttls) };
                let at = self.env.dice.millis(50, 3000);
                self.env.plan(at, Plan::Act(process, Act::Join(wish)));
            }
        }
        let deed = if self.stores.promise == Promise::Acknowledged { Deed::Replace } else { Deed::FailOver };
        self.plan(FAILS_AFTER, deed);
    }

    /// Somebody wants to hold for a long time.
    fn hold_long(&mut self) {
        let Some(process) = self.somebody() else { return };
        let site = self.env.dice.from(0, self.names.len() - 1);
        let hold_for = self.env.dice.millis(HOLDS.0, HOLDS.1);
        let wish = Wish { hold_for, ..Wish::patient(&mut self.env.dice, site, self.ttls) };
        self.act(process, Act::Join(wish));
    }

    fn change_weather(&mut self) {
        let dice = &mut self.env.dice;
        let (lose, double, slow) = (dice.pick(&[0, 0, 20, 100]), dice.pick(&[0, 50]), dice.pick(&[0, 20, 200]));
        let or_none = Option::unwrap_or_default;
        self.env.network.weather =
            Weather { lose: or_none(lose), double: or_none(double), repeat: 0, slow: or_none(slow) };
    }

    /// A replica gets nothing for some time.
    fn lag(&mut self) {
        let replicas = self.stores.replicas_of(self.stores.chosen.primary);
        let Some(replica) = self.env.dice.pick(&replicas) else { return };
        self.env.fired(Fault::Lagged);
        let time = self.env.dice.millis(LAGS.0, LAGS.1);
        self.stores.nodes[replica.0].lags_until = self.env.now + time;
    }

    /// A replica restarts without its data, and loads them again.
    fn forget(&mut self) {
        let replicas = self.stores.replicas_of(self.stores.chosen.primary);
        let Some(replica) = self.env.dice.pick(&replicas) else { return };
        self.env.fired(Fault::ReplicaForgot);
        self.stores.nodes[replica.0].forget(self.env.now);
        self.load(replica, EMPTY_FOR);
    }
}
