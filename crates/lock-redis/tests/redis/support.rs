//! What the tests share: both facades behind one trait, claims, and patience.

use std::sync::Arc;
use std::time::Duration;

use lock_core::{
    Answer, AsyncBackend, BackendError, BlockingBackend, Certainty, Claim, ErrorKind, Fairness, FencingToken, Lease,
    NameKind, Note, Owner, Queueing, ReleaseRequest, Released, Terms, Ttl, Width,
};
use lock_host::{Bridge, Bridged};
use lock_redis::{RedisConfig, blocking, nonblocking};
use test_support::bounds::{Awaited, wait_at_most};

/// How long a request may take that is expected to be answered.
pub(crate) const SOON: Duration = Duration::from_secs(5);
/// How long a request may take that is expected to find no answer.
pub(crate) const SHORT: Duration = Duration::from_millis(300);
/// How long something may take that must happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// Either facade.
pub(crate) type Client = Arc<dyn BlockingBackend>;

/// The blocking form of a backend that is made on its bridge.
pub(crate) fn bridged<B: AsyncBackend>(make: impl AsyncFnOnce() -> B) -> Bridged<B> {
    try_bridged(async || Ok(make().await)).unwrap()
}

pub(crate) fn try_bridged<B: AsyncBackend>(
    make: impl AsyncFnOnce() -> Result<B, BackendError>,
) -> Result<Bridged<B>, BackendError> {
    let bridge = Bridge::start().unwrap();
    let backend = bridge.block_on(make())?;
    Ok(Bridged::new(Arc::new(backend), bridge))
}

type Connect = fn(&str) -> Client;

/// How to connect a client of each facade.
pub(crate) const BOTH: [(&str, Connect); 2] = [("async", on_tokio), ("blocking", on_threads)];

fn on_tokio(url: &str) -> Client {
    connected(url, try_on_tokio)
}

fn on_threads(url: &str) -> Client {
    connected(url, try_on_threads)
}

type TryConnect = fn(&RedisConfig) -> Result<Client, BackendError>;

fn try_on_tokio(config: &RedisConfig) -> Result<Client, BackendError> {
    Ok(Arc::new(try_bridged(async || nonblocking::Redis::connect(config).await)?))
}

fn try_on_threads(config: &RedisConfig) -> Result<Client, BackendError> {
    Ok(Arc::new(blocking::Redis::connect(config)?))
}

fn connected(url: &str, connect: TryConnect) -> Client {
    settled(url, connect).unwrap()
}

/// What connecting says in the end: on a busy machine, one attempt may have too little time.
fn settled(url: &str, connect: TryConnect) -> Result<Client, BackendError> {
    let config = RedisConfig::from_url(url).unwrap();
    eventually("the end of connecting", || match connect(&config) {
        Err(error) if [ErrorKind::Unreachable, ErrorKind::Timeout].contains(&error.kind()) => Err(error),
        outcome => Ok(outcome),
    })
}

/// What connecting to a server that is there says, in each facade.
pub(crate) fn connecting(url: &str) -> [(&'static str, Result<Client, BackendError>); 2] {
    [("async", settled(url, try_on_tokio)), ("blocking", settled(url, try_on_threads))]
}

/// One client of each facade.
pub(crate) fn both(url: &str) -> [(&'static str, Client); 2] {
    BOTH.map(|(facade, connect)| (facade, connect(url)))
}

/// What connecting says, in each facade.
pub(crate) fn refusals(url: &str) -> [BackendError; 2] {
    let config = RedisConfig::from_url(url).unwrap();
    [try_on_tokio, try_on_threads].map(|connect| connect(&config).err().unwrap())
}

pub(crate) fn claim(name: &str) -> Claim {
    Claim {
        name: name.parse().unwrap(),
        owner: lock_host::new_owner().unwrap(),
        terms: Terms::exclusive(Ttl::DEFAULT),
        width: Width::ONE,
        floor: None,
        note: Note::new("here", 1, "testing").unwrap(),
        queueing: Queueing::Unwanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

pub(crate) fn release_of(claim: &Claim, certainty: Certainty) -> ReleaseRequest {
    claim.release(certainty)
}

#[track_caller]
pub(crate) fn granted(answer: Result<Answer, BackendError>) -> Lease {
    match answer {
        Ok(Answer::Granted { lease, .. }) => lease,
        other => panic!("not granted: {other:?}"),
    }
}

/// Acquires for a new owner, and returns the claim and its lease.
#[track_caller]
pub(crate) fn take(client: &Client, name: &str) -> (Claim, Lease) {
    let claim = claim(name);
    let lease = granted(client.acquire(&claim, SOON));
    (claim, lease)
}

/// Acquires and releases, and returns the token.
#[track_caller]
pub(crate) fn draw(client: &Client, name: &str) -> FencingToken {
    let (claim, lease) = take(client, name);
    assert_eq!(client.release(&release_of(&claim, Certainty::Answered), SOON).unwrap(), Released::Released);
    lease.tokens.high()
}

/// Takes a lock and hands it over to a waiter.
#[track_caller]
pub(crate) fn hand_over(client: &Client, name: &str) {
    let (holder, lease) = take(client, name);
    let waiter = Claim { queueing: Queueing::Wanted, ..claim(name) };
    let answer = client.acquire(&waiter, SOON);
    assert!(matches!(answer, Ok(Answer::Queued { position: 1, .. })), "{name}: {answer:?}");
    assert_eq!(client.release(&release_of(&holder, Certainty::Answered), SOON).unwrap(), Released::Released);
    let next = granted(client.acquire(&waiter, SOON));
    assert!(next.tokens.low() > lease.tokens.high(), "{name}");
    assert_eq!(client.release(&release_of(&waiter, Certainty::Answered), SOON).unwrap(), Released::Released);
}

#[track_caller]
pub(crate) fn is_busy(answer: Result<Answer, BackendError>) {
    assert!(matches!(answer, Ok(Answer::Busy { .. })), "not busy: {answer:?}");
}

/// Waits until a condition holds, or something succeeds. Shorter than the leases that must still be held then.
#[track_caller]
pub(crate) fn eventually<A: Awaited>(what: &str, ask: impl FnMut() -> A) -> A::Value {
    wait_at_most(PATIENCE, what, ask)
}

pub(crate) fn owner(byte: u8) -> Owner {
    Owner::from_random([byte; 16])
}

/// The value of a lease that was granted a moment ago, without the time of its grant.
#[track_caller]
pub(crate) fn without_time(value: &str) -> String {
    let (before, note) = value.split_once('~').expect("it has a time");
    let (before, seconds) = before.rsplit_once(':').unwrap();
    let age = lock_host::since_1970().as_secs() - seconds.parse::<u64>().unwrap();
    assert!(age < 60, "{value} was granted {age} s ago");
    format!("{before}:{note}")
}

/// Who ends the leases of others.
pub(crate) fn operator() -> Note {
    Note::new("console", 1, "it hangs").unwrap()
}
