//! Whether the nodes are what they should be: different servers, of this deployment.

use std::collections::BTreeMap;

use lock_core::node::{Membership, RunId, View};
use lock_core::{BackendError, ErrorKind};

use super::super::{Quorum, refusal};
use super::{Guard, Purpose};

impl Guard {
    /// All that answer are different servers of this deployment. One that is not does not vote; it is in nobody's way where
    /// others know the deployment and a majority is as it should be.
    pub(super) fn check_identity(&mut self, quorum: &Quorum) -> Result<(), BackendError> {
        let is_first = quorum.watch.last_pass.is_none();
        let mut runs: BTreeMap<RunId, &str> = BTreeMap::new();
        let mut stranger = None;
        for (peer, answer) in quorum.peers.iter().zip(&mut self.views) {
            let view = match answer {
                Ok(view) => view,
                Err(error) if is_first && self.purpose != Purpose::Look && error.kind() == ErrorKind::Config => {
                    return Err(error.clone());
                }
                Err(_) => continue,
            };
            if let Some(other) = runs.insert(view.run.clone(), &peer.address) {
                let told = format!("{other} and {} are one and the same server", peer.address);
                return Err(refusal(told, "name independent servers, each once"));
            }
            let moved_before = matches!(&self.purpose, Purpose::Move(to) if view.membership.as_ref() == Some(to));
            if !moved_before && let Err(error) = check_membership(&quorum.membership, &peer.address, view) {
                stranger = Some(error.clone());
                *answer = Err(error);
            }
        }
        let known = self.views.iter().flatten().any(|view| view.membership.is_some());
        let enough = self.views.iter().flatten().count() >= quorum.majority();
        stranger.filter(|_| !known || !enough).map_or(Ok(()), Err)
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
}

fn check_membership(ours: &Membership, address: &str, view: &View) -> Result<(), BackendError> {
    let Some(theirs) = &view.membership else { return Ok(()) };
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
