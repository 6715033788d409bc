//! Where one request is sent, and where next if a server does not serve it. No I/O.
//!
//! Only what surely did nothing is sent again: an acquire that was not answered may have taken effect, and a release may have handed
//! the lock over.

use std::sync::Arc;

use lock_core::{Effect, ErrorKind, Operation};
use redis::Value;

use super::redirect::{Address, Redirect};
use super::topology::Topology;
use crate::classify::CHECK_CLUSTER;
use crate::failure::Failure;
use crate::hash_slot::HashSlot;
use crate::span::Span;
use crate::wire::{Call, Line, Question, Retry};

/// How often a request is sent at most. Chosen: it moves once, or while a hash slot moves twice, and hardly ever more.
const SENT_MAX: u32 = 5;

/// The way of one request through a cluster.
pub(super) struct Routing<'a> {
    topology: &'a Arc<Topology>,
    hash_slot: HashSlot,
    span: Span,
    sent: u32,
    next: Next,
}

enum Next {
    /// To the primary of its hash slot.
    Primary,
    /// To the server that has its key while the hash slot moves.
    Asking(Arc<Address>),
    /// The map is asked for. If that names the same server as before, the request fails.
    Refresh(Failure, Option<Arc<Address>>),
    /// The same, once the map was asked for.
    Refreshed(Failure, Option<Arc<Address>>),
    Failed(Failure),
}

/// What to do with a request now.
pub(super) enum Step {
    /// Send it to a server.
    Send(Arc<Address>, Form),
    /// Ask for the map.
    Refresh,
    /// It failed.
    Fail(Failure),
}

/// How a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    /// To a server that does not own the hash slot yet.
    Asking,
}

impl<'a> Routing<'a> {
    pub(super) fn new(topology: &'a Arc<Topology>, hash_slot: HashSlot, span: Span) -> Self {
        Self { topology, hash_slot, span, sent: 0, next: Next::Primary }
    }

    pub(super) fn step(&mut self) -> Step {
        match std::mem::replace(&mut self.next, Next::Primary) {
            Next::Primary => match self.topology.primary_of(self.hash_slot) {
                Some(address) => Step::Send(address, Form::Plain),
                None => self.refresh(unserved(self.hash_slot), None),
            },
            Next::Asking(address) => Step::Send(address, Form::Asking),
            Next::Refresh(failure, sent_to) => self.refresh(failure, sent_to),
            Next::Refreshed(failure, sent_to) => match self.topology.primary_of(self.hash_slot) {
                Some(address) if Some(&address) != sent_to.as_ref() => Step::Send(address, Form::Plain),
                Some(_) | None => Step::Fail(failure),
            },
            Next::Failed(failure) => Step::Fail(failure),
        }
    }

    fn refresh(&mut self, failure: Failure, sent_to: Option<Arc<Address>>) -> Step {
        self.next = Next::Refreshed(failure, sent_to);
        Step::Refresh
    }

    /// A server did not serve the request.
    pub(super) fn failed(&mut self, sent_to: Arc<Address>, failure: Failure) {
        self.sent += 1;
        let is_over = self.sent >= SENT_MAX || self.span.left().is_zero();
        if let Some(Redirect::Moved(address)) = failure.redirect() {
            self.topology.moved(self.hash_slot, address.clone().beside(&sent_to));
        }
        self.next = match (failure.redirect(), failure.effect()) {
            // A primary that is cut off says this for as long as that lasts, and nobody tells it that it was replaced.
            (Some(Redirect::Down), _) => {
                self.topology.refresh_soon();
                Next::Failed(failure)
            }
            (Some(_), Effect::Unknown) => Next::Failed(moving(self.hash_slot).after_a_part()),
            (Some(_), Effect::None) if is_over => Next::Failed(moving(self.hash_slot)),
            (Some(Redirect::Moved(_)), Effect::None) => Next::Primary,
            (Some(Redirect::Ask(address)), Effect::None) => Next::Asking(Arc::new(address.clone().beside(&sent_to))),
            (None, _) if failure.is_elsewhere() && !is_over => Next::Refresh(failure, Some(sent_to)),
            (None, _) => {
                // It may have been replaced, and nobody says so.
                if !failure.is_an_answer() || failure.is_elsewhere() {
                    self.topology.refresh_soon();
                }
                Next::Failed(failure)
            }
        };
    }
}

/// A question to a server that does not own the hash slot yet.
pub(super) struct Asked<'a, Q>(pub(super) &'a Q);

