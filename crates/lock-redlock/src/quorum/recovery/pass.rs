//! What one pass knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Membership, NodeState, Noted, View};
use lock_core::{BackendError, Moment};

use super::super::node::NodeId;
use super::super::nodes::Nodes;
use super::super::trouble::refusal;
use super::report::{Recovery, Report};

/// What a recovery pass is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To see that all nodes vote that may.
    Watch,
    /// To only look.
    Look,
    /// To declare that the deployment is new: no node ever belonged to one, and nothing has to be waited for.
    Init,
    /// To have these nodes belong to another deployment from now on. They abstain as if they had forgotten.
    Move(Arc<Membership>),
    /// To watch, and to have the nodes that nobody used belong to this deployment from now on, where it follows on the one
    /// given: so many of that one's nodes were moved that it cannot go on.
    TakeOver(Arc<Membership>),
}

/// One recovery pass.
#[derive(Debug)]
pub(in super::super) struct Pass {
    pub(super) purpose: Purpose,
    pub(super) epochs: Vec<Epoch>,
    within: Duration,
    pub(super) phase: Phase,
    pub(super) looked_at: Moment,
    pub(super) open: usize,
    pub(super) views: Vec<Result<View, BackendError>>,
    /// The nodes whose view came so late that the others' may be out of date.
    pub(super) late: BTreeSet<NodeId>,
    /// The nodes that answered and belong to another deployment.
    pub(super) strangers: BTreeSet<NodeId>,
    /// The nodes that vote in an epoch that is not the last one of their address.
    pub(super) suspects: BTreeMap<NodeId, Epoch>,
    /// What the nodes have noted of each.
    pub(super) notes: BTreeMap<NodeId, Vec<Noted>>,
    /// Why a node could not note anything.
    pub(super) note_failure: Option<BackendError>,
    pub(super) dwells: BTreeMap<NodeId, Dwell>,
    pub(super) recoveries: BTreeMap<NodeId, Recovery>,
    pub(super) verdict: Option<Result<Report, BackendError>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Look,
    Mark,
    Note,
    Confirm,
    Install,
    Over,
}

/// How long a node has to abstain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dwell {
    pub(super) epoch: Epoch,
    pub(super) lasts: Duration,
    pub(super) longest: Duration,
    pub(super) recovery: Recovery,
}

impl Pass {
    pub(super) fn new(nodes: &Nodes, now: Moment, purpose: Purpose, within: Duration, epochs: Vec<Epoch>) -> Self {
        Self {
            purpose,
            epochs,
            within,
            phase: Phase::Look,
            looked_at: now,
            open: 0,
            views: nodes.ids().map(|_| Err(refusal("it was not asked", "ask again"))).collect(),
            late: BTreeSet::new(),
            strangers: BTreeSet::new(),
            suspects: BTreeMap::new(),
            notes: BTreeMap::new(),
            note_failure: None,
            dwells: BTreeMap::new(),
            recoveries: BTreeMap::new(),
            verdict: None,
        }
    }

    pub(super) fn send(&mut self, nodes: &mut Nodes, node: NodeId, ask: Ask) {
        nodes.send(node, ask, self.within);
        self.open += 1;
    }

    pub(super) fn abstaining(&self) -> Vec<(NodeId, Epoch)> {
        let abstains = |(index, view): (usize, &Result<View, BackendError>)| match view {
            Ok(View { state: NodeState::Abstaining { epoch, .. }, .. }) => Some((NodeId(index), *epoch)),
            Ok(_) | Err(_) => None,
        };
        self.views.iter().enumerate().filter_map(abstains).collect()
    }

    /// The verdict, as soon as it is certain.
    pub(in super::super) fn take_verdict(&mut self) -> Option<Result<Report, BackendError>> {
        self.verdict.take()
    }
}
