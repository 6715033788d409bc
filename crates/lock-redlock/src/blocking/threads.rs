//! The threads of the nodes, and what they share with the callers.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SendError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lock_core::node::BlockingQuorumNode;
use lock_core::{BackendError, Effect, ErrorKind, Moment, Operation};
use lock_host::SharedClock;

use crate::BACKEND;
use crate::quorum::{Outcome, Outgoing, Output, Quorum, RequestId, Verdict};

/// What the callers and the nodes' threads share.
#[derive(Debug)]
pub(super) struct Shared<N> {
    pub(super) nodes: Arc<[N]>,
    /// One for each node's thread.
    pub(super) jobs: Vec<Sender<Job<N>>>,
    pub(super) state: Arc<Mutex<State>>,
    /// Notified when nothing is in flight any more.
    pub(super) quiet: Arc<Condvar>,
    pub(super) clock: SharedClock,
}

/// The quorum, and the callers that wait for its verdicts.
#[derive(Debug)]
pub(super) struct State {
    pub(super) quorum: Quorum,
    pub(super) callers: BTreeMap<RequestId, Sender<Verdict>>,
}

impl<N> Shared<N> {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the quorum, and carries out its outputs. The quorum stays locked meanwhile, so that each node's thread
    /// gets its jobs in order.
    pub(super) fn update(self: &Arc<Self>, change: impl FnOnce(&mut State, Moment)) {
        let now = self.clock.now();
        let mut state = self.state();
        change(&mut state, now);
        while let Some(output) = state.quorum.poll() {
            match output {
                Output::Send(sent) => {
                    let (node, until) = (sent.node.0, Instant::now() + sent.within);
                    let job = Job { sent: Some(sent), until, shared: Arc::clone(self) };
                    let unsent = self.jobs[node].send(job).err().and_then(|SendError(mut job)| job.sent.take());
                    if let Some(sent) = unsent {
                        // Its thread has ended.
                        state.quorum.forget(now, sent);
                    }
                }
                // A pass that the quorum began has no caller.
                Output::Done(id, verdict) => {
                    if let Some(caller) = state.callers.remove(&id) {
                        _ = caller.send(verdict);
                    }
                }
            }
        }
        if state.quorum.is_quiet() {
            self.quiet.notify_all();
        }
    }

    /// Sends the rest of earlier requests, and waits until nothing is in flight, but no longer than `within`.
    pub(super) fn settle(self: &Arc<Self>, within: Duration) {
        self.update(|state, now| _ = state.quorum.send_held_back(now, within));
        let busy = |state: &mut State| !state.quorum.is_quiet();
        // A lock that a panic poisoned, or a timeout, ends the wait.
        _ = self.quiet.wait_timeout_while(self.state(), within, busy);
    }
}

/// Something for a node's thread to send.
#[derive(Debug)]
pub(super) struct Job<N> {
    /// Until its outcome is reported.
    sent: Option<Outgoing>,
    until: Instant,
    shared: Arc<Shared<N>>,
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
