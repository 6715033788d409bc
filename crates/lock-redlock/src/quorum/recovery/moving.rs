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
        if !nodes.membership.is_left_by(|member| to.members.iter().any(|kept| kept == member)) {
            let remedy = "keep more than half of them, and replace the others with a second move";
            return Err(refusal("the new deployment keeps too few of the current nodes", remedy));
        }
        let is_there = |view: &View| view.membership.as_ref() == Some(&**to);
        // Where nobody has voted yet, the deployment before this one may still grant.
        let is_reached = |view: &View| is_there(view) || (view.membership.is_some() && view.has_voted);
        if !self.is_left(nodes, &nodes.membership, is_reached) {
            let remedy = "check that they run, that the first URL names the current nodes, and that these can grant locks; then \
                          move again";
            return Err(refusal("too few of the nodes that answer have voted in this deployment", remedy));
        }
        self.move_each(nodes, to, |_, view| view.membership.is_some() && !is_there(view));
        Ok(Phase::Move)
    }

    /// A blank node has nothing to move. It may belong to somebody else, unless enough of the others are there.
    pub(super) fn move_blank(&mut self, nodes: &mut Nodes) -> Phase {
        self.set_strangers_aside(nodes);
        if let Purpose::Move(to) = self.purpose.clone()
            && self.is_left(nodes, &nodes.membership, |view| view.membership.as_ref() == Some(&*to))
        {
            self.move_each(nodes, &to, |address, view| {
                view.membership.is_none() && to.members.iter().any(|kept| kept == address)
            });
        }
        Phase::Install
    }

    fn move_each(&mut self, nodes: &mut Nodes, to: &Arc<Membership>, follows: impl Fn(&str, &View) -> bool) {
        for node in nodes.ids() {
            let Ok(view) = &self.views[node.0] else { continue };
            if follows(&nodes.all[node.0].address, view) {
                let seen = view.deployment().cloned().map(Arc::new);
                let (membership, predecessor) = (Arc::clone(to), Arc::clone(&nodes.membership));
                self.send(nodes, node, Ask::Move { epoch: self.epochs[node.0], seen, membership, predecessor });
            }
        }
    }

    /// Whether enough members of a deployment are like that to have left it.
    fn is_left(&self, nodes: &Nodes, deployment: &Membership, is_like: impl Fn(&View) -> bool) -> bool {
        deployment.is_left_by(|member| {
            let of_member = |node: &NodeId| nodes.all[node.0].address == member;
            nodes.ids().filter(of_member).any(|node| self.views[node.0].as_ref().is_ok_and(&is_like))
        })
    }

    /// The deployment before this one, if it may still grant locks: too few of its nodes were moved here, or too few of those that
    /// were have `waited`. Until then nobody may vote here.
    pub(super) fn unfinished_move<'a>(
        &'a self,
        nodes: &'a Nodes,
        waited: impl Fn(NodeId) -> bool,
    ) -> Option<&'a Membership> {
        if self.voters(nodes) >= nodes.majority() {
            return None;
        }
        let is_fresh = |view: &&View| view.membership.as_ref() == Some(&*nodes.membership) && !view.has_voted;
        let mut predecessors =
            self.views.iter().flatten().filter(is_fresh).filter_map(|view| view.predecessor.as_ref());
        predecessors.find(|predecessor| {
            let address = |node: NodeId| nodes.all[node.0].address.as_str();
            !predecessor
                .is_left_by(|member| self.heirs(nodes, predecessor).any(|node| address(node) == member && waited(node)))
        })
    }

    /// The request that makes a node abstain, if it must not continue to vote.
    pub(super) fn marking(&self, nodes: &Nodes, node: NodeId) -> Option<Ask> {
        let view = self.views[node.0].as_ref().ok()?;
        let (epoch, membership) = (self.epochs[node.0], Arc::clone(&nodes.membership));
        if let Some(theirs) = self.left_behind(nodes, view) {
            let seen = Some(Arc::new(theirs.clone()));
            // It followed another move from the same deployment, and has not voted there.
            let common = view.predecessor.as_ref().filter(|_| !self.has_left(nodes, theirs));
            let predecessor = Arc::new(common.unwrap_or(theirs).clone());
            return Some(Ask::Move { epoch, seen, membership, predecessor });
        }
        if !self.may_be_ours(nodes, view) {
            return None;
        }
        if let Purpose::TakeOver(predecessor) = &self.purpose
            && view.membership.is_none()
            && self.was_moved(nodes, predecessor)
        {
            let seen = view.deployment().cloned().map(Arc::new);
            return Some(Ask::Move { epoch, seen, membership, predecessor: Arc::clone(predecessor) });
        }
        // Nor may it help a deployment whose predecessor may still need it.
        if view.membership.is_none() && self.unfinished_move(nodes, |_| true).is_some() {
            return None;
        }
        (view.state == NodeState::Forgetful).then_some(Ask::Mark { epoch, membership })
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

    pub(super) fn has_left(&self, nodes: &Nodes, theirs: &Membership) -> bool {
        if matches!(&self.purpose, Purpose::TakeOver(predecessor) if **predecessor == *theirs) {
            return self.was_moved(nodes, theirs);
        }
        self.heirs(nodes, theirs).count() >= nodes.majority()
    }

    /// Whether this node followed another move from the deployment that ours succeeds, and ours has more of the nodes there. Then the other move can never have one, and a node that it got would be missing here for good.
    fn has_lost(&self, nodes: &Nodes, view: &View) -> bool {
        let common = view.predecessor.as_ref();
        common.is_some_and(|common| self.was_moved(nodes, common) && self.has_left(nodes, common))
    }

    /// Whether so many nodes were moved here from there that no majority is left, and no other move can have as many.
    pub(super) fn was_moved(&self, nodes: &Nodes, predecessor: &Membership) -> bool {
        predecessor.is_left_by(|member| self.heirs(nodes, predecessor).any(|node| nodes.all[node.0].address == member))
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
