//! Requests that are held back from a node until it has answered a claim for the same lock.
//!
//! Per node and lock the order is claim, release, next claim. A release that is sent while its claim is in flight may
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
    /// By when all claims that these requests wait for have their outcomes.
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
    /// By when the held-back requests for this lock are sent, if there are any.
    pub(super) fn until(&self, name: &LockName) -> Option<Moment> {
        self.locks.get(name).map(|behind| behind.until)
    }

    /// Holds back a request for this lock. The claim before it has an outcome by `until`.
    pub(super) fn push(&mut self, name: LockName, until: Moment, held: Held) {
        let behind = self.locks.entry(name).or_insert_with(|| Behind { until, requests: Vec::new() });
        behind.until = behind.until.max(until);
        behind.requests.push(held);
    }

    /// The requests for this lock, in order.
    pub(super) fn take(&mut self, name: &LockName) -> Vec<Held> {
        // The usual case, without a look-up.
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
