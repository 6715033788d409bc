//! Carries out the events of a plot.

use std::sync::Arc;
use std::time::Duration;

use lock_redlock::quorum::{NodeId, Purpose};

use super::deed::{Actor, Deed, Script};
use crate::env::Plan;
use crate::fault::Fault;
use crate::network::{Fate, Gap, ProcessId, StoreId, Way};
use crate::quorum::list::List;
use crate::quorum::nodes::Nodes;
use crate::wish::Act;
use crate::world::World;

/// How soon an operator tries again.
const AGAIN: Duration = Duration::from_secs(3);

impl World<Nodes> {
    /// No user arrives and nothing happens except what the plot says.
    pub(in super::super) fn rehearse(&mut self, script: Script) {
        self.env.cancel(|plan| matches!(plan, Plan::Arrival(_)));
        if self.stores.terms.spares > 0 {
            // Clients of one of the lists are refused.
            self.env.watch.needs_operator();
        }
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
            Deed::Enter(actor, list, late) => self.enter(actor, list, Purpose::Watch, late),
            Deed::Move(actor) => self.move_nodes(actor),
            Deed::TakeOver(actor, clients) => self.take_over(number, actor, clients),
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
        if let Some(process) = self.stores.cast.get(&index).copied() {
            act(self, process);
        }
    }

    fn enter(&mut self, Actor(index): Actor, list: List, purpose: Purpose, late: Option<(usize, Duration)>) {
        let Some(process) = self.make_process(list) else { return };
        let id = process.id;
        self.stores.cast.insert(index, id);
        if let Some((node, late)) = late {
            self.open_way_gap(id, node, Fate::Late, late);
        }
        self.begin(process, purpose);
        self.env.cancel(|plan| matches!(plan, Plan::Arrival(process) if *process == id));
    }

    fn move_nodes(&mut self, actor: Actor) {
        let to = Arc::new(self.stores.membership_of(List::Second));
        self.enter(actor, List::First, Purpose::Move(to), None);
    }

    /// As the command does it: only once the first deployment has no majority left. It is run again until the second one
    /// can grant locks, because a node may forget that it was moved.
    fn take_over(&mut self, number: usize, actor: Actor, clients: [Actor; 2]) {
        let voting = self.voting_in_second();
        if voting < self.stores.majority() && !self.is_move_decided() {
            self.move_nodes(actor);
            return self.env.plan(AGAIN, Plan::Cue(number));
        }
        self.env.fired(Fault::Moved);
        let from = Arc::new(self.stores.membership_of(List::First));
        self.enter(actor, List::Second, Purpose::TakeOver(from), None);
        for Actor(client) in clients {
            if !self.stores.cast.contains_key(&client) {
                self.enter(Actor(client), List::Second, Purpose::Watch, None);
            }
        }
        if voting < self.stores.majority() {
            self.env.plan(AGAIN, Plan::Cue(number));
        }
    }

    fn voting_in_second(&self) -> usize {
        let second = self.stores.membership_of(List::Second);
        let now = self.env.now;
        self.stores
            .nodes
            .iter()
            .filter(|node| node.votes(now) && node.view(now).membership.as_ref() == Some(&second))
            .count()
    }

    /// Enough nodes were moved that are on both lists.
    fn is_move_decided(&self) -> bool {
        let (first, second) = (self.stores.membership_of(List::First), self.stores.membership_of(List::Second));
        let kept = List::Second.members(&self.stores.terms);
        let moved = kept
            .into_iter()
            .filter(|NodeId(index)| self.stores.nodes[*index].view(self.env.now).membership.as_ref() == Some(&second));
        let moved: Vec<_> = moved.map(|NodeId(index)| format!("node-{index}")).collect();
        first.is_left_by(|member| moved.iter().any(|address| address == member))
    }

    fn open_way_gap(&mut self, process: ProcessId, node: usize, fate: Fate, lasts: Duration) {
        let gap = Gap { until: self.env.now + lasts, fate };
        self.env.network.open_gap(process, StoreId(node), Way::There, gap);
    }
}
