//! All nodes, clients and passes together, and which of their states are the same.

use std::hash::{Hash, Hasher};

use super::node::{Belongs, Exchange, Node, Part};
use super::pass::Pass;
use super::setup::{Bounds, Setup};

/// How far a client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// It has not begun.
    Idle,
    /// It tells the nodes of its ttl.
    Announces,
    /// It has told a majority.
    Announced,
    /// It asked for the lock so long ago. Once a majority has granted it, it holds it until its ttl is over.
    Asks(u8),
    /// Its ttl is over.
    Over,
}

/// One state of `N` nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State<const N: usize> {
    /// The nodes.
    pub nodes: [Node; N],
    /// The clients.
    pub clients: [Stage; 2],
    /// The passes of the guard.
    pub passes: [Pass; 2],
    /// What may still happen.
    pub left: Bounds,
}

impl<const N: usize> State<N> {
    pub(crate) fn new(setup: &Setup, left: Bounds) -> Self {
        let mut nodes = [Node::BLANK; N];
        for (index, node) in nodes.iter_mut().enumerate() {
            node.member_of = setup.deployments.map(|deployment| deployment.has(index));
            node.is_first = index == 0;
            if node.member_of[0] || setup.left >> index & 1 == 1 {
                node.found(setup.known);
            }
            if !node.member_of[0] && setup.left >> index & 1 == 1 {
                node.belongs = Belongs::Written(1);
            }
        }
        Self { nodes, clients: [Stage::Idle; 2], passes: [Pass::None; 2], left }
    }

    /// How many nodes are like that.
    pub(crate) fn count(&self, like: impl Fn(&Node) -> bool) -> usize {
        self.nodes.iter().filter(|node| like(node)).count()
    }

    /// Whether this client may rely on the lock.
    pub fn holds(&self, setup: &Setup, client: usize) -> bool {
        let asker = setup.clients[client];
        let granted = self.count(|node| node.exchanges[client].answered);
        matches!(self.clients[client], Stage::Asks(age) if age < asker.ttl)
            && granted >= setup.deployments[usize::from(asker.deployment)].majority()
    }

    /// The node that this pass is for.
    pub(crate) fn target(&self, pass: usize) -> Option<usize> {
        self.nodes.iter().position(|node| node.parts[pass] == Part::Target)
    }

    /// How many nodes know that they belong to this deployment.
    pub(crate) fn known_in(&self, deployment: u8) -> usize {
        self.count(|node| node.belongs == Belongs::Written(deployment))
    }

    /// Whether a node shows that the move to this deployment was decided.
    pub(crate) fn proves(&self, deployment: u8) -> bool {
        self.nodes.iter().any(|node| node.proves(deployment))
    }

    pub(crate) fn end_pass(&mut self, pass: usize) {
        self.passes[pass] = Pass::None;
        self.nodes.iter_mut().for_each(|node| node.parts[pass] = Part::None);
    }

    /// Forgets what passed between the nodes and a client.
    pub(crate) fn end_exchanges(&mut self, client: usize) {
        self.nodes.iter_mut().for_each(|node| node.exchanges[client] = Exchange::default());
    }
}

/// The checker knows states by their hash alone, so that those that differ in the names of nodes alone are one to it.
impl<const N: usize> Hash for State<N> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { mut nodes, clients, passes, left } = *self;
        nodes.sort_unstable();
        (nodes, clients, passes, left).hash(hasher);
    }
}
