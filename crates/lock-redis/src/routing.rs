//! Where one request is sent, and where next if a server does not serve it. No I/O.
//!
//! Only what surely did nothing is sent to another server: an acquire that was not answered may have taken effect, and a release may have
//! handed the lock over. What is idempotent is sent once more if its connection broke. The primary that follows another one has its data,
//! or dwells; in a cluster, the hash slot may be elsewhere by then, so it goes to the same server.

use std::sync::Arc;
use std::time::Duration;

use lock_core::{Effect, ErrorKind};

use crate::address::Address;
use crate::classify::CHECK_CLUSTER;
use crate::cluster::Redirect;
use crate::connect::CONNECT_WITHIN;
use crate::deployment::Deployment;
use crate::directory::Directory;
use crate::failure::Failure;
use crate::hash_slot::HashSlot;
use crate::span::Span;
use crate::wire::{Attempt, Ownership, Retry};

/// How often a request is sent at most in a cluster. Chosen: it moves once, or while a hash slot moves twice, and hardly ever more.
const SENT_MAX: u32 = 5;

/// How long to wait before another primary is looked for, or the same one tried again. Sentinels need a moment for a fail-over.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// The way of one request to the server that has its lock.
pub(crate) struct Routing<'a> {
    directory: &'a Arc<dyn Directory>,
    deployment: Deployment,
    hash_slot: HashSlot,
    span: Span,
    sent: u32,
    next: Next,
    /// How the connection of the first attempt broke, if this is the retry.
    first: Option<Failure>,
    patience: Option<Patience>,
}

enum Next {
    /// To the primary of its hash slot.
    Primary,
    /// To this server: once more, or because it has the key while the hash slot moves.
    Server(Arc<Address>, Ownership),
    /// Another primary is looked for. If there is none, the request fails.
    Refresh(Failure, Option<Arc<Address>>),
    /// The same, once that was done.
    Refreshed(Failure, Option<Arc<Address>>),
    Failed(Failure),
}

/// What to do with a request now.
pub(crate) enum Step {
    /// Send it to a server.
    Send(Arc<Address>, Ownership),
    /// Ask the directory where to send it.
    Refresh,
    /// Do nothing for a moment.
    Pause,
    /// It failed.
    Fail(Failure),
}

/// For how long a primary is looked for that can be used.
pub(crate) struct Patience {
    span: Span,
    /// Why the first attempt failed. Later ones may have had too little time.
    why: Option<Failure>,
}

impl Patience {
    pub(crate) fn within(span: Span) -> Self {
        Self { span: span.at_most(CONNECT_WITHIN), why: None }
    }

    /// An attempt failed. Is there time for another one, after a pause?
    ///
    /// # Errors
    /// What to say if there is none.
    pub(crate) fn failed(&mut self, failure: Failure) -> Result<(), Failure> {
        let why = self.why.get_or_insert(failure);
        if self.span.left() > PAUSE { Ok(()) } else { Err(why.clone()) }
    }
}

impl<'a> Routing<'a> {
    pub(crate) fn new(
        directory: &'a Arc<dyn Directory>,
        deployment: Deployment,
        hash_slot: HashSlot,
        span: Span,
    ) -> Self {
        Self { directory, deployment, hash_slot, span, sent: 0, next: Next::Primary, first: None, patience: None }
    }

