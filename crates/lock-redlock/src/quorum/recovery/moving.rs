//! How a deployment becomes another one.

use std::sync::Arc;

use lock_core::BackendError;
use lock_core::node::{Ask, Membership, NodeState, View};

use super::super::nodes::Nodes;
use super::super::outgoing::NodeId;
use super::super::trouble::refusal;
use super::report::Report;
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
        let is_reached = |view: &View| is_there(view) || (view.has_voted && self.remembers(nodes, view));
        if !self.is_left(nodes, &nodes.membership, is_reached) {
            let remedy = format!(
                "check that they run, that the first URL names the current nodes, and that these can grant locks; then move \
                 again; if they have lost their data during a move, and neither list grants locks: {}",
                Report::LAST_RESORT
            );
            return Err(refusal("too few of the nodes that answer have voted in this deployment", remedy));
        }
        self.move_each(nodes, to, |pass, nodes, _, view| !is_there(view) && pass.remembers(nodes, view));
        Ok(Phase::Move)
    }

    /// A node that remembers nothing may belong to somebody else, unless enough of the others are there.
    pub(super) fn move_blank(&mut self, nodes: &mut Nodes) -> Phase {
        self.set_strangers_aside(nodes);
        if let Purpose::Move(to) = self.purpose.clone() {
            let is_there = |view: &View| view.membership.as_ref() == Some(&*to);
            if self.is_left(nodes, &nodes.membership, is_there) {
                let is_kept = |address: &str| to.members.iter().any(|kept| kept == address);
                self.move_each(nodes, &to, |pass, nodes, address, view| {
                    !pass.remembers(nodes, view) && (view.membership.is_some() || is_kept(address))
                });
            }
        }
        Phase::Install
    }

    fn move_each(
        &mut self,
        nodes: &mut Nodes,
        to: &Arc<Membership>,
        follows: impl Fn(&Self, &Nodes, &str, &View) -> bool,
    ) {
        // Nodes that are there already were reached by this move before.
        let moves = self.moves_of(to).unwrap_or(0).max(self.moves(nodes) + 1);
        for node in nodes.ids() {
            let Ok(view) = &self.views[node.0] else { continue };
            if follows(self, nodes, &nodes.all[node.0].address, view) {
                let seen = view.deployment().cloned().map(Arc::new);
                let (membership, predecessor) = (Arc::clone(to), Arc::clone(&nodes.membership));
                self.send(nodes, node, Ask::Move { epoch: self.epochs[node.0], seen, membership, predecessor, moves });
            }
        }
    }

    /// The number of the last move that led to this deployment, as far as its nodes know.
    pub(super) fn moves(&self, nodes: &Nodes) -> u64 {
        self.moves_of(&nodes.membership).unwrap_or(0)
    }

    fn moves_of(&self, deployment: &Membership) -> Option<u64> {
        let members = self.views.iter().flatten().filter(|view| view.membership.as_ref() == Some(deployment));
        members.map(|view| view.moves).max()
    }

    /// Whether enough members of a deployment are like that to have left it.
    fn is_left(&self, nodes: &Nodes, deployment: &Membership, is_like: impl Fn(&View) -> bool) -> bool {
        deployment.is_left_by(|member| {
            let of_member = |node: &NodeId| nodes.all[node.0].address == member;
            nodes.ids().filter(of_member).any(|node| self.views[node.0].as_ref().is_ok_and(&is_like))
        })
    }

    /// The deployment before this one, if it may still grant locks: no node that has `waited` proves that the move from it was
    /// decided. Until then nobody may vote here.
    pub(super) fn undecided_move<'a>(
        &'a self,
        nodes: &'a Nodes,
        waited: impl Fn(NodeId) -> bool,
    ) -> Option<&'a Membership> {
        let mut predecessors = self.predecessors(nodes);
        predecessors.find(|predecessor| !self.is_decided(nodes, predecessor, &waited))
    }

    /// Whether nodes were moved here and have not voted since, and no majority shows that they may.
    pub(super) fn is_fresh(&self, nodes: &Nodes) -> bool {
        self.predecessors(nodes).next().is_some()
    }

    /// The deployments before this one, while nobody may vote here because of them.
    fn predecessors<'a>(&'a self, nodes: &'a Nodes) -> impl Iterator<Item = &'a Membership> {
        let is_fresh = |view: &&View| view.membership.as_ref() == Some(&*nodes.membership) && !view.has_voted;
        let fresh = self.views.iter().flatten().filter(is_fresh).filter_map(|view| view.predecessor.as_ref());
        fresh.filter(|_| self.voters(nodes) < nodes.majority())
    }

    /// Whether the move from that deployment is decided, as nodes show that have `waited`. Either so many of its members are
    /// here that no majority is left there, and no other move can have as many. Or a node that was no member followed this
    /// very move: it was moved only after that, and some of the others have lost their data since.
    pub(super) fn is_decided(&self, nodes: &Nodes, predecessor: &Membership, waited: impl Fn(NodeId) -> bool) -> bool {
        let address = |node: NodeId| nodes.all[node.0].address.as_str();
        let here = |node: &NodeId| {
            let is_here = |view: &View| view.membership.as_ref() == Some(&*nodes.membership);
            self.views[node.0].as_ref().is_ok_and(is_here) && waited(*node)
        };
        let here: Vec<_> = nodes.ids().filter(here).collect();
        let moves = self.moves(nodes);
        let proves = |node: &NodeId| {
            let is_of_this_move =
                |view: &View| view.predecessor.as_ref() == Some(predecessor) && view.moves == moves && moves > 0;
            !predecessor.members.iter().any(|member| member == address(*node))
                && self.views[node.0].as_ref().is_ok_and(is_of_this_move)
        };
        predecessor.is_left_by(|member| here.iter().any(|node| address(*node) == member)) || here.iter().any(proves)
    }

    /// The request that makes a node abstain, if it must not continue to vote.
    pub(super) fn marking(&self, nodes: &Nodes, node: NodeId) -> Option<Ask> {
        let view = self.views[node.0].as_ref().ok()?;
        if let Some(theirs) = self.left_behind(nodes, view) {
            // It followed another move from the same deployment, and has not voted there.
            let common = view.predecessor.as_ref().filter(|_| !self.has_left(nodes, theirs));
            return Some(self.taking(nodes, node, view, common.unwrap_or(theirs)));
        }
        if !self.may_be_ours(nodes, view) {
            return None;
        }
        if view.membership.is_none() {
            if let Some(predecessor) = self.takes_blank(nodes) {
                return Some(self.taking(nodes, node, view, predecessor));
            }
            // Nor may it help a deployment whose predecessor may still need it.
            if self.is_fresh(nodes) {
                return None;
            }
        }
        let (epoch, membership) = (self.epochs[node.0], Arc::clone(&nodes.membership));
        (view.state == NodeState::Forgetful).then_some(Ask::Mark { epoch, membership })
    }

    /// The deployment from which a blank node is moved here: after a move that is decided.
    fn takes_blank<'a>(&'a self, nodes: &'a Nodes) -> Option<&'a Membership> {
        let named = match &self.purpose {
            Purpose::TakeOver(predecessor) => Some(&**predecessor),
            Purpose::Watch | Purpose::Look | Purpose::Init | Purpose::Move(_) => None,
        };
        let mut all = named.into_iter().chain(self.predecessors(nodes));
        all.find(|predecessor| self.is_decided(nodes, predecessor, |_| true))
    }

    fn taking(&self, nodes: &Nodes, node: NodeId, view: &View, predecessor: &Membership) -> Ask {
        Ask::Move {
            epoch: self.epochs[node.0],
            seen: view.deployment().cloned().map(Arc::new),
            membership: Arc::clone(&nodes.membership),
            predecessor: Arc::new(predecessor.clone()),
            moves: self.moves(nodes),
        }
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
        // What followed a later move is not behind.
        (is_left && *theirs != *nodes.membership && view.moves <= self.moves(nodes)).then_some(theirs)
    }

    pub(super) fn has_left(&self, nodes: &Nodes, theirs: &Membership) -> bool {
        if matches!(&self.purpose, Purpose::TakeOver(predecessor) if **predecessor == *theirs) {
            return self.is_decided(nodes, theirs, |_| true);
        }
        self.heirs(nodes, theirs).count() >= nodes.majority()
    }

    /// Whether this node followed another move from the deployment that ours succeeds, and ours is decided. Then the other move
    /// never can be, and a node that it got would be missing here for good.
    fn has_lost(&self, nodes: &Nodes, view: &View) -> bool {
        let common = view.predecessor.as_ref();
        common.is_some_and(|common| self.is_decided(nodes, common, |_| true) && self.has_left(nodes, common))
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
