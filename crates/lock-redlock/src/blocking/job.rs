//! What the threads of the nodes do.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use lock_core::node::BlockingQuorumNode;
use lock_core::{BackendError, Effect, ErrorKind, Operation};

use super::Shared;
use crate::BACKEND;
use crate::quorum::{Outcome, Outgoing};

/// Something for a node's thread to send.
#[derive(Debug)]
pub(super) struct Job<N> {
    /// Until its outcome is reported.
    pub(super) sent: Option<Outgoing>,
    pub(super) until: Instant,
    pub(super) shared: Arc<Shared<N>>,
}

/// A node's thread: one job after the other, until all senders are gone.
pub(super) fn serve<N: BlockingQuorumNode>(node: &N, jobs: &Receiver<Job<N>>) {
    while let Ok(job) = jobs.recv() {
        let outcome = job.ask(node);
        job.report(outcome);
    }
}

impl<N: BlockingQuorumNode> Job<N> {
    fn ask(&self, node: &N) -> Outcome {
        let left = self.until.saturating_duration_since(Instant::now());
        match &self.sent {
            Some(sent) if !left.is_zero() => node.ask(&sent.ask, left),
            Some(_) | None => Err(not_sent()),
        }
    }

    fn report(mut self, outcome: Outcome) {
        if let Some(sent) = self.sent.take() {
            self.shared.update(|state, now| state.quorum.heard(now, sent, outcome));
        }
    }
}

/// A job has no outcome if its thread panicked.
impl<N> Drop for Job<N> {
    fn drop(&mut self) {
        if let Some(sent) = self.sent.take() {
            self.shared.update(|state, now| state.quorum.forget(now, sent));
        }
    }
}

/// Earlier jobs took all the time; nothing was sent.
fn not_sent() -> BackendError {
    let told = "the node answers too slowly for the number of requests";
    BackendError::new(BACKEND, Operation::Acquire, ErrorKind::Unreachable, Effect::None, told)
}
