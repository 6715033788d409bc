//! What goes wrong with nodes and on the way to them, and how it ends.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use super::node::{Return, Service};
use super::nodes::Nodes;
use super::terms::Trouble;
use crate::env::Plan;
use crate::fault::Fault;
use crate::network::{Fate, Gap, ProcessId, StoreId, Way, Weather};
use crate::world::World;

/// How far too fast or too slowly a clock may run, in millionths.
const FAR_OFF: i64 = 500_000;
/// How far clocks are set.
const LEAPS: [u64; 3] = [200, 5000, 40_000];

impl World<Nodes> {
    /// One thing goes wrong.
    pub(super) fn go_wrong(&mut self) {
        let Some(trouble) = self.env.dice.pick(&self.stores.terms.troubles) else { return };
        let node = self.env.dice.from(0, self.stores.nodes.len() - 1);
        match trouble {
            Trouble::Cut => self.cut_something(),
            Trouble::Pause => self.stop_somebody(Fault::Paused),
            Trouble::Suspend => self.stop_somebody(Fault::Suspended),
            Trouble::Kill => self.kill_somebody(),
            Trouble::Freeze => {
                let time = self.env.dice.millis(1, 6000);
                self.freeze(node, time);
            }
            Trouble::Restart => self.end_node(node, Return::WithItsData),
            Trouble::RestartEmpty => self.end_node(node, Return::Empty),
            Trouble::RestartFromCopy => self.end_node(node, Return::FromCopy),
            Trouble::RollBack => self.end_node(node, Return::RolledBack),
            Trouble::Flush => self.flush(node),
            Trouble::FlushMany => self.flush_many(),
            Trouble::Copy => self.copy(node),
            Trouble::Gap => self.open_gaps(),
            Trouble::SetBack => self.set_back(node),
            Trouble::SetForward => self.set_forward(node),
            Trouble::RunFast => self.run_off(node, Fault::RanFast),
            Trouble::RunSlow => self.run_off(node, Fault::RanSlow),
            Trouble::Weather => self.change_weather(),
        }
    }

    fn change_weather(&mut self) {
        let dice = &mut self.env.dice;
        let mut pick = |among: &[u32]| dice.pick(among).unwrap_or_default();
        let (lose, double) = (pick(&[0, 0, 20, 100]), pick(&[0, 50]));
        let (repeat, slow) = (pick(&[0, 50]), pick(&[0, 20, 200, 500]));
        self.env.network.weather = Weather { lose, double, repeat, slow };
    }

    /// Nothing passes between some processes and some nodes.
    fn open_gaps(&mut self) {
        let gap = Gap { until: self.env.now + self.env.dice.millis(100, 8000), fate: Fate::Either };
        let ways: &[Way] = match self.env.dice.from(0, 3) {
            0 => &[Way::There],
            1 => &[Way::Back],
            _ => &[Way::There, Way::Back],
        };
        let (some, few) = (self.env.dice.from(200, 1000), self.env.dice.from(200, 700));
        let cut_off: Vec<ProcessId> = self.processes.keys().copied().collect();
        for node in 0..self.stores.nodes.len() {
            if !self.env.dice.chance(u32::try_from(few).unwrap_or(500)) {
                continue;
            }
            for process in &cut_off {
                if self.env.dice.chance(u32::try_from(some).unwrap_or(500)) {
                    ways.iter().for_each(|way| self.env.network.open_gap(*process, StoreId(node), *way, gap));
                }
            }
        }
    }

    pub(super) fn freeze(&mut self, node: usize, time: Duration) {
        let service = &mut self.stores.nodes[node].service;
        if matches!(service, Service::Up) {
            *service = Service::Frozen(VecDeque::new());
            self.env.fired(Fault::Frozen);
            self.env.plan(time, Plan::Thaw(StoreId(node)));
        }
    }

    /// The backlog is run at once.
    pub(super) fn thaw(&mut self, node: usize) {
        if let Service::Frozen(backlog) = &mut self.stores.nodes[node].service {
            let backlog = mem::take(backlog);
            self.stores.nodes[node].service = Service::Up;
            for (conn, tag, asked) in backlog {
                self.serve(node, conn, tag, &asked);
            }
        }
    }

    fn end_node(&mut self, node: usize, how: Return) {
        let most = self.env.dice.pick(&[50, 2000, 10_000]).unwrap_or_default();
        let time = self.env.dice.millis(10, most);
        self.restart(node, how, time);
    }

    /// It is away for this long.
    pub(super) fn restart(&mut self, node: usize, how: Return, time: Duration) {
        let needs_copy = matches!(how, Return::FromCopy | Return::RolledBack);
        let one = &mut self.stores.nodes[node];
        if !matches!(one.service, Service::Up) || (needs_copy && one.copy.is_none()) {
            return;
        }
        one.service = Service::Down(how);
        self.env.network.store_ended(self.env.now, &mut self.env.dice, StoreId(node));
        self.env.plan(time, Plan::Start(StoreId(node)));
    }

