//! Who holds a lock, by the votes of the nodes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::inspect::{Entry, Held, Votes};
use lock_core::node::{Inspection, OwnerDigest, Shown, Told};
use lock_core::{Holder, LockName};

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

/// The lock at this position, if a majority has the same lease, or may have it with the nodes that did not answer. It lasts for as long as a
/// majority may keep it: a silent node counts as the one that keeps it longest.
pub(crate) fn entry(answers: &Answers, name: &LockName, position: usize) -> Option<Entry> {
    let mut leases: BTreeMap<&OwnerDigest, Vec<&Held>> = BTreeMap::new();
    for shown in shown(answers, position).filter_map(|(_, shown)| shown) {
        leases.entry(&shown.owner).or_default().push(&shown.held);
    }
    let (owner, mut copies) = leases.into_iter().max_by_key(|(_, copies)| copies.len())?;
    if copies.len() + answers.silent() < answers.majority {
        return None;
    }
    copies.sort_by_key(|copy| Reverse(copy.remaining.unwrap_or(Duration::MAX)));
    let remaining = copies.get((answers.majority - 1).saturating_sub(answers.silent()))?.remaining;
    let Held { holder, age, .. } = (*agreed(&copies)?).clone();
    let mut entry = Entry::exclusive(name.clone(), holder, remaining, 0);
    entry.holders.iter_mut().for_each(|held| held.age = age);
    Some(Entry { votes: Some(votes(answers, position, owner)), ..entry })
}

/// The copy with the tokens that the most nodes have. A node that drew a higher token has its own until the next renewal.
fn agreed<'a>(copies: &[&'a Held]) -> Option<&'a Held> {
    let like = |held: &Held| copies.iter().filter(|copy| copy.holder == held.holder).count();
    copies.iter().copied().max_by_key(|held| (like(held), Reverse(lowest(held))))
}

fn lowest(held: &Held) -> Option<u64> {
    match held.holder {
        Holder::Leasehold { tokens, .. } => Some(tokens.low().get()),
        Holder::Foreign => None,
    }
}

fn votes(answers: &Answers, position: usize, owner: &OwnerDigest) -> Votes {
    let shown: BTreeMap<_, _> = shown(answers, position).collect();
    let mut votes = Votes { held: Vec::new(), not_held: Vec::new(), unreachable: Vec::new() };
    for (index, (address, _)) in answers.nodes.iter().enumerate() {
        let voted = match shown.get(&NodeId(index)) {
            Some(Some(shown)) if shown.owner == *owner => &mut votes.held,
            Some(_) => &mut votes.not_held,
            None => &mut votes.unreachable,
        };
        voted.push(address.clone());
    }
    votes
}