impl<Q: Question> Question for Asked<'_, Q> {
    type Answer = Q::Answer;

    fn operation(&self) -> Operation {
        self.0.operation()
    }

    /// What depends on the counter of its hash slot has several keys. Some of them are not there yet.
    fn call(&self, line: Line<'_>) -> Result<Call, Failure> {
        let call = self.0.call(line)?;
        match call.slot {
            Some(hash_slot) => Err(moving(hash_slot)),
            None => Ok(call.asking()),
        }
    }

    fn read(&self, line: Line<'_>, reply: Value) -> Result<Q::Answer, Failure> {
        self.0.read(line, reply)
    }

    fn retry(&self) -> Retry {
        self.0.retry()
    }
}

pub(super) fn unserved(hash_slot: HashSlot) -> Failure {
    let message = format!("no primary of the cluster serves the hash slot {hash_slot}");
    Failure::new(ErrorKind::Unavailable, Effect::None, message).remedy(CHECK_CLUSTER)
}

/// The keys of a lock are on their way, or the servers do not agree yet on where they are.
fn moving(hash_slot: HashSlot) -> Failure {
    let message = format!("the hash slot {hash_slot} is moving to another primary");
    Failure::new(ErrorKind::Unavailable, Effect::None, message).remedy("wait until it has moved")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redis::IntoConnectionInfo;

    use super::*;
    use crate::classify::refusal;
    use crate::failure::{Scene, Stage};

    fn address(text: &str) -> Address {
        Address::read(text).unwrap()
    }

    /// A cluster in which h1:1 serves the hash slot. Nobody answers at its seed.
    fn topology(hash_slot: HashSlot) -> Arc<Topology> {
        let server = "redis://127.0.0.1:1".into_connection_info().unwrap();
        let topology = Topology::new(vec![address("127.0.0.1:1")], server);
        topology.moved(hash_slot, address("h1:1"));
        topology
    }

    fn hash_slot() -> HashSlot {
        HashSlot::of(b"a")
    }

    fn answered(code: &str, details: &str) -> Failure {
        refusal(Scene { stage: Stage::Asked, server: "redis://h1:1", within: Duration::ZERO }, code, details)
    }

    fn refused_connection() -> Failure {
        Failure::no_connection("redis://h1:1", Duration::ZERO)
    }

    /// What comes after a request to h1:1 failed like this.
    fn after(topology: &Arc<Topology>, failure: Failure) -> String {
        let mut routing = Routing::new(topology, hash_slot(), Span::from_now(Duration::from_secs(60)));
        let Step::Send(address, Form::Plain) = routing.step() else { panic!("it is not sent") };
        routing.failed(address, failure);
        told(routing.step())
    }

    fn told(step: Step) -> String {
        match step {
            Step::Send(address, form) => format!("{form:?} {address}"),
            Step::Refresh => "refresh".to_owned(),
            Step::Fail(failure) => format!("fail {:?}", failure.into_error(Operation::Acquire).kind()),
        }
    }

    #[test]
    fn a_request_follows_the_server_that_sends_it_on() {
        let topology = topology(hash_slot());
        assert_eq!(after(&topology, answered("ASK", "15495 h2:2")), "Asking h2:2");
        assert_eq!(after(&topology, answered("MOVED", "15495 :3")), "Plain h1:3");
        assert_eq!(topology.primary_of(hash_slot()).unwrap().to_string(), "h1:3", "from now on");
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
            let mut routing = Routing::new(&topology, hash_slot(), Span::from_now(Duration::from_secs(60)));
            for (found, expected) in [("h2:2", "Plain h2:2"), ("h2:2", "fail")] {
                let Some(address) = topology.primary_of(hash_slot()) else { panic!("no primary") };
                routing.failed(address, failure.clone());
                assert_eq!(told(routing.step()), "refresh");
                topology.moved(hash_slot(), self::address(found));
                assert!(told(routing.step()).starts_with(expected), "{found}");
            }
        }
    }

    #[test]
    fn a_request_is_not_sent_on_forever() {
        let topology = topology(hash_slot());
        let mut routing = Routing::new(&topology, hash_slot(), Span::from_now(Duration::from_secs(60)));
        let mut sent = 0;
        let failure = loop {
            match routing.step() {
                Step::Send(address, _) if sent % 2 == 0 => routing.failed(address, answered("ASK", "15495 h2:2")),
                Step::Send(address, _) => routing.failed(address, answered("MOVED", "15495 h1:1")),
                Step::Refresh => panic!("both answered"),
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
        let topology = Topology::new(vec![address("127.0.0.1:1")], server);
        let mut routing = Routing::new(&topology, hash_slot(), Span::from_now(Duration::from_secs(60)));
        assert_eq!((told(routing.step()), told(routing.step())), ("refresh".to_owned(), "fail Unavailable".to_owned()));
    }
}
