//! The requests in flight: what they send, which outcomes they wait for, and their verdicts.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::Epoch;
use lock_core::{BackendError, Effect, ErrorKind, Moment, Operation, Ttl};

use super::acquire::Acquire;
use super::inspect::Inspect;
use super::nodes::Nodes;
use super::outgoing::{Outcome, Outgoing, RequestId};
use super::recovery::{Pass, Purpose};
use super::release::Release;
use super::renew::Renew;
use super::request::{Request, Verdict, no_verdict};
use crate::BACKEND;

/// How long each step may take in a pass that the quorum begins by itself.
const PASS_WITHIN: Duration = Duration::from_secs(1);

/// Where fresh epochs come from.
pub trait EpochSource: fmt::Debug + Send {
    /// An epoch that was never used before.
    ///
    /// # Errors
    /// If the random source fails.
    fn draw(&mut self) -> io::Result<Epoch>;
}

/// What the quorum wants done.
#[derive(Debug)]
pub enum Output {
    /// Send this. Requests to one node have to arrive in the order of the outputs. What was held back until an outcome
    /// was heard takes the connection of that outcome, whatever request it belongs to.
    Send(Outgoing),
    /// A request has its verdict. It may still have more to send, and outcomes to wait for. Each request has one.
    Done(RequestId, Verdict),
}

/// Independent nodes that decide together, and the requests in flight.
#[derive(Debug)]
pub struct Quorum {
    nodes: Nodes,
    epochs: Box<dyn EpochSource>,
    in_flight: BTreeMap<RequestId, InFlight>,
    outputs: VecDeque<Output>,
    last: u64,
}

/// A request with open outcomes.
#[derive(Debug)]
struct InFlight {
    running: Running,
    /// How many outcomes are open.
    open: usize,
    /// Whether it has had its verdict. There is only one, whatever slower nodes answer.
    is_done: bool,
}

#[derive(Debug)]
enum Running {
    Acquire(Acquire),
    Renew(Renew),
    Fence(Renew),
    Release(Release),
    Inspect(Inspect),
    Pass(Box<Pass>),
    /// Releases of earlier requests.
    Rest,
}

impl Quorum {
    /// A quorum of the nodes with these addresses. Nothing is known about them yet.
    ///
    /// # Errors
    /// `Config` for fewer than three nodes, or for an address that is listed twice.
    pub fn new(addresses: &[String], max_ttl: Ttl, epochs: Box<dyn EpochSource>) -> Result<Self, BackendError> {
        let nodes = Nodes::new(addresses, max_ttl)?;
        Ok(Self { nodes, epochs, in_flight: BTreeMap::new(), outputs: VecDeque::new(), last: 0 })
    }

    /// Turns a rule off. Two clients can then hold one lock: for tests only.
    #[cfg(feature = "twins")]
    pub fn turn_off(&mut self, rule: super::rule::Rule) {
        self.nodes.rules.turn_off(rule);
    }

    /// Sets how long a node that knows no deployment abstains at least. It must not be shorter than any client's
    /// `max_ttl`: for tests only.
    #[cfg(feature = "twins")]
    pub fn set_blank_dwell(&mut self, dwell: Duration) {
        self.nodes.rules.set_blank_dwell(dwell);
    }

    /// How many nodes are a majority.
    pub fn majority(&self) -> usize {
        self.nodes.majority()
    }

    /// Whether a pass has found which of the nodes count. Otherwise one is needed before an inspection.
    pub fn knows_its_nodes(&self) -> bool {
        self.nodes.watch.identified.is_some()
    }

    /// Whether nothing is in flight, except to nodes that do not answer.
    pub fn is_quiet(&self) -> bool {
        self.nodes.are_quiet()
    }

    /// Begins a request. `within` limits a verb as a whole, and each step of a pass.
    pub fn begin(&mut self, now: Moment, request: Request, within: Duration) -> RequestId {
        let id = self.next_id();
        let nodes = &mut self.nodes;
        nodes.current = id;
        let running = match request {
            Request::Acquire(claim) => Running::Acquire(Acquire::begin(nodes, now, Arc::new(claim), within)),
            Request::Renew(leases) => Running::Renew(Renew::begin(nodes, now, leases, within)),
            Request::Fence(lease) => Running::Fence(Renew::begin(nodes, now, vec![lease], within)),
            Request::Release(request) => Running::Release(Release::begin(nodes, now, request, within)),
            Request::Inspect(asks) => Running::Inspect(Inspect::begin(nodes, now, asks, within)),
            Request::Pass(purpose) => match nodes.ids().map(|_| self.epochs.draw()).collect() {
                Ok(epochs) => Running::Pass(Box::new(Pass::begin(nodes, now, purpose, within, epochs))),
                Err(error) => {
                    self.outputs.push_back(Output::Done(id, Verdict::Pass(Err(no_randomness(&error)))));
                    return id;
                }
            },
        };
        self.in_flight.insert(id, InFlight { running, open: 0, is_done: false });
        self.go_on(now, id);
        id
    }