    /// The attempt at a server.
    pub(crate) fn attempt(&self, ownership: Ownership) -> Attempt<'_> {
        Attempt { first: self.first.as_ref(), ownership }
    }

    pub(crate) fn step(&mut self) -> Step {
        match std::mem::replace(&mut self.next, Next::Primary) {
            Next::Primary => match self.primary() {
                Some(address) => Step::Send(address, Ownership::Owned),
                None => self.refresh(unserved(self.hash_slot), None),
            },
            Next::Server(address, ownership) => Step::Send(address, ownership),
            Next::Refresh(failure, sent_to) => self.refresh(failure, sent_to),
            Next::Refreshed(failure, sent_to) => match self.primary() {
                Some(address) if Some(&address) != sent_to.as_ref() => Step::Send(address, Ownership::Owned),
                Some(_) | None => self.fail(failure),
            },
            Next::Failed(failure) => self.fail(failure),
        }
    }

    fn primary(&self) -> Option<Arc<Address>> {
        Arc::clone(self.directory).primary_of(self.hash_slot)
    }

    fn refresh(&mut self, failure: Failure, sent_to: Option<Arc<Address>>) -> Step {
        if self.deployment == Deployment::Cluster {
            self.next = Next::Refreshed(failure, sent_to);
            return Step::Refresh;
        }
        self.doubt(&failure);
        match self.patience.get_or_insert_with(|| Patience::within(self.span)).failed(failure) {
            Ok(()) => Step::Pause,
            Err(failure) => self.fail(failure),
        }
    }

    fn fail(&self, failure: Failure) -> Step {
        Step::Fail(if self.first.is_some() { failure.after_a_part() } else { failure })
    }

    fn doubt(&self, failure: &Failure) {
        Arc::clone(self.directory).doubt(failure);
    }

    /// The outcome, unless the request has to be sent again.
    pub(crate) fn outcome<A>(
        &mut self,
        sent: (Arc<Address>, Ownership),
        retry: Retry,
        answer: Result<A, Failure>,
    ) -> Option<Result<A, Failure>> {
        let is_an_answer = answer.as_ref().err().is_none_or(Failure::is_an_answer);
        let failure = match answer {
            _ if is_an_answer && self.directory.has_replaced(&sent.0) => Failure::was_replaced(&sent.0.to_string()),
            Ok(answer) => return Some(Ok(answer)),
            Err(failure) => failure,
        };
        if retry == Retry::Once && self.first.is_none() && failure.is_a_break() {
            self.doubt(&failure);
            self.first = Some(failure);
            self.next = Next::Server(sent.0, sent.1);
        } else {
            self.failed(sent.0, failure);
        }
        None
    }

    /// A server did not serve the request.
    fn failed(&mut self, sent_to: Arc<Address>, failure: Failure) {
        let is_cluster = self.deployment == Deployment::Cluster;
        self.sent += 1;
        let is_over = is_cluster && (self.sent >= SENT_MAX || self.span.left().is_zero());
        // The first attempt may have handed the lock over.
        let failure = if is_cluster && self.first.is_some() { failure.after_a_part() } else { failure };
        if let Some(Redirect::Moved(address)) = failure.redirect() {
            Arc::clone(self.directory).moved(self.hash_slot, address.clone().beside(&sent_to));
        }
        self.next = match (failure.redirect(), failure.effect) {
            // A primary that is cut off says this for as long as that lasts, and nobody tells it that it was replaced.
            (Some(Redirect::Down), _) => {
                self.doubt(&failure);
                Next::Failed(failure)
            }
            (Some(_), Effect::Unknown) => Next::Failed(Failure::moving(self.hash_slot).after_a_part()),
            (Some(_), Effect::None) if is_over => Next::Failed(Failure::moving(self.hash_slot)),
            (Some(Redirect::Moved(_)), Effect::None) => Next::Primary,
            (Some(Redirect::Ask(address)), Effect::None) => {
                Next::Server(Arc::new(address.clone().beside(&sent_to)), Ownership::Moving)
            }
            (None, _) if failure.is_elsewhere() && !is_over => Next::Refresh(failure, Some(sent_to)),
            (None, _) => {
                self.doubt(&failure);
                Next::Failed(failure)
            }
        };
    }
}

