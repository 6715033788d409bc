//! Every order in which claims and a revocation can reach the nodes: once a majority has answered the revocation, no majority acknowledges
//! the lease again, and the next holder has a higher token.

use std::sync::Arc;

use lock_core::inspect::Revoked;
use lock_core::node::{Ask, BlockingQuorumNode, Epoch, Inspection, NodeState, OwnerDigest, Revocation, Told};
use lock_core::{BackendError, Claim, Fenced, FencingToken, LockName, Note, Owner, TokenRange, Width};

use crate::support::{Rig, WITHIN, claim};

/// What reaches a node, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// The claim, and then the revocation.
    Before,
    /// The revocation, and then the claim.
    Late,
    /// The claim alone.
    Unreached,
    /// The revocation alone.
    Never,
}

const COURSES: [Course; 4] = [Course::Before, Course::Late, Course::Unreached, Course::Never];

impl Course {
    fn is_reached(self) -> bool {
        self != Self::Unreached
    }

    fn is_in_time(self) -> bool {
        matches!(self, Self::Before | Self::Unreached)
    }
}

/// Some nodes, which vote.
struct Nodes {
    rig: Rig,
    epochs: Vec<Epoch>,
    majority: usize,
}

impl Nodes {
    fn of(count: usize) -> Self {
        let rig = Rig::in_use(count);
        let mut nodes = Self { rig, epochs: Vec::new(), majority: count / 2 + 1 };
        nodes.epochs = (0..count).map(|node| nodes.epoch_of(node)).collect();
        nodes
    }

    fn epoch_of(&self, node: usize) -> Epoch {
        let Ok(Told::View(view)) = self.ask(node, &Ask::Look) else { panic!("it answers") };
        let NodeState::Voting(epoch) = view.state else { panic!("it votes: {view:?}") };
        epoch
    }

    fn ask(&self, node: usize, ask: &Ask) -> Result<Told, BackendError> {
        BlockingQuorumNode::ask(&self.rig.nodes[node], ask, WITHIN)
    }

    /// The token of a grant; `None` if the claim is refused.
    fn claim(&self, node: usize, claim: &Claim) -> Option<FencingToken> {
        let (wish, epoch) = (FencingToken::new(1).unwrap(), self.epochs[node]);
        match self.ask(node, &Ask::Acquire { claim: claim.clone().into(), wish, epoch }) {
            Ok(Told::Granted { token, .. }) => Some(token),
            Ok(_) | Err(_) => None,
        }
    }

    /// At how many nodes this token is acknowledged.
    fn acknowledged(&self, claim: &Claim, token: FencingToken) -> usize {
        let tokens = TokenRange::above(token.get() - 1, Width::ONE).unwrap();
        let leases: Arc<[_]> = [claim.lease(tokens)].into();
        let is_acknowledged = |node: &usize| {
            let ask = Ask::Fence { leases: leases.clone(), epoch: self.epochs[*node] };
            matches!(self.ask(*node, &ask), Ok(Told::Fenced(told)) if told == [Fenced::Acknowledged])
        };
        (0..self.epochs.len()).filter(is_acknowledged).count()
    }

    fn owner_at(&self, node: usize, name: &LockName) -> Option<OwnerDigest> {
        match self.ask(node, &Ask::Inspect(Inspection::Show([name.clone()].into()))) {
            Ok(Told::Shown(shown)) => shown.into_iter().next()?.map(|shown| shown.owner),
            other => panic!("not shown: {other:?}"),
        }
    }

    fn revoke(&self, node: usize, name: &LockName, owner: &OwnerDigest) -> Revoked {
        let (owners, by) = (vec![owner.clone()], Note::from_wire("7@ops"));
        let revocation = Revocation { name: name.clone(), token: FencingToken::MAX, owners, by, lasts: WITHIN };
        match self.ask(node, &Ask::Inspect(Inspection::Revoke(revocation.into()))) {
            Ok(Told::Revoked(revoked)) => revoked,
            other => panic!("not revoked: {other:?}"),
        }
    }

    /// Plays an order. Returns whether the holder keeps a majority; `None` if the revocation is not done.
    fn play(&self, courses: &[Course], tells_all: bool) -> Option<bool> {
        let with = |is_so: fn(Course) -> bool| {
            courses.iter().enumerate().filter(move |(_, course)| is_so(**course)).map(|(node, _)| node)
        };
        let name = format!("{courses:?} {tells_all}");
        let claimed = Claim { name: name.parse().unwrap(), owner: owner(0, &name), ..claim(1) };
        let mut tokens: Vec<_> = with(Course::is_in_time).filter_map(|node| self.claim(node, &claimed)).collect();
        let token = *tokens.iter().max()?;
        let is_held = self.acknowledged(&claimed, token) >= self.majority;
        let digest = with(Course::is_in_time).find_map(|node| self.owner_at(node, &claimed.name))?;
        let reached: Vec<_> = with(Course::is_reached).collect();
        if reached.len() < self.majority {
            return None;
        }
        for node in reached.iter().filter(|node| tells_all || courses[**node] == Course::Before) {
            let ended = self.revoke(*node, &claimed.name, &digest) == Revoked::Revoked;
            assert_eq!(ended, courses[*node] == Course::Before, "{courses:?}");
        }
        tokens.extend(with(|course| course == Course::Late).filter_map(|node| self.claim(node, &claimed)));
        let keeps = self.acknowledged(&claimed, *tokens.iter().max()?) >= self.majority;
        let next = Claim { owner: owner(1, &name), ..claimed };
        let granted: Vec<_> = reached.iter().filter_map(|node| self.claim(*node, &next)).collect();
        if tells_all {
            assert_eq!(granted.len(), reached.len(), "{courses:?}: they are free");
            assert!(!is_held || granted.into_iter().max() > Some(token), "{courses:?}");
        }
        Some(keeps)
    }
}

/// An owner of its own for each order.
fn owner(seed: u128, name: &str) -> Owner {
    let digits = name.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    Owner::from_random(digits.to_be_bytes())
}

fn orders(nodes: usize) -> Vec<Vec<Course>> {
    let more = |orders: Vec<Vec<Course>>| {
        let with = |order: Vec<Course>| COURSES.map(|course| order.iter().copied().chain([course]).collect());
        orders.into_iter().flat_map(with).collect()
    };
    (0..nodes).fold(vec![Vec::new()], |orders, _| more(orders))
}

#[test]
fn a_revocation_that_a_majority_answered_is_final_in_every_order() {
    for count in [3, 4, 5] {
        let nodes = Nodes::of(count);
        let kept = |tells_all| {
            let played = orders(count).into_iter().filter_map(|order| Some((nodes.play(&order, tells_all)?, order)));
            let played: Vec<_> = played.collect();
            assert!(played.len() > orders(count).len() / 4, "{}", played.len());
            played.into_iter().filter(|(keeps, _)| *keeps).map(|(_, order)| order).collect::<Vec<_>>()
        };
        assert_eq!(kept(true), Vec::<Vec<Course>>::new());
        // Without what nodes remember that do not have the lease, a late claim restores a majority.
        let twin = kept(false);
        assert!(!twin.is_empty() && twin.iter().all(|order| order.contains(&Course::Late)), "{twin:?}");
    }
}
