//! Everything that reads what a server sends, for `tests/fuzz`. Not a part of the API.

use std::fmt::Write as _;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lock_core::inspect::Query;
use lock_core::node::{Ask, Epoch, Recording, Sighting};
use lock_core::{
    Certainty, Claim, EventSink, Fairness, FencingToken, Holder, Invalid, LeaseId, Limit, LockName, Mode, NameKind,
    Note, Operation, Owner, Prefix, Queueing, Slots, Terms, TokenRange, Ttl, Width, latch, limit,
};
use redis::{Client, Value};

use crate::address::Address;
use crate::channel::Channel;
use crate::cluster::{Redirect, SlotMap};
use crate::deployment::Deployment;
use crate::failover::Failover;
use crate::failure::Failure;
use crate::keys::Scope;
use crate::replicas::without_wait;
use crate::requests::end_dwell::{EndDwell, longest_ttl};
use crate::requests::look::{Look, Scan, WhoHolds, entries};
use crate::requests::renewal::Renewal;
use crate::requests::revocation::{Revocation, RevokedBy};
use crate::requests::value::{Stored, of_owner, of_tokens};
use crate::server::greeting::meet;
use crate::server::server_info::ServerInfo;
use crate::target::Target;
use crate::wire::{Attempt, Line, Question, Wire};

const SERVER: &str = "redis://h";

/// What was made of a reply: why it was refused, in the words for users, or nothing.
#[derive(Default)]
struct Said(String);

impl Said {
    fn of<T>(&mut self, outcome: Result<T, Failure>) -> Option<T> {
        let error = |failure: Failure| _ = writeln!(self.0, "{}", failure.into_error(Operation::Inspect));
        outcome.map_err(error).ok()
    }

    fn ask<Q: Question>(&mut self, question: Q, reply: &Value) -> Option<Q::Answer> {
        let wire = Wire { channel: Channel::new(), ..Wire::handed_in() };
        self.of(question
            .read(Line { wire: &wire, server_info: ServerInfo::UNKNOWN, attempt: Attempt::default() }, reply.clone()))
    }
}

/// Has each question read a reply, and returns one line for each that refuses it.
///
/// # Errors
/// `Invalid` if there are no such questions.
pub fn reply(reply: &Value) -> Result<String, Invalid> {
    let (mut said, name): (_, LockName) = (Said::default(), "a".parse()?);
    for mode in [Mode::Exclusive, Mode::Shared, Mode::permits(3, 8)?] {
        of_mode(&mut said, &name, mode, reply)?;
    }
    let names = slice::from_ref(&name);
    if let Some(seen) = said.ask(Look(names), reply) {
        entries(names, seen);
    }
    said.ask(WhoHolds(&name), reply);
    said.ask(Scan { query: &Query::all(), cursor: None }, reply);
    let (token, by) = (FencingToken::new(7)?, &Note::from_wire("1@h"));
    said.ask(Revocation::new(&name, token, by), reply);
    said.ask(RevokedBy(&name, token), reply);
    said.ask(longest_ttl(Scope::Database), reply);
    said.ask(EndDwell { scope: Scope::Database, mark: "m", incarnation: "i" }, reply);
    said.ask(&limit::Request { name: name.clone(), known: Limit::new(8)?, act: limit::Act::Look }, reply);
    said.ask(&latch::Request { name, act: latch::Act::Make { ttl: Ttl::DEFAULT } }, reply);
    said.of(without_wait(SERVER, reply.clone()));
    let asked = Address { host: "h".to_owned(), port: 1 };
    if let Some(map) = said.of(SlotMap::read(reply.clone(), &asked)) {
        map.primaries();
    }
    Ok(said.0)
}

fn of_mode(said: &mut Said, name: &LockName, mode: Mode, reply: &Value) -> Result<(), Invalid> {
    let (token, epoch) = (FencingToken::new(7)?, Epoch::from_random(7));
    let claim = Claim {
        name: name.clone(),
        owner: Owner::from_random([7; 16]),
        terms: Terms { mode, ttl: Ttl::DEFAULT },
        width: Width::for_waiters(usize::try_from(mode.count()).unwrap_or(1)),
        floor: None,
        note: Note::from_wire("1@h"),
        queueing: Queueing::Wanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    };
    let (lease, request) =
        (claim.lease_of(TokenRange::new(token, token)?, Slots::NONE), claim.release(Certainty::Unknown));
    said.ask(&claim, reply);
    said.ask(&lease, reply);
    said.ask(&request, reply);
    said.ask(Renewal(&[lease.clone(), lease.clone()]), reply);
    let sighting = Sighting { member: "h:1".to_owned(), recording: Recording::Nothing };
    said.ask(Ask::Acquire { claim: Arc::new(claim), wish: token, epoch }, reply);
    said.ask(Ask::Fence { leases: [lease].into(), epoch }, reply);
    said.ask(Ask::Release(Arc::new(request)), reply);
    said.ask(Ask::Record { seen: [sighting].into(), keep: Duration::ZERO }, reply);
    said.ask(Ask::Look, reply);
    Ok(())
}

/// Reads the replies to a greeting in every role, and returns one line for each that refuses them.
pub fn greeting(replies: &[Value]) -> String {
    let mut said = Said::default();
    let Ok(client) = Client::open(SERVER) else { return String::new() };
    for deployment in [Deployment::OneServer, Deployment::Sentinels, Deployment::Cluster, Deployment::Quorum] {
        said.of(meet(&Target::new(client.clone(), deployment, Failover::UNHEEDED), replies.to_vec()));
    }
    said.0
}

/// Reads a message to this client. Returns the event for its listeners, if any.
pub fn message(prefix: &Prefix, message: &[u8]) -> Option<String> {
    let (channel, heard) = (Channel::new()?, Arc::new(Mutex::new(None)));
    let sink = Arc::clone(&heard);
    channel.set_prefix(prefix);
    channel.listen(EventSink::new(move |event| {
        *sink.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("{event:?}"));
    }));
    channel.receive(message);
    heard.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Reads the value of a lock, and writes it again if it is one of ours. Otherwise returns who holds the lock.
///
/// # Errors
/// The holder, if the value is not one of ours.
pub fn stored(value: &[u8]) -> Result<String, Holder> {
    let Some(Stored { owner, tokens, note }) = Stored::read(value) else { return Err(Stored::holder(value)) };
    LeaseId::of(owner, tokens.high());
    Ok([of_owner(owner), of_tokens(tokens), note.to_wire()].concat())
}

/// Reads where a server of a cluster sends a request, and writes the address.
pub fn redirect(code: &str, details: &str) -> Option<String> {
    match Redirect::read(code, details)? {
        Redirect::Moved(to) | Redirect::Ask(to) => Some(to.to_string()),
        Redirect::Down => None,
    }
}
