//! Has happen what a plot says.

use std::time::Duration;

use super::deed::{Actor, Deed, Script};
use crate::env::Plan;
use crate::fault::Fault;
use crate::network::{Fate, Gap, ProcessId, StoreId, Way};
use crate::quorum::nodes::Nodes;
use crate::wish::Act;
use crate::world::World;

impl World<Nodes> {
    /// Nobody comes and nothing happens but what the plot says.
    pub(in super::super) fn rehearse(&mut self, script: Script) {
        self.env.cancel(|plan| matches!(plan, Plan::Arrival(_)));
        for (number, (time, deed)) in script.0.into_iter().enumerate() {
            self.env.plan(time, Plan::Cue(number));
            self.stores.deeds.push(deed);
        }
    }

    pub(in super::super) fn cue(&mut self, number: usize) {
        let deed = self.stores.deeds[number].clone();
        self.env.note(format_args!("{deed:?}"));
        match deed {
            Deed::Ask(actor, wish) => self.on(actor, |world, process| world.act(process, Act::Join(wish))),
            Deed::Enter { node, late } => self.enter(node, late),
            Deed::Gap { actor, node, fate, lasts } => {
                self.on(actor, |world, process| world.open_way_gap(process, node, fate, lasts));
            }
            Deed::Stop(actor, time) => self.on(actor, |world, process| world.stop(process, Fault::Paused, time)),
            Deed::Forget(node) => self.flush(node),
            Deed::Copy(node) => self.copy(node),
            Deed::Restart(node, how, time) => self.restart(node, how, time),
            Deed::Freeze(node, time) => self.freeze(node, time),
            Deed::StepClock(node, by) => {
                let one = &self.stores.nodes[node];
                if one.store.holds(one.clock.read(self.env.now)).next().is_none() {
                    self.step_clock(node, by);
                }
            }
        }
    }

    fn on(&mut self, Actor(index): Actor, act: impl FnOnce(&mut Self, ProcessId)) {
        if let Some(process) = self.stores.cast.get(index).copied() {
            act(self, process);
        }
    }

    fn enter(&mut self, node: usize, late: Duration) {
        if let Some(process) = self.make_process() {
            self.open_way_gap(process.id, node, Fate::Late, late);
            let id = process.id;
            self.begin(process);
            self.env.cancel(|plan| matches!(plan, Plan::Arrival(process) if *process == id));
        }
    }

    fn open_way_gap(&mut self, process: ProcessId, node: usize, fate: Fate, lasts: Duration) {
        let gap = Gap { until: self.env.now + lasts, fate };
        self.env.network.open_gap(process, StoreId(node), Way::There, gap);
    }
}