pub(crate) fn unserved(hash_slot: HashSlot) -> Failure {
    let message = format!("no primary of the cluster serves the hash slot {hash_slot}");
    Failure::new(ErrorKind::Unavailable, Effect::None, message).remedy(CHECK_CLUSTER)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redis::IntoConnectionInfo;

    use lock_core::Operation;

    use super::*;
    use crate::classify::refusal;
    use crate::cluster::Topology;
    use crate::failure::{Scene, Stage};

    fn address(text: &str) -> Address {
        Address::read(text).unwrap()
    }

    /// A cluster in which h1:1 serves the hash slot. Nobody answers at its seed.
    fn topology(hash_slot: HashSlot) -> Arc<dyn Directory> {
        let server = "redis://127.0.0.1:1".into_connection_info().unwrap();
        let topology: Arc<dyn Directory> = Arc::new(Topology::new(vec![address("127.0.0.1:1")], server));
        Arc::clone(&topology).moved(hash_slot, address("h1:1"));
        topology
    }

    fn hash_slot() -> HashSlot {
        HashSlot::of(b"a")
    }

    fn routing(topology: &Arc<dyn Directory>) -> Routing<'_> {
        Routing::new(topology, Deployment::Cluster, hash_slot(), Span::from_now(Duration::from_secs(60)))
    }

    fn answered(code: &str, details: &str) -> Failure {
        refusal(Scene { stage: Stage::Asked, server: "redis://h1:1", within: Duration::ZERO }, code, details)
    }

    fn refused_connection() -> Failure {
        Failure::no_connection("redis://h1:1", Duration::ZERO)
    }

    /// What comes after a request to h1:1 failed like this.
    fn after(topology: &Arc<dyn Directory>, failure: Failure) -> String {
        let mut routing = routing(topology);
        let Step::Send(address, Ownership::Owned) = routing.step() else { panic!("it is not sent") };
        routing.failed(address, failure);
        told(routing.step())
    }

    fn told(step: Step) -> String {
        match step {
            Step::Send(address, Ownership::Owned) => format!("Plain {address}"),
            Step::Send(address, Ownership::Moving) => format!("Asking {address}"),
            Step::Refresh => "refresh".to_owned(),
            Step::Pause => "pause".to_owned(),
            Step::Fail(failure) => format!("fail {:?}", failure.into_error(Operation::Acquire).kind()),
        }
    }

    #[test]
    fn a_request_follows_the_server_that_sends_it_on() {
        let topology = topology(hash_slot());
        assert_eq!(after(&topology, answered("ASK", "15495 h2:2")), "Asking h2:2");
        assert_eq!(after(&topology, answered("MOVED", "15495 :3")), "Plain h1:3");
        assert_eq!(Arc::clone(&topology).primary_of(hash_slot()).unwrap().to_string(), "h1:3", "from now on");
    }

    #[test]
    fn only_what_surely_did_nothing_is_sent_again() {
        let topology = topology(hash_slot());
        let failures = [
            answered("MOVED", "15495 h2:2").after_a_part(),
            answered("ASK", "15495 h2:2").after_a_part(),
            refused_connection().after_a_part(),
            Failure::no_answer("redis://h1:1", Duration::ZERO),
            answered("TRYAGAIN", "Multiple keys request during rehashing of slot"),
            answered("CLUSTERDOWN", "Hash slot not served"),
            answered("NOPERM", "no permissions"),
        ];
        let expected = ["Unavailable", "Unavailable", "Unreachable", "Timeout", "Unavailable", "Unavailable", "Denied"];
        for (failure, expected) in failures.into_iter().zip(expected) {
            assert_eq!(after(&topology, failure), format!("fail {expected}"));
        }
    }

    #[test]
    fn a_request_looks_for_another_primary_if_its_own_is_gone() {
        for failure in [refused_connection(), answered("READONLY", "replica"), answered("LOADING", "data")] {
            let topology = topology(hash_slot());
            assert_eq!(after(&topology, failure.clone()), "refresh");
            let mut routing = routing(&topology);
            for (found, expected) in [("h2:2", "Plain h2:2"), ("h2:2", "fail")] {
                let Some(address) = Arc::clone(&topology).primary_of(hash_slot()) else { panic!("no primary") };
                routing.failed(address, failure.clone());
                assert_eq!(told(routing.step()), "refresh");
                Arc::clone(&topology).moved(hash_slot(), self::address(found));
                assert!(told(routing.step()).starts_with(expected), "{found}");
            }
        }
    }

    #[test]
    fn a_request_is_not_sent_on_forever() {
        let topology = topology(hash_slot());
        let mut routing = routing(&topology);
        let mut sent = 0;
        let failure = loop {
            match routing.step() {
                Step::Send(address, _) if sent % 2 == 0 => routing.failed(address, answered("ASK", "15495 h2:2")),
                Step::Send(address, _) => routing.failed(address, answered("MOVED", "15495 h1:1")),
                Step::Refresh | Step::Pause => panic!("both answered"),
                Step::Fail(failure) => break failure,
            }
            sent += 1;
        };
        let error = failure.into_error(Operation::Acquire);
        assert_eq!((sent, error.kind(), error.effect()), (SENT_MAX, ErrorKind::Unavailable, Effect::None), "{error}");
    }

    #[test]
    fn a_hash_slot_without_a_primary_is_looked_for_once() {
        let server = "redis://127.0.0.1:1".into_connection_info().unwrap();
        let topology: Arc<dyn Directory> = Arc::new(Topology::new(vec![address("127.0.0.1:1")], server));
        let mut routing = routing(&topology);
        assert_eq!((told(routing.step()), told(routing.step())), ("refresh".to_owned(), "fail Unavailable".to_owned()));
    }
}
