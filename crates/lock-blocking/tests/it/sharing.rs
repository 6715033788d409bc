//! Several clients on one backend: which of them gets which event.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lock_blocking::Client;
use lock_core::{
    Answer, BlockingBackend, Claim, ErrorKind, Fairness, NameKind, Note, Operation, Owner, Queueing, Terms, Ttl, Width,
};
use lock_memory::faults::{Fault, Faulty};

use crate::support::{Bench, until};

const SECOND: Duration = Duration::from_secs(1);

fn backend(bench: &Bench) -> Arc<dyn BlockingBackend> {
    Arc::new(Faulty::new(bench.store.blocking(), &bench.faults))
}

fn client(bench: &Bench, backend: &Arc<dyn BlockingBackend>) -> Client {
    Client::builder(Arc::clone(backend)).clock(Arc::new(bench.clock.clone())).build().unwrap()
}

/// The clock stands still, so nobody asks again: a waiter that is not notified waits forever.
#[test]
fn all_clients_of_a_backend_learn_that_their_turn_has_come() {
    let bench = Bench::new();
    let (holder, shared) = (bench.client(), backend(&bench));
    let clients = [client(&bench, &shared), client(&bench, &shared), client(&bench, &shared)];
    for client in &clients {
        let (guard, asked) = (holder.mutex("a").acquire().unwrap(), bench.faults.ran(Operation::Acquire));
        let mutex = client.mutex("a");
        let waiter = thread::spawn(move || mutex.acquire().map(|guard| guard.release().is_ok()));
        until(|| bench.faults.ran(Operation::Acquire) > asked);
        guard.release().unwrap();
        until(|| waiter.is_finished());
        assert!(waiter.join().unwrap().unwrap());
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
#[test]
fn a_turn_that_nobody_knows_is_given_back() {
    let bench = Bench::new();
    let (holder, shared) = (bench.client(), backend(&bench));
    let _clients = [client(&bench, &shared), client(&bench, &shared)];
    let guard = holder.mutex("a").acquire().unwrap();
    assert!(matches!(shared.acquire(&waiting_claim(7), SECOND), Ok(Answer::Queued { .. })));
    guard.release().unwrap();
    bench.becomes_free("a");
    assert_eq!(bench.faults.calls(Operation::Release), 2, "one for the guard, and one for the place");
}

/// An unanswered release of a place is repeated by its station; nobody else releases it.
#[test]
fn a_turn_whose_release_is_pending_is_known() {
    let bench = Bench::new();
    let (holder, shared) = (bench.client(), backend(&bench));
    let (client, _other) = (client(&bench, &shared), client(&bench, &shared));
    let guard = holder.mutex("a").acquire().unwrap();
    bench.faults.fail_next(Operation::Release, Fault::Refused(ErrorKind::Unreachable));
    let mutex = client.mutex("a").wait(SECOND);
    let waiter = thread::spawn(move || mutex.acquire().is_err());
    until(|| bench.faults.ran(Operation::Acquire) == 2);
    bench.clock.advance(SECOND);
    until(|| waiter.is_finished());
    assert!(waiter.join().unwrap());
    let released = bench.faults.calls(Operation::Release);
    guard.release().unwrap();
    assert!(!bench.is_free("a"), "it was handed over");
    assert_eq!(bench.faults.calls(Operation::Release), released + 1, "the guard's");
    bench.clock.advance(SECOND);
    bench.becomes_free("a");
}
