//! Whether the nodes are what they should be: different servers, of this deployment, each the only one behind its address.
//! One that is not does not count, and is in nobody's way while a majority is left.

use std::collections::{BTreeMap, BTreeSet};

use lock_core::node::{Epoch, Membership, NodeState, Noted, RunId, View};
use lock_core::{BackendError, ErrorKind};

use super::super::peer::Peer;
use super::super::{NodeId, Quorum, refusal};
use super::{Guard, Purpose};

impl Guard {
    pub(super) fn check_identity(&mut self, quorum: &Quorum) -> Result<(), BackendError> {
        self.set_strangers_aside(quorum);
        // Of one server under two addresses, a pass that brings nodes back knows only later which of them is out of date.
        if !matches!(self.purpose, Purpose::Watch | Purpose::TakeOver(_)) {
            self.set_doubles_aside(quorum);
        }
        self.check_majority_is_left(quorum)
    }

    /// Those that belong to another deployment.
    pub(super) fn set_strangers_aside(&mut self, quorum: &Quorum) {
        for node in quorum.nodes() {
            let Ok(view) = &self.views[node.0] else { continue };
            if self.left_behind(quorum, view).is_some() {
                continue;
            }
            if let Err(error) = self.check_membership(quorum, node, view) {
                self.strangers.insert(node);
                self.views[node.0] = Err(error);
            }
        }
    }

    /// While strangers answer, a node that knows no deployment may be theirs. It is ours all the same where a majority votes
    /// here: then no other deployment has been moved to.
    pub(super) fn may_be_ours(&self, quorum: &Quorum, view: &View) -> bool {
        self.strangers.is_empty() || view.membership.is_some() || self.voters(quorum) >= quorum.majority()
    }

    fn voters(&self, quorum: &Quorum) -> usize {
        let ours = |view: &&View| view.votes() && view.membership.as_ref() == Some(&*quorum.membership);
        self.views.iter().flatten().filter(ours).map(|view| &view.run).collect::<BTreeSet<_>>().len()
    }

    /// Those that are reached under a second address. The first one counts.
    pub(super) fn set_doubles_aside(&mut self, quorum: &Quorum) {
        let mut runs: BTreeMap<RunId, &str> = BTreeMap::new();
        for (peer, answer) in quorum.peers.iter().zip(&mut self.views) {
            let Ok(view) = answer else { continue };
            let first = *runs.entry(view.run.clone()).or_insert(&peer.address);
            if first != peer.address {
                *answer = Err(one_server(first, &peer.address));
            }
        }
    }

    /// Whether the same server answered under an earlier address.
    pub(super) fn is_double(&self, node: NodeId) -> bool {
        let Ok(View { run, .. }) = &self.views[node.0] else { return false };
        self.views[..node.0].iter().flatten().any(|view| view.run == *run)
    }

    /// Who votes in an epoch after which another one began at its address.
    pub(super) fn superseded(&self, quorum: &Quorum) -> BTreeMap<NodeId, Epoch> {
        let votes = |(index, view): (usize, &Result<View, _>)| match view {
            Ok(View { state: NodeState::Voting(epoch), .. }) => Some((NodeId(index), *epoch)),
            Ok(_) | Err(_) => None,
        };
        let voting = self.views.iter().enumerate().filter_map(votes);
        voting.filter(|(node, epoch)| self.is_superseded(quorum, *node, *epoch)).collect()
    }

    /// Those that another server has taken the address of, or shares it with: they still vote as they did before the notes of
    /// the other one were read.
    pub(super) fn set_superseded_aside(&mut self, quorum: &Quorum) {
        for (node, epoch) in &self.suspects {
            let Ok(View { state, run, .. }) = &self.views[node.0] else { continue };
            if *state != NodeState::Voting(*epoch) {
                continue;
            }
            let address = &quorum.peers[node.0].address;
            let twin = |(peer, view): &(&Peer, &Result<View, _>)| {
                peer.address != *address && view.as_ref().is_ok_and(|view| view.run == *run)
            };
            let twin = quorum.peers.iter().zip(&self.views).find(twin);
            self.views[node.0] = Err(match twin {
                Some((other, _)) => one_server(&other.address, address),
                None => superseded(address),
            });
        }
    }

    /// Whether another epoch began at this address after this one, and no majority says that this one is the last.
    fn is_superseded(&self, quorum: &Quorum, node: NodeId, epoch: Epoch) -> bool {
        let notes = self.notes.get(&node).map(Vec::as_slice).unwrap_or_default();
        let (own, others): (Vec<&Noted>, Vec<&Noted>) = notes.iter().partition(|noted| noted.epoch == epoch);
        let began = own.iter().map(|noted| noted.age).max();
        let later = others.iter().map(|noted| noted.age).min();
        own.len() < quorum.majority() && later.is_some_and(|later| began.is_none_or(|began| later <= began))
    }

    /// Where strangers answer, what knows no deployment is not enough to go on with.
    pub(super) fn check_majority_is_left(&self, quorum: &Quorum) -> Result<(), BackendError> {
        let knows = |view: &&View| view.membership.is_some();
        if let Some(stranger) = self.strangers.first()
            && let Err(error) = &self.views[stranger.0]
            && self.views.iter().flatten().filter(knows).count() < quorum.majority()
        {
            return Err(error.clone());
        }
        let wrong: Vec<_> = self.views.iter().filter_map(|view| view.as_ref().err()).filter(is_wrong).collect();
        match wrong.first() {
            Some(error) if wrong.len() >= quorum.blocking() => Err((*error).clone()),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn check_nobody_was_here(&self, quorum: &Quorum) -> Result<(), BackendError> {
        for (peer, view) in quorum.peers.iter().zip(&self.views) {
            let view = view.as_ref().map_err(Clone::clone)?;
            if view.membership.is_some() {
                let told = format!("{} knows this deployment already: it is not new", peer.address);
                return Err(refusal(told, "wait for its nodes to vote; look with: leasehold redlock status URL"));
            }
        }
        Ok(())
    }

    fn check_membership(&self, quorum: &Quorum, node: NodeId, view: &View) -> Result<(), BackendError> {
        let address = &quorum.peers[node.0].address;
        match (&view.membership, &view.marked_for, &self.purpose) {
            (Some(theirs), _, Purpose::Move(to)) if theirs == &**to => Ok(()),
            (Some(theirs), _, _) => compare(&quorum.membership, address, theirs),
            // Whoever declares that all is new knows of no other.
            (None, _, Purpose::Found) | (None, None, _) => Ok(()),
            (None, Some(theirs), _) => compare(&quorum.membership, address, theirs),
        }
    }
}

fn one_server(first: &str, second: &str) -> BackendError {
    refusal(format!("{first} and {second} are one and the same server"), "name independent servers, each once")
}

fn superseded(address: &str) -> BackendError {
    let remedy =
        "stop the server that is not to be used, see that the address leads to the other one only, and restart that";
    refusal(format!("{address} leads to another server than it did last"), remedy)
}

/// Whether it will not pass by itself.
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
        return Err(refusal(told, format!("write ?max_ttl={written} in the URL of every client")));
    }
    Ok(())
}
