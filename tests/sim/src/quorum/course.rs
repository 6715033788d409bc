//! A request that is being run, and what the rules have to know about it.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::node::{Ask, NodeState, Told};
use lock_core::station::{ActionId, Reply};
use lock_core::{Answer, Batch, Claim, Fenced, FencingToken, Lease, LockName, Owner};
use lock_redlock::quorum::{NodeId, Outgoing, Recovery, Verdict};

use super::words::Said;
use crate::client::Heard;
use crate::fault::{Fault, Tally};

/// What the rules have to know.
#[derive(Debug)]
pub(crate) enum Record {
    /// An owner asks.
    Began(LockName, Owner),
    /// It was granted, and these nodes counted as having acknowledged it, according to what they ran. For some of them
    /// their own grant is known.
    Granted { lease: Lease, acknowledged: BTreeMap<NodeId, u64>, grants: BTreeMap<NodeId, FencingToken> },
    /// It was not granted, and nothing of it is in flight any more. These nodes answered its release.
    Failed { name: LockName, owner: Owner, told: BTreeSet<NodeId> },
}

impl Record {
    /// The same with other names of the nodes.
    pub(super) fn renamed(self, name: impl Fn(NodeId) -> NodeId) -> Self {
        match self {
            Self::Began(..) => self,
            Self::Granted { lease, acknowledged, grants } => Self::Granted {
                lease,
                acknowledged: acknowledged.into_iter().map(|(node, ran)| (name(node), ran)).collect(),
                grants: grants.into_iter().map(|(node, token)| (name(node), token)).collect(),
            },
            Self::Failed { name: lock, owner, told } => {
                Self::Failed { name: lock, owner, told: told.into_iter().map(name).collect() }
            }
        }
    }
}

/// Which connections requests take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Users = 0,
    Keeper = 1,
}

#[derive(Debug)]
pub(super) struct Course {
    of: Of,
    /// By node: the token of its grant, and what it ran then.
    grants: BTreeMap<NodeId, (FencingToken, u64)>,
    acknowledged: BTreeMap<NodeId, u64>,
    /// The nodes that answered the release of this claim.
    told: BTreeSet<NodeId>,
    /// The nodes that vote, according to their answers.
    voters: BTreeSet<NodeId>,
    pub(super) over: Over,
}

/// Whether there was a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    No,
    Granted,
    Failed,
}

/// What is run, and what its verdict is for.
#[derive(Debug)]
pub(super) enum Of {
    Claim(Claim, usize, ActionId),
    Release(usize, ActionId),
    Renewal(Batch),
    Pass,
}

impl Course {
    pub(super) fn new(of: Of) -> Self {
        Self {
            of,
            grants: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            told: BTreeSet::new(),
            voters: BTreeSet::new(),
            over: Over::No,
        }
    }

    /// Whose claim it is, if it is one.
    pub(super) fn owner(&self) -> Option<Owner> {
        match &self.of {
            Of::Claim(claim, ..) => Some(claim.owner),
            Of::Release(..) | Of::Renewal(_) | Of::Pass => None,
        }
    }

    pub(super) fn heard(&mut self, sent: &Outgoing, said: &Said) {
        let node = sent.node;
        match (&said.outcome, &sent.ask) {
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

    /// How a node would come to vote by this pass, as far as the pass can know from the answers.
    pub(super) fn recovery(&self, node: NodeId, enough: usize) -> Recovery {
        let others = self.voters.iter().filter(|voter| **voter != node).count();
        if others >= enough { Recovery::FromOthers } else { Recovery::ByClock }
    }

    /// What this process gets from it, now that there is a verdict.
    pub(super) fn done(&mut self, verdict: Verdict, records: &mut Vec<Record>, tally: &mut Tally) -> Option<Heard> {
        match (&self.of, verdict) {
            (Of::Claim(_, site, id), Verdict::Acquire(verdict)) => {
                let (site, id) = (*site, *id);
                self.over = Over::Failed;
                if let Ok(Answer::Granted { lease, .. }) = &verdict {
                    self.over = Over::Granted;
                    records.push(self.granted(lease, tally));
                }
                Some(Heard::Reply(site, id, Reply::Acquire(verdict)))
            }
            (Of::Release(site, id), Verdict::Release(verdict)) => {
                Some(Heard::Reply(*site, *id, Reply::Release(verdict)))
            }
            (Of::Renewal(batch), Verdict::Renew(verdict)) => Some(Heard::Renewal(batch.clone(), verdict)),
            (Of::Pass, Verdict::Pass(Ok(report))) => {
                for recovery in report.nodes.iter().filter_map(|node| node.recovery) {
                    tally.count(match recovery {
                        Recovery::FromOthers => Fault::Recovered,
                        Recovery::ByClock => Fault::RecoveredByClock,
                    });
                }
                None
            }
            (Of::Pass, Verdict::Pass(Err(_))) => None,
            (of, verdict) => unreachable!("{of:?} ended with {verdict:?}"),
        }
    }

    /// A grant of exactly the lease's token counts as acknowledged.
    fn granted(&self, lease: &Lease, tally: &mut Tally) -> Record {
        if !self.acknowledged.is_empty() {
            tally.count(Fault::RoundTwo);
        }
        let same = self.grants.iter().filter(|(_, (token, _))| *token == lease.tokens.high());
        let at_once = same.map(|(node, (_, ran))| (*node, *ran));
        let acknowledged = self.acknowledged.iter().map(|(node, ran)| (*node, *ran)).chain(at_once).collect();
        let grants = self.grants.iter().map(|(node, (token, _))| (*node, *token)).collect();
        Record::Granted { lease: lease.clone(), acknowledged, grants }
    }

    /// What the rules have to know once everything is over.
    pub(super) fn end(self) -> Option<Record> {
        let Of::Claim(claim, ..) = self.of else { return None };
        let (name, owner, told) = (claim.name, claim.owner, self.told);
        (self.over == Over::Failed).then_some(Record::Failed { name, owner, told })
    }
}
