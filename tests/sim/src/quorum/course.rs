//! An errand that is being run, and what the rules have to know of it.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::node::{Ask, NodeState, Told};
use lock_core::station::{ActionId, Reply};
use lock_core::{Answer, Batch, Claim, Fenced, FencingToken, Lease, LockName, Moment, Owner};
use lock_redlock::quorum::{Acquire, Errand, Guard, Letter, NodeId, Quorum, Recovery, Release, Renew};

use super::words::Said;
use crate::client::Heard;
use crate::fault::{Fault, Tally};

/// What the rules have to know.
#[derive(Debug)]
pub(crate) enum Note {
    /// An owner asks.
    Began(LockName, Owner),
    /// It was granted, and these nodes counted as having acknowledged it, by what they ran. For some it is known what their
    /// own grant was.
    Granted { lease: Lease, acknowledged: BTreeMap<NodeId, u64>, grants: BTreeMap<NodeId, FencingToken> },
    /// It was not, and everything about that is over. These nodes answered its release.
    Failed { name: LockName, owner: Owner, told: BTreeSet<NodeId> },
}

/// Which connections letters take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Users = 0,
    Keeper = 1,
}

#[derive(Debug)]
pub(super) struct Course {
    errand: Running,
    pub(super) side: Side,
    /// How many letters have no outcome yet.
    pub(super) open: usize,
    /// By node: the token of its grant, and what it ran then.
    grants: BTreeMap<NodeId, (FencingToken, u64)>,
    acknowledged: BTreeMap<NodeId, u64>,
    /// The nodes that answered the release of this claim.
    told: BTreeSet<NodeId>,
    /// The nodes that vote, as they said.
    voters: BTreeSet<NodeId>,
    pub(super) over: Over,
}

/// Whether the verdict fell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    No,
    Granted,
    Failed,
}

/// Each kind of errand, with whom its verdict is for.
#[derive(Debug)]
enum Running {
    Acquire(Acquire, Claim, usize, ActionId),
    Release(Release, usize, ActionId),
    Renew(Renew, Option<Batch>),
    Guard(Guard),
}

impl Course {
    fn new(errand: Running, side: Side) -> Self {
        Self {
            errand,
            side,
            open: 0,
            grants: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            told: BTreeSet::new(),
            voters: BTreeSet::new(),
            over: Over::No,
        }
    }

    pub(super) fn acquire(errand: Acquire, claim: Claim, site: usize, id: ActionId) -> Self {
        Self::new(Running::Acquire(errand, claim, site, id), Side::Users)
    }

    pub(super) fn release(errand: Release, site: usize, id: ActionId) -> Self {
        Self::new(Running::Release(errand, site, id), Side::Users)
    }

    pub(super) fn renew(errand: Renew, batch: Batch) -> Self {
        Self::new(Running::Renew(errand, Some(batch)), Side::Keeper)
    }

    pub(super) fn guard(errand: Guard, side: Side) -> Self {
        Self::new(Running::Guard(errand), side)
    }

    /// Whose claim it is, if it is one.
    pub(super) fn owner(&self) -> Option<Owner> {
        match &self.errand {
            Running::Acquire(_, claim, ..) => Some(claim.owner),
            Running::Release(..) | Running::Renew(..) | Running::Guard(_) => None,
        }
    }

    pub(super) fn next_letter(&mut self) -> Option<Letter> {
        let letter = match &mut self.errand {
            Running::Acquire(errand, ..) => errand.next_letter(),
            Running::Release(errand, ..) => errand.next_letter(),
            Running::Renew(errand, _) => errand.next_letter(),
            Running::Guard(errand) => errand.next_letter(),
        }?;
        self.open += 1;
        Some(letter)
    }

