//! Several clients on one backend: which of them gets which event.

use std::sync::Arc;
use std::time::Duration;

use lock_async::Client;
use lock_core::{
    Answer, AsyncBackend, Claim, ErrorKind, Fairness, NameKind, Note, Operation, Owner, Queueing, Terms, Ttl, Width,
};
use lock_memory::faults::{Fault, Faulty};

use crate::support::{Bench, until};

const SECOND: Duration = Duration::from_secs(1);

fn backend(bench: &Bench) -> Arc<dyn AsyncBackend> {
    Arc::new(Faulty::new(bench.store.nonblocking(), &bench.faults))
}

fn client(bench: &Bench, backend: &Arc<dyn AsyncBackend>) -> Client {
    Client::builder(Arc::clone(backend)).clock(Arc::new(bench.clock.clone())).build().unwrap()
}

/// The clock stands still, so nobody asks again: a waiter that is not notified waits forever.
#[tokio::test]
async fn all_clients_of_a_backend_learn_that_their_turn_has_come() {
    let bench = Bench::new();
    let (holder, shared) = (bench.client(), backend(&bench));
    let clients = [client(&bench, &shared), client(&bench, &shared), client(&bench, &shared)];
    for client in &clients {
        let (guard, asked) = (holder.mutex("a").acquire().await.unwrap(), bench.faults.ran(Operation::Acquire));
        let mutex = client.mutex("a");
        let waiter = tokio::spawn(async move { mutex.acquire().await.unwrap().release().await });
        until(|| bench.faults.ran(Operation::Acquire) > asked).await;
        guard.release().await.unwrap();
        until(|| waiter.is_finished()).await;
        assert!(waiter.await.unwrap().is_ok());
    }
}

fn waiting_claim(owner: u8) -> Claim {
    Claim {
        name: "a".parse().unwrap(),
        owner: Owner::from_random([owner; 16]),
        terms: Terms::exclusive(Ttl::DEFAULT),
        width: Width::ONE,
        floor: None,
        note: Note::from_wire("1@here"),
        queueing: Queueing::Wanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

/// A place belongs to an owner that no client of this backend knows any more. When its turn comes, the lock is passed on at
/// once.
#[tokio::test]
async fn a_turn_that_nobody_knows_is_given_back() {
    let bench = Bench::new();
    let (holder, shared) = (bench.client(), backend(&bench));
    let _clients = [client(&bench, &shared), client(&bench, &shared)];
    let guard = holder.mutex("a").acquire().await.unwrap();
    assert!(matches!(shared.acquire(&waiting_claim(7), SECOND).await, Ok(Answer::Queued { .. })));
    guard.release().await.unwrap();
    bench.becomes_free("a").await;
    assert_eq!(bench.faults.calls(Operation::Release), 2, "one for the guard, and one for the place");
}

/// An unanswered release of a place is repeated by its station; nobody else releases it.
#[tokio::test]
async fn a_turn_whose_release_is_pending_is_known() {
    let bench = Bench::new();
    let (holder, shared) = (bench.client(), backend(&bench));
    let (client, _other) = (client(&bench, &shared), client(&bench, &shared));
    let guard = holder.mutex("a").acquire().await.unwrap();
    bench.faults.fail_next(Operation::Release, Fault::Refused(ErrorKind::Unreachable));
    let mutex = client.mutex("a").wait(SECOND);
    let waiter = tokio::spawn(async move { mutex.acquire().await.is_err() });
    until(|| bench.faults.ran(Operation::Acquire) == 2).await;
    bench.clock.advance(SECOND);
    until(|| waiter.is_finished()).await;
    assert!(waiter.await.unwrap());
    until(|| bench.faults.calls(Operation::Release) == 1).await;
    let released = bench.faults.calls(Operation::Release);
    guard.release().await.unwrap();
    assert!(!bench.is_free("a").await, "it was handed over");
    assert_eq!(bench.faults.calls(Operation::Release), released + 1, "the guard's");
    bench.clock.advance(SECOND);
    bench.becomes_free("a").await;
}
