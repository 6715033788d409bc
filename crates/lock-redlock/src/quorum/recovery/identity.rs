//! Whether the nodes are what they should be: different servers, of this deployment, each the only one behind its
//! address. Any other node does not count, and stops nothing while a majority is left.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::node::{Epoch, Membership, NodeState, Record, RunId, View};
use lock_core::{BackendError, ErrorKind};

use super::super::node::Node;
use super::super::nodes::Nodes;
use super::super::outgoing::NodeId;
use super::super::rule::Rule;
use super::super::trouble::refusal;
use super::{Pass, Purpose};

impl Pass {
    pub(super) fn check_identity(&mut self, nodes: &Nodes) -> Result<(), BackendError> {
        self.set_strangers_aside(nodes);
        // If one server has two addresses, a pass that restores nodes learns only later which address is out of date.
        if !matches!(self.purpose, Purpose::Watch | Purpose::TakeOver(_)) {
            self.set_doubles_aside(nodes);
        }
        self.check_majority_is_left(nodes)
    }

    /// Excludes nodes that belong to another deployment.
    pub(super) fn set_strangers_aside(&mut self, nodes: &Nodes) {
        for node in nodes.ids() {
            let Ok(view) = &self.views[node.0] else { continue };
            if self.left_behind(nodes, view).is_some() {
                continue;
            }
            if let Err(error) = self.check_membership(nodes, node, view) {
                // A mark does not say which move led to its list: it may be a later one.
                self.strangers.insert(node, if view.membership.is_some() { view.moves } else { u64::MAX });
                self.views[node.0] = Err(error);
            }
        }
    }

    /// While strangers answer, a node that remembers no deployment may be theirs. If a majority votes here it is ours: then this
    /// deployment was not moved.
    pub(super) fn may_be_ours(&self, nodes: &Nodes, view: &View) -> bool {
        self.strangers.is_empty()
            || self.remembers(nodes, view)
            || self.voters(nodes) >= nodes.majority()
            || !nodes.rules.keep(Rule::BlankMayBeTheirs)
    }

    /// Whether the node knows to which deployment it belongs. What one that restarted has may be older than a move of which a
    /// stranger knows: then it is as good as blank.
    pub(super) fn remembers(&self, nodes: &Nodes, view: &View) -> bool {
        let is_outdated = || {
            let (ours, keep) = (self.moves(nodes), nodes.rules.keep(Rule::OutdatedIsBlank));
            keep && self.strangers.values().any(|moves| *moves > ours)
        };
        view.membership.as_ref().is_some_and(|own| view.votes() || *own != *nodes.membership || !is_outdated())
    }

    pub(super) fn voters(&self, nodes: &Nodes) -> usize {
        let ours = |view: &&View| view.votes() && view.membership.as_ref() == Some(&*nodes.membership);
        self.views.iter().flatten().filter(ours).map(|view| &view.run).collect::<BTreeSet<_>>().len()
    }

    /// Excludes servers that are reached under a second address. The first address counts.
    pub(super) fn set_doubles_aside(&mut self, nodes: &Nodes) {
        let mut runs: BTreeMap<RunId, &str> = BTreeMap::new();
        for (state, answer) in nodes.all.iter().zip(&mut self.views) {
            let Ok(view) = answer else { continue };
            let first = *runs.entry(view.run.clone()).or_insert(&state.address);
            if first != state.address {
                *answer = Err(one_server(first, &state.address));
            }
        }
    }

    /// Whether the same server answered under an earlier address.
    pub(super) fn is_double(&self, node: NodeId) -> bool {
        let Ok(View { run, .. }) = &self.views[node.0] else { return false };
        self.views[..node.0].iter().flatten().any(|view| view.run == *run)
    }

    /// The nodes that vote in an epoch after which another one began at their address.
    pub(super) fn superseded(&self, nodes: &Nodes) -> BTreeMap<NodeId, Epoch> {
        let votes = |(index, view): (usize, &Result<View, _>)| match view {
            Ok(View { state: NodeState::Voting(epoch), .. }) => Some((NodeId(index), *epoch)),
            Ok(_) | Err(_) => None,
        };
        let voting = self.views.iter().enumerate().filter_map(votes);
        voting.filter(|(node, epoch)| self.is_superseded(nodes, *node, *epoch)).collect()
    }

