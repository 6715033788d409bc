//! The message that says why nothing can be granted at the moment.

use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Moment, Operation};

use super::node::Node;
use super::nodes::Nodes;
use super::watch::{Records, Wait, Watch};
use crate::BACKEND;

impl Nodes {
    /// Why nothing can be granted now, if so.
    pub(super) fn objection(&self, now: Moment, operation: Operation) -> Option<BackendError> {
        if let Some(refusal) = &self.watch.refusal {
            return Some(refusal.clone());
        }
        let (voting, all) = (self.voters().count(), self.all.len());
        (voting < self.majority()).then(|| {
            let silent = || self.all.iter().filter(|node| node.epoch.is_none());
            let (wrong, others): (Vec<_>, Vec<_>) = silent().partition(|node| node.fault.is_some());
            let (abstain, away): (Vec<_>, Vec<_>) = others.into_iter().partition(|node| node.is_trusted());
            let silence = Silence { voting, all, majority: self.majority(), abstain, away, wrong };
            silence.error(operation, &self.watch, now)
        })
    }
}

/// Why there are too few votes.
struct Silence<'a> {
    voting: usize,
    all: usize,
    majority: usize,
    abstain: Vec<&'a Node>,
    away: Vec<&'a Node>,
    /// The nodes that do not count because they are misconfigured.
    wrong: Vec<&'a Node>,
}

impl Silence<'_> {
    fn error(&self, operation: Operation, watch: &Watch, now: Moment) -> BackendError {
        let Self { abstain, away, wrong, .. } = self;
        let wait = watch.wait.as_ref().filter(|_| !abstain.is_empty());
        let kind = if abstain.is_empty() { ErrorKind::Unreachable } else { ErrorKind::Unavailable };
        let remedy = if watch.is_blank {
            "wait; only if this deployment has never granted a lock, run: leasehold redlock init URL"
        } else if away.is_empty() && wrong.is_empty() {
            "wait until they vote again"
        } else {
            "check that a majority of the nodes runs"
        };
        let error = BackendError::new(BACKEND, operation, kind, Effect::None, self.told(wait)).with_remedy(remedy);
        match wait {
            // An upper bound, as later clients can know it, too.
            Some(wait @ Wait { records: Records::Kept, .. }) => {
                error.with_end(Duration::from_secs(wait.left(now).as_secs() + 1))
            }
            Some(Wait { records: Records::Lacking(_), .. }) | None => error,
        }
    }

    fn told(&self, wait: Option<&Wait>) -> String {
        let Self { voting, all, majority, abstain, away, wrong } = self;
        let mut told = format!("{voting} of {all} nodes vote, {majority} are needed");
        if !away.is_empty() {
            told += &format!("; not answering: {}", listed(away));
        }
        for node in wrong {
            let why = node.fault.as_ref().map_or_else(String::new, |fault| format!(" ({fault})"));
            told += &format!("; not counted: {}{why}", node.address);
        }
        // Last, as the error adds how long that lasts.
        if !abstain.is_empty() {
            told += &format!("; abstaining: {}, until what they may have granted before is over", listed(abstain));
        }
        if let Some(Wait { records: Records::Lacking(why), .. }) = wait {
            told += &unknown_end(why.as_ref());
        }
        told
    }
}

fn listed(nodes: &[&Node]) -> String {
    nodes.iter().map(|node| node.address.as_str()).collect::<Vec<_>>().join(", ")
}

fn unknown_end(why: Option<&BackendError>) -> String {
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    format!(" (too few nodes could record the time{why}; only a client that keeps running can see the end)")
}
