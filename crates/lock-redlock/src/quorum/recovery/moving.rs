//! How a deployment becomes another one.

use std::sync::Arc;

use lock_core::BackendError;
use lock_core::node::{Ask, Membership, NodeState, View};

use super::super::nodes::Nodes;
use super::super::outgoing::NodeId;
use super::super::trouble::refusal;
use super::{Pass, Phase, Purpose};

impl Pass {
    pub(super) fn move_all(&mut self, nodes: &mut Nodes, to: &Arc<Membership>) -> Result<Phase, BackendError> {
        if to.max_ttl < nodes.membership.max_ttl {
            let remedy = "keep max_ttl or increase it, because earlier leases may last that long";
            return Err(refusal("the new deployment's max_ttl is shorter", remedy));
        }
        // A blank node has nothing to move, and may not belong here.
        let knows = |node: &NodeId| matches!(&self.views[node.0], Ok(view) if view.membership.is_some());
        let reached: Vec<_> = nodes.ids().filter(knows).collect();
        // So many nodes that every majority of the old deployment includes one of them.
        if reached.len() < nodes.overlap() {
            let remedy = "check that they run, and that the first URL names the current nodes; then move again";
            return Err(refusal("too few of the nodes that answer know this deployment", remedy));
        }
        for node in reached {
            let moved = matches!(&self.views[node.0], Ok(view) if view.membership.as_ref() == Some(&**to));
            if !moved {
                let (epoch, membership) = (self.epochs[node.0], Arc::clone(to));
                let predecessor = Arc::clone(&nodes.membership);
                let seen = Some(Arc::clone(&predecessor));
                self.send(nodes, node, Ask::Move { epoch, seen, membership, predecessor });
            }
        }
        Ok(Phase::Install)
    }

    /// A move finds the nodes of another one that came first: there it changed nothing.
    pub(super) fn after_install(&mut self, nodes: &Nodes) -> Phase {
        if let Purpose::Move(_) = &self.purpose {
            self.set_strangers_aside(nodes);
        }
        Phase::Over
    }

    /// The deployment of a node that a move to ours left behind. A majority has to say so, or the operator who moves it;
    /// otherwise nodes could be moved back to a deployment that was itself moved on.
    pub(super) fn left_behind<'a>(&self, nodes: &Nodes, view: &'a View) -> Option<&'a Membership> {
        let theirs = view.deployment()?;
        let is_left = match &self.purpose {
            Purpose::Look | Purpose::Init | Purpose::Move(_) => false,
            Purpose::Watch | Purpose::TakeOver(_) => self.has_left(nodes, theirs) || self.has_lost(nodes, view),
        };
        (is_left && *theirs != *nodes.membership).then_some(theirs)
    }

    fn has_left(&self, nodes: &Nodes, theirs: &Membership) -> bool {
        if matches!(&self.purpose, Purpose::TakeOver(predecessor) if **predecessor == *theirs) {
            return self.was_moved(nodes, theirs);
        }
        self.heirs(nodes, theirs).count() >= nodes.majority()
    }

    /// Whether this node followed another move from the deployment that ours succeeds, and ours has a majority of the nodes
    /// there. Then the other move can never have one, and a node that it got would be missing here for good.
    fn has_lost(&self, nodes: &Nodes, view: &View) -> bool {
        view.predecessor.as_ref().is_some_and(|common| {
            self.old_heirs(nodes, common) > common.members.len() / 2 && self.has_left(nodes, common)
        })
    }

    /// Whether so many nodes were moved from there that no majority is left.
    pub(super) fn was_moved(&self, nodes: &Nodes, predecessor: &Membership) -> bool {
        let all = predecessor.members.len();
        self.old_heirs(nodes, predecessor) >= all - all / 2
    }

    /// How many nodes of that deployment were moved from there to ours.
    fn old_heirs(&self, nodes: &Nodes, predecessor: &Membership) -> usize {
        let is_old = |node: &NodeId| predecessor.members.contains(&nodes.all[node.0].address);
        self.heirs(nodes, predecessor).filter(is_old).count()
    }

    /// Whether every token that was drawn before a move from that deployment is still known. Two things must hold. Since
    /// the move, too many nodes have abstained for a majority of this deployment to have voted. And of these nodes, enough
    /// kept their counters to include one of every majority of that deployment.
    pub(super) fn are_counters_kept(&self, nodes: &Nodes, predecessor: &Membership) -> bool {
        // One that forgets afterwards is marked.
        let since_the_move =
            |view: &&View| matches!(view.state, NodeState::Abstaining { .. }) && view.marked_for.is_none();
        let waits = |node: &NodeId| self.views[node.0].as_ref().ok().filter(since_the_move).is_some();
        let waiting: Vec<_> = self.heirs(nodes, predecessor).filter(waits).collect();
        let all = predecessor.members.len();
        let counts = |node: &&NodeId| {
            predecessor.members.contains(&nodes.all[node.0].address)
                && self.views[node.0].as_ref().is_ok_and(|view| view.counter > 0)
        };
        waiting.len() >= nodes.overlap() && waiting.iter().filter(counts).count() >= all - all / 2
    }

    /// The nodes that are ours and say that ours succeeds that deployment.
    fn heirs<'a>(&'a self, nodes: &'a Nodes, predecessor: &'a Membership) -> impl Iterator<Item = NodeId> + 'a {
        let is_heir = move |node: &NodeId| {
            self.views[node.0].as_ref().is_ok_and(|view| {
                view.membership.as_ref() == Some(&*nodes.membership) && view.predecessor.as_ref() == Some(predecessor)
            })
        };
        nodes.ids().filter(is_heir)
    }
}