    /// Excludes nodes whose address another server has taken or shares: they still vote in the same epoch after the records were
    /// read.
    pub(super) fn set_superseded_aside(&mut self, nodes: &Nodes) {
        for (node, epoch) in &self.suspects {
            let Ok(View { state, run, .. }) = &self.views[node.0] else { continue };
            if *state != NodeState::Voting(*epoch) {
                continue;
            }
            let address = &nodes.all[node.0].address;
            let twin = |(state, view): &(&Node, &Result<View, _>)| {
                state.address != *address && view.as_ref().is_ok_and(|view| view.run == *run)
            };
            let twin = nodes.all.iter().zip(&self.views).find(twin);
            self.views[node.0] = Err(match twin {
                Some((other, _)) => one_server(&other.address, address),
                None => superseded(address),
            });
        }
    }

    /// Whether another epoch began at this address after this one, and no majority says that this one is the last.
    fn is_superseded(&self, nodes: &Nodes, node: NodeId, epoch: Epoch) -> bool {
        let records = self.records.get(&node).map(Vec::as_slice).unwrap_or_default();
        let (own, others): (Vec<&Record>, Vec<&Record>) = records.iter().partition(|recorded| recorded.epoch == epoch);
        let began = own.iter().map(|recorded| recorded.age).max();
        let later = others.iter().map(|recorded| recorded.age).min();
        own.len() < nodes.majority() && later.is_some_and(|later| began.is_none_or(|began| later <= began))
    }

    /// While strangers answer, nodes that remember no deployment do not count towards the majority that is needed to continue.
    pub(super) fn check_majority_is_left(&self, nodes: &Nodes) -> Result<(), BackendError> {
        let knows = |view: &&View| self.remembers(nodes, view) || !nodes.rules.keep(Rule::BlankMayBeTheirs);
        if let Some((stranger, _)) = self.strangers.first_key_value()
            && let Err(error) = &self.views[stranger.0]
            && self.views.iter().flatten().filter(knows).count() < nodes.majority()
        {
            return Err(error.clone());
        }
        let wrong: Vec<_> = self.views.iter().filter_map(|view| view.as_ref().err()).filter(is_wrong).collect();
        match wrong.first() {
            Some(error) if wrong.len() >= nodes.overlap() => Err((*error).clone()),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn check_nobody_was_here(&self, nodes: &Nodes) -> Result<(), BackendError> {
        for (state, view) in nodes.all.iter().zip(&self.views) {
            let view = view.as_ref().map_err(Clone::clone)?;
            if view.membership.is_some() {
                let told = format!("{} already knows this deployment, so it is not new", state.address);
                return Err(refusal(told, "wait for its nodes to vote; to check, run: leasehold redlock status URL"));
            }
        }
        Ok(())
    }

    fn check_membership(&self, nodes: &Nodes, node: NodeId, view: &View) -> Result<(), BackendError> {
        let address = &nodes.all[node.0].address;
        match (&view.membership, &view.marked_for, &self.purpose) {
            (Some(theirs), _, Purpose::Move(to)) | (None, Some(theirs), Purpose::Move(to)) if theirs == &**to => Ok(()),
            (Some(theirs), _, _) => compare(&nodes.membership, address, theirs),
            // A deployment that is declared new overrides other marks.
            (None, _, Purpose::Init) | (None, None, _) => Ok(()),
            (None, Some(theirs), _) => compare(&nodes.membership, address, theirs),
        }
    }
}

fn one_server(first: &str, second: &str) -> BackendError {
    refusal(format!("{first} and {second} are the same server"), "name independent servers, each once")
}

fn superseded(address: &str) -> BackendError {
    let remedy = "stop the wrong server, make sure that the address leads only to the other one, and restart that one";
    refusal(format!("{address} now leads to a different server"), remedy)
}

/// Whether an operator has to act.
fn is_wrong(error: &&BackendError) -> bool {
    error.kind() == ErrorKind::Config
}

fn compare(ours: &Membership, address: &str, theirs: &Membership) -> Result<(), BackendError> {
    if theirs.members != ours.members {
        let told = format!(
            "{address} belongs to a deployment of other nodes: {}; the URL names {}",
            theirs.members.join(", "),
            ours.members.join(", ")
        );
        return Err(refusal(told, "if the deployment was moved, use its new URL; otherwise correct this one"));
    }
    if theirs.max_ttl != ours.max_ttl {
        let (theirs, ours) = (humantime::format_duration(theirs.max_ttl), humantime::format_duration(ours.max_ttl));
        let told = format!("this deployment's max_ttl is {theirs}, and the URL says {ours}");
        let written = theirs.to_string().replace(' ', "");
        return Err(refusal(told, format!("set ?max_ttl={written} in the URL of every client")));
    }
    Ok(())
}
