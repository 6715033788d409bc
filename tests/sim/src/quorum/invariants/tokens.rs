//! Tokens are distinct, and rise in real time: a token that was handed out before an owner asked is below that owner's
//! token. And no two nodes see two holders in different orders: the order of acknowledgements is that of the tokens.
//!
//! Clocks do not matter here, only the memory of the nodes: if more was lost than recovery can know, what was handed
//! out before does not count.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::{FencingToken, Hold, Lease, LockName, Owner};
use lock_redlock::quorum::NodeId;

use crate::clock::Time;
use crate::invariants::Epoch;

/// How many of the latest leases of a lock are compared.
const LATEST: usize = 24;

/// Something was lost that no node can know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Forgiveness(u64);

/// What was known when an owner first asked.
#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Time,
    epoch: Epoch,
    forgiveness: Forgiveness,
    /// The highest token that had been handed out.
    above: Option<FencingToken>,
}

#[derive(Debug)]
struct Granted {
    lease: Lease,
    acknowledged: BTreeMap<NodeId, u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Tokens {
    begun: BTreeMap<Owner, Begun>,
    granted: BTreeMap<Owner, Granted>,
    handed_out: BTreeMap<LockName, BTreeSet<FencingToken>>,
    leases: BTreeMap<LockName, Vec<Owner>>,
    forgiveness: Forgiveness,
}

impl Tokens {
    /// More was lost than recovery can know: what was handed out up to now does not count.
    pub(crate) fn forgive(&mut self) {
        self.forgiveness.0 += 1;
        self.handed_out.clear();
        self.leases.clear();
    }

    /// An owner asks, perhaps again.
    pub(crate) fn began(&mut self, epoch: Epoch, at: Time, name: LockName, owner: Owner) {
        let above = self.handed_out.get(&name).and_then(|tokens| tokens.last().copied());
        let forgiveness = self.forgiveness;
        self.begun.entry(owner).or_insert(Begun { at, epoch, forgiveness, above });
    }

    /// When an owner asked first.
    pub(crate) fn began_at(&self, owner: Owner) -> Option<Time> {
        self.begun.get(&owner).map(|begun| begun.at)
    }

    /// An owner was granted a lease. Returns when it began.
    pub(crate) fn granted(&mut self, lease: &Lease, acknowledged: BTreeMap<NodeId, u64>) -> Option<Epoch> {
        self.granted.insert(lease.owner, Granted { lease: lease.clone(), acknowledged });
        self.begun.get(&lease.owner).map(|begun| begun.epoch)
    }

    /// A user gets its turn.
    pub(crate) fn admitted(&mut self, hold: &Hold) -> (Result<(), String>, Result<(), String>) {
        let (lease, token) = (hold.lease(), hold.token());
        let Some(begun) = self.begun.get(&lease.owner).filter(|begun| begun.forgiveness == self.forgiveness) else {
            return (Ok(()), Ok(()));
        };
        let distinct = self.handed_out.entry(lease.name.clone()).or_default().insert(token);
        let rises = match begun.above.filter(|above| *above >= token) {
            Some(above) => Err(format!("{hold:?} was requested after {above} had been handed out")),
            None if !distinct => Err(format!("{hold:?} has a token that was handed out before")),
            None => Ok(()),
        };
        (rises, self.agree(lease))
    }

    /// A node votes again, and counts from there.
    pub(crate) fn recovered(&self, node: NodeId, counter: u64) -> Result<(), String> {
        let granted = self.leases.values().flatten().filter_map(|owner| self.granted.get(owner));
        let mut known = granted.filter(|granted| granted.acknowledged.contains_key(&node));
        match known.find(|granted| granted.lease.tokens.high().get() > counter) {
            Some(granted) => Err(format!("{node} votes again, counts from {counter}, and acknowledged {granted:?}")),
            None => Ok(()),
        }
    }

    fn agree(&mut self, lease: &Lease) -> Result<(), String> {
        let leases = self.leases.entry(lease.name.clone()).or_default();
        if leases.contains(&lease.owner) {
            return Ok(());
        }
        let Some(one) = self.granted.get(&lease.owner) else { return Ok(()) };
        for other in leases.iter().rev().take(LATEST).filter_map(|owner| self.granted.get(owner)) {
            for (node, ran) in &one.acknowledged {
                let earlier = other.acknowledged.get(node).map(|theirs| theirs < ran);
                if earlier.is_some_and(|earlier| earlier != (other.lease.tokens.high() < one.lease.tokens.high())) {
                    return Err(format!("{node} acknowledged in another order: {one:?} and {other:?}"));
                }
            }
        }
        leases.push(lease.owner);
        Ok(())
    }
}