    pub(super) fn heard(&mut self, quorum: &mut Quorum, now: Moment, letter: &Letter, said: Said) {
        self.open -= 1;
        self.write_down(letter, &said);
        match &mut self.errand {
            Running::Acquire(errand, ..) => errand.heard(quorum, now, letter, said.outcome),
            Running::Release(errand, ..) => errand.heard(quorum, now, letter, said.outcome),
            Running::Renew(errand, _) => errand.heard(quorum, now, letter, said.outcome),
            Running::Guard(errand) => errand.heard(quorum, now, letter, said.outcome),
        }
    }

    fn write_down(&mut self, letter: &Letter, said: &Said) {
        let node = letter.node;
        match (&said.outcome, &letter.ask) {
            (Ok(Told::Released(_)), Ask::Release(request)) if self.owner() == Some(request.owner) => {
                self.told.insert(node);
            }
            (_, _) if self.over != Over::No => {}
            (Ok(Told::Granted { token, .. }), _) => _ = self.grants.insert(node, (*token, said.ran)),
            (Ok(Told::Fenced(answers)), _) if answers[..] == [Fenced::Acknowledged] => {
                self.acknowledged.insert(node, said.ran);
            }
            (Ok(Told::View(view)), Ask::Look) if matches!(view.state, NodeState::Voting(_)) => {
                self.voters.insert(node);
            }
            (Ok(_) | Err(_), _) => {}
        }
    }

    /// How a node would come to vote by this pass: as the guard has to see it, from what it heard.
    pub(super) fn recovery(&self, node: NodeId, enough: usize) -> Recovery {
        let others = self.voters.iter().filter(|voter| **voter != node).count();
        if others >= enough { Recovery::FromOthers } else { Recovery::ByClock }
    }

    /// What this process hears of it, once the verdict fell.
    pub(super) fn take_verdict(&mut self, notes: &mut Vec<Note>, tally: &mut Tally) -> Option<Option<Heard>> {
        match &mut self.errand {
            Running::Acquire(errand, _, site, id) => {
                let (verdict, site, id) = (errand.take_verdict()?, *site, *id);
                self.over = Over::Failed;
                if let Ok(Answer::Granted { lease, .. }) = &verdict {
                    self.over = Over::Granted;
                    notes.push(self.granted(lease, tally));
                }
                Some(Some(Heard::Reply(site, id, Reply::Acquire(verdict))))
            }
            Running::Release(errand, site, id) => {
                Some(Some(Heard::Reply(*site, *id, Reply::Release(errand.take_verdict()?))))
            }
            Running::Renew(errand, batch) => {
                let verdict = errand.take_verdict()?;
                Some(batch.take().map(|batch| Heard::Renewal(batch, verdict)))
            }
            Running::Guard(errand) => {
                if let Ok(report) = errand.take_verdict()? {
                    for recovery in report.nodes.iter().filter_map(|node| node.recovery) {
                        tally.count(match recovery {
                            Recovery::FromOthers => Fault::Recovered,
                            Recovery::ByClock => Fault::RecoveredByClock,
                        });
                    }
                }
                Some(None)
            }
        }
    }

    /// A grant of exactly the lease's token counts as acknowledged.
    fn granted(&self, lease: &Lease, tally: &mut Tally) -> Note {
        if !self.acknowledged.is_empty() {
            tally.count(Fault::RoundTwo);
        }
        let same = self.grants.iter().filter(|(_, (token, _))| *token == lease.tokens.high());
        let at_once = same.map(|(node, (_, ran))| (*node, *ran));
        let acknowledged = self.acknowledged.iter().map(|(node, ran)| (*node, *ran)).chain(at_once).collect();
        let grants = self.grants.iter().map(|(node, (token, _))| (*node, *token)).collect();
        Note::Granted { lease: lease.clone(), acknowledged, grants }
    }

    /// What the rules have to know once everything is over.
    pub(super) fn end(self) -> Option<Note> {
        let Running::Acquire(_, claim, ..) = self.errand else { return None };
        let (name, owner, told) = (claim.name, claim.owner, self.told);
        (self.over == Over::Failed).then_some(Note::Failed { name, owner, told })
    }
}
