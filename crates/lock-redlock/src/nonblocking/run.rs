//! Runs one request on tokio: sends what the quorum wants sent, and reports the outcomes.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{BoxFuture, select};
use lock_core::node::AsyncQuorumNode;
use lock_core::{BackendError, Effect, ErrorKind};
use lock_host::SharedClock;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::quorum::{Outcome, Outgoing, Output, Quorum, Request, RequestId, Verdict};
use crate::{BACKEND, GRACE};

#[derive(Debug)]
pub(super) struct Shared<N> {
    pub(super) nodes: Vec<N>,
    pub(super) common: Arc<Common>,
    pub(super) clock: SharedClock,
}

/// What the client's side and the keeper's side share.
#[derive(Debug)]
pub(super) struct Common {
    state: Mutex<State>,
    /// Notified when nothing is in flight any more.
    quiet: Notify,
    /// Notified when a run has got the verdict of another run's request.
    told: Notify,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) quorum: Quorum,
    /// Requests of which a part is held back behind another request. The run of that one may get their verdicts.
    elsewhere: BTreeMap<RequestId, Option<Verdict>>,
}

impl Common {
    pub(super) fn new(quorum: Quorum) -> Self {
        let state = Mutex::new(State { quorum, elsewhere: BTreeMap::new() });
        Self { state, quiet: Notify::new(), told: Notify::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing is in flight.
    pub(super) async fn settled(&self) {
        loop {
            let quiet = self.quiet.notified();
            if self.state().quorum.is_quiet() {
                return;
            }
            quiet.await;
        }
    }

    /// Passes a verdict to the run of its request. A pass that the quorum began has none.
    fn tell(&self, state: &mut State, id: RequestId, verdict: Verdict) {
        if let Some(waiting) = state.elsewhere.get_mut(&id) {
            *waiting = Some(verdict);
            self.told.notify_waiters();
        }
    }
}

/// A request that is being run, and what it sent to the nodes: for itself, and for others that were held back behind it.
pub(super) struct Run<N> {
    shared: Arc<Shared<N>>,
    id: RequestId,
    verdict: Option<Verdict>,
    /// Whether a part of it is held back, so that another run may get its verdict.
    is_told_elsewhere: bool,
    /// In the order of the outputs: each node has to receive its requests in this order.
    in_flight: Vec<InFlight>,
    /// Rings when the time of a request is over. It is set once nothing is ready.
    alarm: Option<Pin<Box<Sleep>>>,
}

/// A request to a node.
struct InFlight {
    sent: Outgoing,
    until: Instant,
    outcome: BoxFuture<'static, Outcome>,
}

impl<N: AsyncQuorumNode> Run<N> {
    fn new(shared: Arc<Shared<N>>, id: RequestId) -> Self {
        Self { shared, id, verdict: None, is_told_elsewhere: false, in_flight: Vec::new(), alarm: None }
    }

    pub(super) fn begin(shared: Arc<Shared<N>>, request: Request, within: Duration) -> Self {
        let now = shared.clock.now();
        let mut state = shared.common.state();
        let id = state.quorum.begin(now, request, within);
        let mut run = Self::new(Arc::clone(&shared), id);
        run.take_outputs(&mut state);
        run
    }

    /// Sends what is held back and what nodes have not confirmed, whatever it belongs to.
    pub(super) fn of_held_back(shared: Arc<Shared<N>>, within: Duration) -> Self {
        let now = shared.clock.now();
        let mut state = shared.common.state();
        let id = state.quorum.send_held_back(now, within);
        let mut run = Self::new(Arc::clone(&shared), id);
        run.take_outputs(&mut state);
        run
    }

    /// The verdict, or none if the request ended without one.
    pub(super) async fn verdict(&mut self) -> Option<Verdict> {
        while self.verdict.is_none() {
            if self.is_told_elsewhere {
                self.go_on_or_be_told().await;
            } else if self.in_flight.is_empty() {
                return None;
            } else {
                self.go_on().await;
            }
        }
        self.verdict.take()
    }

    /// The same as [`go_on`](Self::go_on) for a request of which a part is held back: another run may get its verdict.
    async fn go_on_or_be_told(&mut self) {
        let common = Arc::clone(&self.shared.common);
        let told = pin!(common.told.notified());
        self.verdict = common.state().elsewhere.get_mut(&self.id).and_then(Option::take);
        if self.verdict.is_some() {
            return;
        }
        if self.in_flight.is_empty() {
            told.await;
        } else {
            select(told, pin!(self.go_on())).await;
        }
    }

    pub(super) async fn finish(mut self) {
        while !self.in_flight.is_empty() {
            self.go_on().await;
        }
    }

    /// Whether slower nodes have not answered.
    pub(super) fn is_unfinished(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Waits for outcomes, and reports them to the quorum.
    ///
    /// # Cancel safety
    /// Nothing is taken before the outcomes are there.
    async fn go_on(&mut self) {
        let heard = poll_fn(|cx| self.poll_heard(cx)).await;
        let shared = Arc::clone(&self.shared);
        let now = shared.clock.now();
        let mut state = shared.common.state();
        for (sent, outcome) in heard {
            state.quorum.heard(now, sent, outcome);
        }
        self.take_outputs(&mut state);
    }

    /// Sends what the quorum wants sent: for this request, and for others that were held back until one of its outcomes.
    fn take_outputs(&mut self, state: &mut State) {
        let begun = Instant::now();
        while let Some(output) = state.quorum.poll() {
            match output {
                Output::Send(sent) => {
                    let (shared, node) = (Arc::clone(&self.shared), sent.node.0);
                    let (ask, within) = (sent.ask.clone(), sent.within);
                    let outcome = Box::pin(async move { shared.nodes[node].ask(&ask, within).await });
                    self.in_flight.push(InFlight { until: begun + within + GRACE, sent, outcome });
                }
                Output::Done(id, verdict) if id == self.id => self.verdict = Some(verdict),
                Output::Done(id, verdict) => self.shared.common.tell(state, id, verdict),
            }
        }
        if self.verdict.is_none() && !self.is_told_elsewhere {
            let own = self.in_flight.iter().filter(|in_flight| in_flight.sent.request == self.id).count();
            if own < state.quorum.open(self.id) {
                self.is_told_elsewhere = true;
                state.elsewhere.insert(self.id, None);
            }
        }
        if state.quorum.is_quiet() {
            self.shared.common.quiet.notify_waiters();
        }
    }

    /// All outcomes that are ready, at least one. Not `FuturesUnordered`: after it has polled everything, it wakes its task once
    /// more. The client's driver holds many of these and would yield after two of them, so requests that could leave in one
    /// write would leave in many.
    fn poll_heard(&mut self, cx: &mut Context<'_>) -> Poll<Vec<(Outgoing, Outcome)>> {
        let mut heard = Vec::new();
        let mut index = 0;
        while let Some(InFlight { outcome, .. }) = self.in_flight.get_mut(index) {
            match outcome.as_mut().poll(cx) {
                Poll::Ready(outcome) => heard.push((self.in_flight.remove(index).sent, outcome)),
                Poll::Pending => index += 1,
            }
        }
        if heard.is_empty() { self.poll_alarm(cx).map(|()| self.take_overdue()) } else { Poll::Ready(heard) }
    }

    /// Whether the time of a request is over. One alarm serves all of them: it is set once, and again if it rang early.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(first) = self.in_flight.iter().map(|in_flight| in_flight.until).min() else { return Poll::Pending };
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(first)));
        while alarm.as_mut().poll(cx).is_ready() {
            if alarm.deadline() >= first {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(first);
        }
        if alarm.deadline() > first {
            alarm.as_mut().reset(first);
            return alarm.as_mut().poll(cx);
        }
        Poll::Pending
    }

    /// Ends the requests whose time is over. They may still take effect.
    fn take_overdue(&mut self) -> Vec<(Outgoing, Outcome)> {
        let now = Instant::now();
        let overdue: Vec<_> = self.in_flight.extract_if(.., |in_flight| in_flight.until <= now).collect();
        overdue.into_iter().map(|InFlight { sent, .. }| self.no_answer(sent)).collect()
    }

    fn no_answer(&self, sent: Outgoing) -> (Outgoing, Outcome) {
        let (address, within) = (self.shared.nodes[sent.node.0].address(), humantime::format_duration(sent.within));
        let told = format!("{address} did not answer within {within}");
        let error = BackendError::new(BACKEND, sent.ask.operation(), ErrorKind::Timeout, Effect::Unknown, told);
        (sent, Err(error))
    }
}

/// A run that is dropped, or whose runtime has ended, hears no more outcomes.
impl<N> Drop for Run<N> {
    fn drop(&mut self) {
        if self.in_flight.is_empty() && !self.is_told_elsewhere {
            return;
        }
        let common = &self.shared.common;
        let mut state = common.state();
        state.elsewhere.remove(&self.id);
        let now = self.shared.clock.now();
        for InFlight { sent, .. } in self.in_flight.drain(..) {
            state.quorum.forget(now, sent);
        }
        while let Some(output) = state.quorum.poll() {
            match output {
                Output::Send(sent) => state.quorum.forget(now, sent),
                Output::Done(id, verdict) => common.tell(&mut state, id, verdict),
            }
        }
        if state.quorum.is_quiet() {
            common.quiet.notify_waiters();
        }
    }
}
