//! All nodes and clients together, and which of their states are the same.

use std::hash::{Hash, Hasher};

use crate::client::Client;
use crate::node::{Exchange, Node, Vote};
use crate::rules::Bounds;

/// Whether holds followed each other in the order of their tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Wherever it is known who came first.
    Kept,
    /// Somebody who still owned all nodes that it counted had a token that was not above all before.
    Broken,
}

/// One state of `N` nodes and `C` clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State<const N: usize, const C: usize> {
    /// The nodes.
    pub nodes: [Node<C>; N],
    /// The clients.
    pub clients: [Client; C],
    /// What may still happen.
    pub left: Bounds,
    /// How many crashes there were.
    pub crashes: u8,
    /// The number of the last crash whose dwell is over.
    pub dwelt: u8,
    /// Whether holds have been in order.
    pub order: Order,
}

/// The names of so many nodes or clients.
pub(crate) fn names(count: usize) -> impl Iterator<Item = u8> {
    (0..u8::MAX).take(count)
}

impl<const N: usize, const C: usize> State<N, C> {
    /// How many nodes are a majority.
    pub const MAJORITY: usize = N / 2 + 1;

    pub(crate) fn new(left: Bounds) -> Self {
        let (nodes, clients) = ([Node::NEW; N], [Client::IDLE; C]);
        Self { nodes, clients, left, crashes: 0, dwelt: 0, order: Order::Kept }
    }

    /// The client of this name.
    pub fn client(&self, client: u8) -> &Client {
        &self.clients[usize::from(client)]
    }

    pub(crate) fn client_mut(&mut self, client: u8) -> &mut Client {
        &mut self.clients[usize::from(client)]
    }

    /// The node of this name.
    pub fn node(&self, node: u8) -> &Node<C> {
        &self.nodes[usize::from(node)]
    }

    pub(crate) fn node_mut(&mut self, node: u8) -> &mut Node<C> {
        &mut self.nodes[usize::from(node)]
    }

    /// All tokens that were handed out.
    pub fn tokens(&self) -> impl Iterator<Item = u8> {
        self.clients.iter().filter_map(Client::handed_out)
    }

    /// Whether a majority of the nodes is like that.
    pub fn majority(&self, like: impl Fn(&Node<C>) -> bool) -> bool {
        self.nodes.iter().filter(|node| like(node)).count() >= Self::MAJORITY
    }

    /// The tokens that a client may choose: each is the highest of some majority of the grants to it.
    pub(crate) fn choices(&self, client: u8) -> Vec<u8> {
        let grants = self.nodes.iter().filter_map(|node| match node.exchange(client) {
            Exchange::Granted(grant) => Some(grant),
            Exchange::Asked | Exchange::Told | Exchange::Counted | Exchange::Acknowledged => None,
        });
        highest(grants.collect(), Self::MAJORITY)
    }

    /// What may be read for a node that forgot its counter: each is the highest of so many others that every majority
    /// has one of them or the node itself.
    pub(crate) fn floors(&self, forgetful: u8) -> Vec<u8> {
        let others = names(N).filter(|&name| name != forgetful).map(|name| self.node(name));
        let counters = others.filter(|node| node.vote == Vote::Votes).map(|node| node.counter);
        highest(counters.collect(), N - Self::MAJORITY + 1)
    }

    /// The same state when the client `old[i]` is called `i`, and the nodes are in their order.
    fn renamed(&self, old: [u8; C]) -> Self {
        let clients = old.map(|name| *self.client(name));
        let mut nodes = self.nodes.map(|node| node.renamed(old));
        nodes.sort_unstable();
        Self { nodes, clients, ..*self }
    }

    /// The one that stands for all states that differ in names alone.
    fn canonical(&self) -> Self {
        let mut old = [0; C];
        old.iter_mut().zip(names(C)).for_each(|(place, name)| *place = name);
        let mut least = self.renamed(old);
        while next_permutation(&mut old) {
            let other = self.renamed(old);
            if (other.clients, other.nodes) < (least.clients, least.nodes) {
                least = other;
            }
        }
        least
    }
}

/// The checker knows states by their hash alone, so that those that differ in names alone are one to it.
impl<const N: usize, const C: usize> Hash for State<N, C> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { nodes, clients, left, crashes, dwelt, order } = self.canonical();
        (nodes, clients, left, crashes, dwelt, order).hash(hasher);
    }
}

/// Each of the numbers that is the highest of some `count` of them.
fn highest(mut numbers: Vec<u8>, count: usize) -> Vec<u8> {
    numbers.sort_unstable();
    let mut highest: Vec<u8> = numbers.into_iter().skip(count - 1).collect();
    highest.dedup();
    highest
}

/// Makes of these names the next order of them, if there is one.
fn next_permutation(names: &mut [u8]) -> bool {
    let Some(pivot) = names.windows(2).rposition(|pair| pair[0] < pair[1]) else { return false };
    let Some(above) = names.iter().rposition(|&name| name > names[pivot]) else { return false };
    names.swap(pivot, above);
    names[pivot + 1..].reverse();
    true
}
