//! What must hold at every step.

use super::node::Role;
use super::servers::Replicated;
use crate::invariants::{Holding, Rule};
use crate::one::together;
use crate::world::World;

impl World<Replicated> {
    /// At most one holder, whichever server it has its lease from.
    pub(super) fn check_holdings(&mut self) {
        let (now, watch) = (self.env.now, &mut self.env.watch);
        let holdings: Vec<Holding<'_>> = self.processes.values().flat_map(|process| process.holdings(now)).collect();
        if let Err((rule, what)) = together(watch, &holdings, None) {
            watch.report(rule, Err(what));
        }
    }

    /// A client that was told of a primary has no connection to one that was chosen before it.
    pub(super) fn check_epochs(&mut self) {
        for process in self.processes.values() {
            let told = process.backend.told();
            for store in process.conns().into_iter().filter_map(|conn| self.env.network.store(conn)) {
                let role = self.stores.nodes.get(store.0).map(|node| node.role);
                if let Some(Role::Primary(epoch)) =
                    role.filter(|role| matches!(role, Role::Primary(epoch) if *epoch < told))
                {
                    let what = format!("{:?} knows of epoch {told}, and is at {store:?} of epoch {epoch}", process.id);
                    self.env.watch.report(Rule::NeverBack, Err(what));
                }
            }
        }
    }
}
