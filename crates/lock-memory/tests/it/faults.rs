//! Faults on command, in async and blocking backends.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lock_core::inspect::Query;
use lock_core::{AsyncBackend, BlockingBackend, Effect, ErrorKind, Operation, Released};
use lock_memory::faults::{Fault, Faults, Faulty};
use lock_memory::{blocking, nonblocking};

use crate::support::*;

fn plain() -> (Faults, Faulty<blocking::Memory>) {
    let faults = Faults::new();
    let backend = Faulty::new(blocking::Memory::new(), &faults);
    (faults, backend)
}

fn asynchronous() -> (Faults, Faulty<nonblocking::Memory>) {
    let faults = Faults::new();
    let backend = Faulty::new(nonblocking::Memory::new(), &faults);
    (faults, backend)
}

#[test]
fn a_refused_call_never_reaches_the_store() {
    let (faults, backend) = plain();
    faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Unavailable));
    let error = backend.acquire(&claim(1), TTL).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None));
    assert_eq!((faults.calls(Operation::Acquire), faults.ran(Operation::Acquire)), (1, 0));
    assert_eq!(backend.release(&release_of(1), TTL).unwrap(), Released::NotHeld);
}

#[test]
fn a_call_takes_effect_although_its_reply_is_lost() {
    let (faults, backend) = plain();
    faults.fail_next(Operation::Acquire, Fault::LostReply);
    let error = backend.acquire(&claim(1), TTL).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown));
    assert_eq!(faults.ran(Operation::Acquire), 1);
    assert_eq!(backend.release(&release_of(1), TTL).unwrap(), Released::Released);
}

#[tokio::test]
async fn single_faults_come_first_in_order_and_then_the_permanent_one_until_it_is_healed() {
    let (faults, backend) = asynchronous();
    faults.fail_all(Operation::Acquire, Fault::Refused(ErrorKind::Unreachable));
    faults.fail_next(Operation::Acquire, Fault::LostReply);
    faults.fail_next(Operation::Acquire, Fault::Refused(ErrorKind::Denied));
    let mut kinds = Vec::new();
    for _ in 0..4 {
        kinds.push(backend.acquire(&claim(1), TTL).await.unwrap_err().kind());
    }
    assert_eq!(kinds, [ErrorKind::Timeout, ErrorKind::Denied, ErrorKind::Unreachable, ErrorKind::Unreachable]);
    faults.heal(Operation::Acquire);
    granted(backend.acquire(&claim(1), TTL).await.unwrap());
    assert_eq!((faults.calls(Operation::Acquire), faults.ran(Operation::Acquire)), (5, 2));
    assert_eq!(faults.calls(Operation::Release), 0);
}

#[test]
fn the_store_runs_a_call_whose_reply_is_held_back() {
    let (faults, backend) = asynchronous();
    faults.hold(Operation::Acquire);
    let claim = claim(1);
    let mut call = pin!(backend.acquire(&claim, TTL));
    let mut context = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut context).is_pending());
    assert_eq!(faults.ran(Operation::Acquire), 1);
    assert!(call.as_mut().poll(&mut context).is_pending());
    faults.let_go(Operation::Acquire);
    assert!(matches!(call.as_mut().poll(&mut context), Poll::Ready(Ok(_))));
}

#[tokio::test]
async fn letting_go_wakes_a_task() {
    let (faults, backend) = asynchronous();
    faults.hold(Operation::Acquire);
    let task = tokio::spawn(async move { backend.acquire(&claim(1), TTL).await });
    while faults.ran(Operation::Acquire) == 0 {
        tokio::task::yield_now().await;
    }
    assert!(!task.is_finished());
    faults.let_go(Operation::Acquire);
    granted(task.await.unwrap().unwrap());
}

#[test]
fn letting_go_wakes_a_thread() {
    let (faults, backend) = plain();
    faults.hold(Operation::Acquire);
    faults.fail_next(Operation::Acquire, Fault::LostReply);
    let thread = std::thread::spawn(move || backend.acquire(&claim(1), TTL));
    until("the claim", || faults.ran(Operation::Acquire) > 0);
    assert!(!thread.is_finished());
    faults.let_go(Operation::Acquire);
    until("the end of the thread", || thread.is_finished());
    assert_eq!(thread.join().unwrap().unwrap_err().kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn faults_also_apply_to_the_keepers_backend_and_to_inspection() {
    let (faults, backend) = asynchronous();
    faults.fail_all(Operation::Renew, Fault::Refused(ErrorKind::Unreachable));
    faults.fail_all(Operation::Inspect, Fault::Refused(ErrorKind::Denied));
    let query = Query::all();
    assert_eq!(backend.list(&query, TTL).await.unwrap_err().kind(), ErrorKind::Denied);
    let keeper = Arc::new(backend).for_keeper();
    assert_eq!(keeper.capabilities().backend, "memory");
    assert_eq!(keeper.renew(&[], TTL).await.unwrap_err().kind(), ErrorKind::Unreachable);

    let (faults, backend) = plain();
    faults.fail_all(Operation::Renew, Fault::Refused(ErrorKind::Unreachable));
    assert!(backend.list(&query, TTL).is_ok());
    let keeper = Arc::new(backend).for_keeper();
    assert_eq!(keeper.renew(&[], TTL).unwrap_err().kind(), ErrorKind::Unreachable);
}

/// Waits in steps until `done`.
#[track_caller]
fn until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..4000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("waited in vain for {what}");
}
