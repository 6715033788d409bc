//! Who holds a lock, by the votes of the nodes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::LockName;
use lock_core::inspect::{Entry, Held, Votes};
use lock_core::node::{Inspection, OwnerDigest, Shown, Told};

use crate::quorum::{Answers, NodeId};

/// Asks a node who holds these locks.
pub(crate) fn show(names: impl IntoIterator<Item = LockName>) -> Inspection {
    Inspection::Show(names.into_iter().collect())
}

/// What each node that answered has for the lock that was asked for at this position.
pub(super) fn shown(answers: &Answers, position: usize) -> impl Iterator<Item = (NodeId, Option<&Shown>)> {
    answers.told().filter_map(move |(node, told)| {
        let Told::Shown(locks) = told else { return None };
        Some((node, locks.get(position)?.as_ref()))
    })
}

/// The lock at this position, if a majority has the same lease, or may have it with the nodes that abstain or did not answer. It lasts for as long as
/// a majority may keep it: a node in doubt counts as the one that keeps it longest.
pub(crate) fn entry(answers: &Answers, name: &LockName, position: usize) -> Option<Entry> {
    let mut leases: BTreeMap<&OwnerDigest, Vec<&Held>> = BTreeMap::new();
    for shown in shown(answers, position).filter_map(|(_, shown)| shown) {
        leases.entry(&shown.owner).or_default().push(&shown.held);
    }
    let (owner, mut copies) = leases.into_iter().max_by_key(|(_, copies)| copies.len())?;
    let votes = votes(answers, position, owner);
    // The address of a node that is excluded may lead to another server for others.
    let doubts = votes.abstaining.len() + votes.unreachable.len();
    if copies.len() + doubts < answers.majority {
        return None;
    }
    copies.sort_by_key(|copy| Reverse(copy.remaining.unwrap_or(Duration::MAX)));
    let remaining = copies.get((answers.majority - 1).saturating_sub(doubts))?.remaining;
    let Held { holder, age, .. } = (*agreed(&copies)?).clone();
    let mut entry = Entry::exclusive(name.clone(), holder, remaining, 0);
    entry.holders.iter_mut().for_each(|held| held.age = age);
    Some(Entry { votes: Some(votes), ..entry })
}

/// The copy with the tokens that the most nodes have. A node that drew a higher token has its own until the next renewal.
fn agreed<'a>(copies: &[&'a Held]) -> Option<&'a Held> {
    let like = |held: &Held| copies.iter().filter(|copy| copy.holder == held.holder).count();
    copies.iter().copied().max_by_key(|held| (like(held), Reverse(lowest(held))))
}

fn lowest(held: &Held) -> Option<u64> {
    held.holder.tokens().map(|tokens| tokens.low().get())
}

fn votes(answers: &Answers, position: usize, owner: &OwnerDigest) -> Votes {
    let shown: BTreeMap<_, _> = shown(answers, position).collect();
    let none = Vec::new;
    let mut votes = Votes { held: none(), not_held: none(), abstaining: none(), unreachable: none() };
    for (index, (address, _)) in answers.nodes.iter().enumerate() {
        let voted = match shown.get(&NodeId(index)) {
            Some(Some(shown)) if shown.owner == *owner => &mut votes.held,
            Some(_) if answers.abstaining.contains(&NodeId(index)) => &mut votes.abstaining,
            Some(_) => &mut votes.not_held,
            None => &mut votes.unreachable,
        };
        voted.push(address.clone());
    }
    votes
}
