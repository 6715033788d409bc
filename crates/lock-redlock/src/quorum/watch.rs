//! When the guard passes, what it saw last, and why nobody can be granted anything.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::node::Epoch;
use lock_core::{BackendError, Moment, Operation};

use super::Quorum;
use super::trouble::Silence;

/// How soon the guard looks again at nodes that abstain. Chosen: often enough to end a short dwell in time.
const PASS_EVERY: Duration = Duration::from_millis(250);
/// ... and at nodes that could not be reached.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A pass that takes longer has ended with the runtime that ran it.
const PASS_MAX: Duration = Duration::from_secs(10);

/// When the guard passes by, and what it has seen.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) under_way: Option<Moment>,
    pub(super) last_pass: Option<Moment>,
    /// Since when this client has seen each epoch abstain.
    pub(super) seen: BTreeMap<Epoch, Moment>,
    /// Why nobody may be granted anything, found by the last pass.
    pub(super) refusal: Option<BackendError>,
    /// How long until the first node may vote again, as the last pass knew.
    pub(super) wait: Option<Wait>,
    /// Whether no node was ever part of a deployment, when last seen.
    pub(super) is_blank: bool,
}

/// How long nodes abstain yet.
#[derive(Debug)]
pub(super) struct Wait {
    pub(super) since: Moment,
    pub(super) left: Duration,
    pub(super) notes: Notes,
}

/// Whether enough nodes have noted who abstains, for clients that come later.
#[derive(Debug)]
pub(super) enum Notes {
    Kept,
    /// They have not, for this reason where a node said why: so only a client that goes on can end the wait.
    Lacking(Option<BackendError>),
}

impl Wait {
    pub(super) fn left(&self, now: Moment) -> Duration {
        self.left.saturating_sub(now.since(self.since))
    }
}

impl Quorum {
    /// Whether it is time for a pass of the guard, of which there is one at a time.
    pub fn wants_guard(&self, now: Moment) -> bool {
        let recent = |at: Option<Moment>, within| at.is_some_and(|at| now.since(at) < within);
        let rest = if self.watch.wait.is_some() { PASS_EVERY } else { LOOK_EVERY };
        let busy = recent(self.watch.under_way, PASS_MAX) || recent(self.watch.last_pass, rest);
        let amiss = self.watch.refusal.is_some() || self.peers.iter().any(|peer| peer.epoch.is_none());
        !busy && amiss
    }

    /// Why there can be no grant now, if that is so.
    pub(super) fn objection(&self, now: Moment, operation: Operation) -> Option<BackendError> {
        if let Some(refusal) = &self.watch.refusal {
            return Some(refusal.clone());
        }
        let (voting, all) = (self.voters().count(), self.peers.len());
        (voting < self.majority()).then(|| {
            let silent = || self.peers.iter().filter(|peer| peer.epoch.is_none());
            let (wrong, others): (Vec<_>, Vec<_>) = silent().partition(|peer| peer.fault.is_some());
            let (abstain, away): (Vec<_>, Vec<_>) = others.into_iter().partition(|peer| peer.is_trusted());
            let silence = Silence { voting, all, majority: self.majority(), abstain, away, wrong };
            silence.error(operation, &self.watch, now)
        })
    }
}
