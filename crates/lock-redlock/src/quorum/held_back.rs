//! Requests that are held back from a node until it has answered a claim for the same lock.
//!
//! Per node and lock the order is claim, release, next claim. A release that is sent while its claim is under way may
//! overtake it over a newer connection, and the node would then grant the claim to an owner that is gone. So the release
//! waits for the claim's outcome, and later claims for that lock wait for the release.

use std::collections::BTreeMap;

use lock_core::{LockName, Moment};

use super::outgoing::Outgoing;

/// What is held back from one node.
#[derive(Debug, Default)]
pub(super) struct HeldBack {
    locks: BTreeMap<LockName, Behind>,
}

/// What waits behind a claim: its release at first, and then what came later.
#[derive(Debug)]
struct Behind {
    /// When the claims before the last of them have their outcomes, at the latest.
    until: Moment,
    requests: Vec<Held>,
}

/// A request that was not sent yet.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) outgoing: Outgoing,
    /// When it must have an outcome.
    pub(super) until: Moment,
}

impl HeldBack {
    /// Until when a request for this lock waits at most, if some are held back already.
    pub(super) fn until(&self, name: &LockName) -> Option<Moment> {
        self.locks.get(name).map(|behind| behind.until)
    }

    /// Adds a request for this lock. The claim that it follows has an outcome by then.
    pub(super) fn push(&mut self, name: LockName, until: Moment, held: Held) {
        let behind = self.locks.entry(name).or_insert_with(|| Behind { until, requests: Vec::new() });
        behind.until = behind.until.max(until);
        behind.requests.push(held);
    }

    /// The requests for this lock, in order.
    pub(super) fn take(&mut self, name: &LockName) -> Vec<Held> {
        // Nearly always nothing is held back.
        if self.locks.is_empty() {
            return Vec::new();
        }
        self.locks.remove(name).map_or_else(Vec::new, |behind| behind.requests)
    }

    /// All requests, those for one lock in order.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Held> + use<> {
        std::mem::take(&mut self.locks).into_values().flat_map(|behind| behind.requests)
    }
}