    /// What to do next. Each call of [`begin`](Self::begin) or [`heard`](Self::heard) may add outputs: for that request,
    /// for others that were held back, and for a recovery pass that is due after a verdict.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Processes an outcome.
    pub fn heard(&mut self, now: Moment, sent: Outgoing, outcome: Outcome) {
        self.nodes.current = sent.request;
        self.nodes.settle(now, &sent, &outcome);
        self.take_in(now, &sent, outcome);
        self.take_in_unsendable(now);
    }

    /// The task or thread that would have reported this outcome is gone. A request that had no verdict yet may end with an
    /// error.
    pub fn forget(&mut self, now: Moment, sent: Outgoing) {
        self.nodes.forget(now, &sent);
        if let Some(in_flight) = self.in_flight.get_mut(&sent.request) {
            in_flight.open -= 1;
            if in_flight.open == 0 {
                let verdict = in_flight.running.no_verdict().filter(|_| !in_flight.is_done);
                self.in_flight.remove(&sent.request);
                self.outputs.extend(verdict.map(|verdict| Output::Done(sent.request, verdict)));
            }
        }
        self.take_in_unsendable(now);
    }

    /// How many outcomes a request waits for, including those of held-back parts.
    pub fn open(&self, id: RequestId) -> usize {
        self.in_flight.get(&id).map_or(0, |in_flight| in_flight.open)
    }

    /// Sends everything that is held back, and the releases that nodes have not confirmed. Called when the process may be
    /// about to end. There is no verdict.
    pub fn send_held_back(&mut self, now: Moment, within: Duration) -> RequestId {
        let id = self.next_id();
        self.nodes.current = id;
        self.nodes.send_held_back(now, within);
        self.in_flight.insert(id, InFlight { running: Running::Rest, open: 0, is_done: true });
        self.go_on(now, id);
        self.take_in_unsendable(now);
        id
    }

    fn next_id(&mut self) -> RequestId {
        self.last += 1;
        RequestId(self.last)
    }

    fn take_in(&mut self, now: Moment, sent: &Outgoing, outcome: Outcome) {
        let Some(in_flight) = self.in_flight.get_mut(&sent.request) else { return };
        in_flight.open -= 1;
        self.nodes.current = sent.request;
        in_flight.running.heard(&mut self.nodes, now, sent, outcome);
        self.go_on(now, sent.request);
    }

    /// What was held back for too long counts as failed.
    fn take_in_unsendable(&mut self, now: Moment) {
        while let Some((unsent, outcome)) = self.nodes.take_unsendable() {
            self.take_in(now, &unsent, outcome);
        }
    }

    /// Outputs what a request wants to send, and its verdict as soon as there is one.
    fn go_on(&mut self, now: Moment, id: RequestId) {
        let Some(in_flight) = self.in_flight.get_mut(&id) else { return };
        in_flight.open += self.nodes.take_opened();
        self.outputs.extend(self.nodes.take_unsent().map(Output::Send));
        let verdict = in_flight.running.take_verdict().filter(|_| !in_flight.is_done);
        in_flight.is_done |= verdict.is_some();
        if in_flight.open == 0 {
            self.in_flight.remove(&id);
        }
        let Some(verdict) = verdict else { return };
        let purpose = match verdict {
            Verdict::Pass(_) => None,
            // An inspection changes nothing.
            Verdict::Inspect(_) => self.nodes.watch.may_identify(now).then_some(Purpose::Look),
            Verdict::Acquire(_) | Verdict::Renew(_) | Verdict::Fence(_) | Verdict::Release(_) => {
                self.nodes.wants_pass(now).then_some(Purpose::Watch)
            }
        };
        self.outputs.push_back(Output::Done(id, verdict));
        if let Some(purpose) = purpose {
            self.begin(now, Request::Pass(purpose), PASS_WITHIN);
        }
    }
}