    pub(super) fn start(&mut self, node: usize) {
        let (now, membership) = (self.env.now, self.stores.membership());
        let one = &mut self.stores.nodes[node];
        let Service::Down(how) = mem::replace(&mut one.service, Service::Up) else { return };
        if how != Return::RolledBack {
            one.begin_run();
        }
        let fault = match how {
            Return::WithItsData => Fault::RestartedWithData,
            Return::Empty => {
                one.forget(now, &membership);
                Fault::RestartedEmpty
            }
            Return::FromCopy => {
                if let Some((store, _)) = one.copy.clone() {
                    one.replace(now, store);
                }
                Fault::RestartedFromCopy
            }
            Return::RolledBack => self.roll_back(node),
        };
        self.env.fired(fault);
        self.env.note(format_args!("node {node}: {fault:?}"));
        self.count_the_forgetful();
    }

    /// An undetectable loss: neither who holds nor which token is next is certain any more.
    fn roll_back(&mut self, node: usize) -> Fault {
        let one = &mut self.stores.nodes[node];
        let before = one.state(self.env.now);
        if let Some((store, run)) = one.copy.clone() {
            one.replace(self.env.now, store);
            one.run = run;
        }
        // If the run votes in an earlier epoch, the loss is detected, and only a restart makes it count again.
        if one.state(self.env.now) != before {
            self.env.watch.needs_operator();
        }
        self.stores.forgive(&mut self.env);
        self.env.watch.begin_epoch();
        Fault::RolledBack
    }

    pub(super) fn copy(&mut self, node: usize) {
        let one = &mut self.stores.nodes[node];
        one.copy = Some((one.store.clone(), one.run.clone()));
    }

    pub(super) fn flush(&mut self, node: usize) {
        let membership = self.stores.membership();
        if matches!(self.stores.nodes[node].service, Service::Up) {
            self.env.fired(Fault::Flushed);
            self.stores.nodes[node].forget(self.env.now, &membership);
            self.env.note(format_args!("node {node}: flushed"));
            self.count_the_forgetful();
        }
    }

    fn flush_many(&mut self) {
        for node in 0..self.stores.nodes.len() {
            if self.env.dice.chance(600) {
                self.flush(node);
            }
        }
    }

    fn count_the_forgetful(&mut self) {
        let voting = self.stores.nodes.iter().filter(|node| node.votes(self.env.now)).count();
        if voting < self.stores.nodes.len() - self.stores.majority() + 1 {
            self.env.fired(Fault::MajorityForgot);
        }
    }

    fn leap(&mut self) -> Duration {
        let most = self.env.dice.pick(&LEAPS).unwrap_or_default();
        self.env.dice.millis(1, most)
    }

    fn set_back(&mut self, node: usize) {
        let by = self.leap();
        self.env.fired(Fault::SetBack);
        self.env.note(format_args!("node {node}: clock set back by {by:?}"));
        self.stores.nodes[node].clock.set_back(by);
        self.stores.set_back += by;
        self.stores.look_at_clocks(&self.env);
    }

    fn set_forward(&mut self, node: usize) {
        let by = self.leap();
        self.step_clock(node, by);
        self.env.watch.begin_epoch();
    }

    /// Harmless to leases while the node keeps none.
    pub(super) fn step_clock(&mut self, node: usize, by: Duration) {
        self.env.fired(Fault::SetForward);
        self.env.note(format_args!("node {node}: clock set forward by {by:?}"));
        self.stores.nodes[node].leap(self.env.now, by);
        self.stores.look_at_clocks(&self.env);
    }

    fn run_off(&mut self, node: usize, how: Fault) {
        let one = &mut self.stores.nodes[node];
        if one.runs_off {
            return;
        }
        let by = self.env.dice.rate().abs() * FAR_OFF / 4000;
        one.run_off(self.env.now, if how == Fault::RanFast { by } else { -by });
        self.env.fired(how);
        let time = self.env.dice.millis(100, 10_000);
        self.env.plan(time, Plan::ClockRight(StoreId(node)));
    }

    pub(super) fn right_clock(&mut self, node: usize) {
        self.suspect_fast_clocks();
        self.stores.nodes[node].right_clock(self.env.now);
        self.stores.look_at_clocks(&self.env);
    }

    /// While a clock runs fast, nothing is guaranteed.
    pub(super) fn suspect_fast_clocks(&mut self) {
        if self.stores.nodes.iter().any(|node| node.runs_off) {
            self.env.watch.begin_epoch();
            self.stores.look_at_clocks(&self.env);
        }
    }
}