impl Running {
    fn heard(&mut self, nodes: &mut Nodes, now: Moment, sent: &Outgoing, outcome: Outcome) {
        match self {
            Self::Acquire(acquire) => acquire.heard(nodes, now, sent, outcome),
            Self::Renew(renew) => {
                renew.heard(sent, outcome);
                // Its client does not release it.
                renew.denied().for_each(|owner| _ = nodes.held.remove(&owner));
            }
            Self::Fence(renew) => renew.heard(sent, outcome),
            Self::Release(release) => release.heard(sent, outcome),
            Self::Inspect(inspect) => inspect.heard(sent, outcome),
            Self::Pass(pass) => pass.heard(nodes, now, sent, outcome),
            Self::Rest => {}
        }
    }

    /// The verdict, as soon as it is certain.
    fn take_verdict(&mut self) -> Option<Verdict> {
        match self {
            Self::Acquire(acquire) => acquire.take_verdict().map(Verdict::Acquire),
            Self::Renew(renew) => renew.take_renewed().map(Verdict::Renew),
            Self::Fence(renew) => renew.take_fenced().map(Verdict::Fence),
            Self::Release(release) => release.take_verdict().map(Verdict::Release),
            Self::Inspect(inspect) => inspect.take_verdict().map(Verdict::Inspect),
            Self::Pass(pass) => pass.take_verdict().map(Verdict::Pass),
            Self::Rest => None,
        }
    }
}

impl Running {
    /// The verdict of a request that ends without one.
    fn no_verdict(&self) -> Option<Verdict> {
        Some(match self {
            Self::Acquire(_) => Verdict::Acquire(Err(no_verdict())),
            Self::Renew(_) => Verdict::Renew(Err(no_verdict())),
            Self::Fence(_) => Verdict::Fence(Err(no_verdict())),
            Self::Release(_) => Verdict::Release(Err(no_verdict())),
            Self::Inspect(_) => Verdict::Inspect(Err(no_verdict())),
            Self::Pass(_) => Verdict::Pass(Err(no_verdict())),
            Self::Rest => return None,
        })
    }
}

fn no_randomness(error: &io::Error) -> BackendError {
    let told = format!("the system's random source failed: {error}");
    BackendError::new(BACKEND, Operation::Connect, ErrorKind::Config, Effect::None, told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostEpochs;

    fn of(nodes: usize) -> Quorum {
        let addresses: Vec<_> = (0..nodes).map(|node| node.to_string()).collect();
        Quorum::new(&addresses, Ttl::DEFAULT, Box::new(HostEpochs)).unwrap()
    }

    #[test]
    fn a_majority_is_more_than_half() {
        assert_eq!([3, 4, 5, 6].map(|nodes| of(nodes).majority()), [2, 3, 3, 4]);
    }

    fn take_sent(quorum: &mut Quorum) -> Vec<Outgoing> {
        let sent = |output| match output {
            Output::Send(sent) => Some(sent),
            Output::Done(..) => None,
        };
        std::iter::from_fn(|| quorum.poll()).filter_map(sent).collect()
    }

    #[test]
    fn a_request_is_kept_until_its_last_outcome() {
        type Report = fn(&mut Quorum, Outgoing);
        let heard: Report = |quorum, sent| {
            let away = BackendError::new("a", Operation::Connect, ErrorKind::Unreachable, Effect::None, "away");
            quorum.heard(Moment::ORIGIN, sent, Err(away));
        };
        let forgotten: Report = |quorum, sent| quorum.forget(Moment::ORIGIN, sent);
        for reports in [[heard; 3], [forgotten; 3], [heard, forgotten, heard], [heard, heard, forgotten]] {
            let mut quorum = of(3);
            quorum.begin(Moment::ORIGIN, Request::Pass(Purpose::Watch), PASS_WITHIN);
            let sent = take_sent(&mut quorum);
            assert_eq!(sent.len(), 3);
            for (report, sent) in reports.into_iter().zip(sent) {
                assert_eq!(quorum.in_flight.len(), 1);
                report(&mut quorum, sent);
            }
            assert!(quorum.in_flight.is_empty());
        }
    }

    #[test]
    fn requests_have_different_ids_and_those_that_ask_nobody_are_not_kept() {
        let mut quorum = of(3);
        let mut begin = |request| quorum.begin(Moment::ORIGIN, request, PASS_WITHIN);
        let ids: Vec<_> = (0..3).map(|_| begin(Request::Renew(Vec::new()))).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
        let kept: Vec<_> = quorum.in_flight.values().map(|kept| matches!(kept.running, Running::Pass(_))).collect();
        assert_eq!(kept, [true], "only the pass that follows the first");
    }
}
