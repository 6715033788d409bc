//! Requests that a waiting task runs itself, and what continues them when the task does not.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lock_async::{Client, Mutex};
use lock_core::{Operation, ReleaseRequest};
use lock_memory::faults::Faulty;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

use crate::support::{Bench, Hook, Hooked, Names, PATIENCE, Yielding, until};

const SECOND: Duration = Duration::from_secs(1);

/// A client, and the names of the events that its observer gets.
fn observed(bench: &Bench) -> (Client, Receiver<&'static str>) {
    let (sender, told) = channel();
    let backend = Arc::new(Faulty::new(bench.store.nonblocking(), &bench.faults));
    let builder = Client::builder(backend).clock(Arc::new(bench.clock.clone()));
    (builder.observer(Arc::new(Names(sender))).build().unwrap(), told)
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Waits until the observer gets this event, while everything else continues.
async fn is_told(told: &mut Receiver<&'static str>, what: &str) {
    for _ in 0..4000 {
        if told.try_recv().is_ok_and(|name| name == what) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("nobody was told of \"{what}\"");
}

/// A task runs its own acquire, and another task of this client waits for the same lock.
#[tokio::test]
async fn a_task_that_is_not_polled_holds_up_nobody_at_its_lock() {
    let bench = Bench::new();
    let (client, mut told) = observed(&bench);
    let mutex = client.mutex("a");
    bench.faults.hold(Operation::Acquire);
    let mut unpolled = pin!(mutex.acquire());
    assert!(poll(unpolled.as_mut()).is_pending());
    let next = tokio::spawn({
        let mutex = mutex.clone();
        async move { mutex.acquire().await.map(drop) }
    });
    tokio::task::yield_now().await;
    bench.faults.let_go(Operation::Acquire);
    is_told(&mut told, "acquired").await;
    drop(unpolled.await.unwrap());
    tokio::time::timeout(PATIENCE, next).await.expect("the next one gets the lock").unwrap().unwrap();
}

/// The request is taken away while its task sleeps. Then only the loop is woken when the store answers, and the task by
/// the answer.
#[tokio::test]
async fn a_task_whose_request_a_loop_continues_hears_the_answer() {
    let bench = Bench::new();
    let (begins, answers) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (asked, opened) = (Arc::clone(&begins), Arc::clone(&answers));
    let backend = Hooked::new(bench.store.nonblocking(), move |_: &ReleaseRequest| -> Hook {
        let (asked, opened) = (Arc::clone(&asked), Arc::clone(&opened));
        Box::pin(async move {
            asked.add_permits(1);
            _ = opened.acquire().await;
            Ok(())
        })
    });
    let client = bench.client_of(backend);
    let guard = client.mutex("a").acquire().await.unwrap();
    let releasing = tokio::spawn(guard.release());
    begins.acquire().await.unwrap().forget();
    let mutex = client.mutex("a");
    let mut next = pin!(mutex.acquire());
    assert!(poll(next.as_mut()).is_pending());
    // The loop polls the request, which is the one to be woken from here on.
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    answers.close();
    let released = tokio::time::timeout(PATIENCE, releasing).await;
    released.expect("the task hears the answer").unwrap().unwrap();
    drop(next.await.unwrap());
}

/// Another task of this client asks in the middle of the poll.
#[tokio::test]
async fn a_request_that_is_wanted_while_it_is_polled_goes_on() {
    let bench = Bench::new();
    let (came, gate) = (Arc::new(OnceLock::<Mutex>::new()), Arc::new(Semaphore::new(0)));
    let (comes, opens) = (Arc::clone(&came), Arc::clone(&gate));
    let backend = Hooked::new(bench.store.nonblocking(), move |_: &ReleaseRequest| -> Hook {
        let (comes, opens) = (Arc::clone(&comes), Arc::clone(&opens));
        Box::pin(async move {
            if let Some(other) = comes.get() {
                assert!(poll(pin!(other.acquire())).is_pending());
            }
            _ = opens.acquire().await;
            Ok(())
        })
    });
    let client = bench.client_of(backend);
    let guard = client.mutex("a").acquire().await.unwrap();
    came.set(client.mutex("a")).unwrap();
    let mut releasing = pin!(guard.release());
    assert!(poll(releasing.as_mut()).is_pending());
    gate.close();
    bench.becomes_free("a").await;
    releasing.await.unwrap();
}

/// There is no other task, so the alarm makes a loop continue the request.
#[tokio::test]
async fn a_request_of_a_task_that_is_not_polled_goes_on_after_a_second() {
    let bench = Bench::new();
    let (client, mut told) = observed(&bench);
    let mutex = client.mutex("a");
    bench.faults.hold(Operation::Acquire);
    let mut acquiring = pin!(mutex.acquire());
    assert!(poll(acquiring.as_mut()).is_pending());
    bench.faults.let_go(Operation::Acquire);
    bench.clock.advance(SECOND);
    is_told(&mut told, "acquired").await;
    bench.faults.hold(Operation::Release);
    let mut releasing = pin!(acquiring.await.unwrap().release());
    assert!(poll(releasing.as_mut()).is_pending());
    bench.faults.let_go(Operation::Release);
    bench.clock.advance(SECOND);
    is_told(&mut told, "released").await;
    releasing.await.unwrap();
}

/// A request that the user's task runs also counts as in flight.
#[tokio::test]
async fn closing_waits_for_a_release_that_a_task_runs() {
    let bench = Bench::new();
    let client = bench.client();
    let guard = client.mutex("a").acquire().await.unwrap();
    bench.faults.hold(Operation::Release);
    let mut releasing = pin!(guard.release());
    assert!(poll(releasing.as_mut()).is_pending());
    let mut closing = pin!(client.close());
    for _ in 0..100 {
        assert!(poll(closing.as_mut()).is_pending(), "the release is not answered yet");
        tokio::task::yield_now().await;
    }
    bench.faults.let_go(Operation::Release);
    tokio::time::timeout(PATIENCE, closing).await.expect("the release was answered");
    releasing.await.unwrap();
}

fn runtimes() -> [Runtime; 2] {
    [Builder::new_current_thread(), Builder::new_multi_thread()]
        .map(|mut builder| builder.enable_all().build().unwrap())
}

#[test]
fn a_claim_that_a_task_runs_as_the_runtime_ends_is_released() {
    for runtime in runtimes() {
        let bench = Bench::new();
        bench.faults.hold(Operation::Acquire);
        let _client = runtime.block_on(async {
            let (client, mutex) = (bench.client(), bench.client().mutex("a"));
            tokio::spawn(async move { mutex.acquire().await.map(drop) });
            until(|| bench.faults.ran(Operation::Acquire) == 1).await;
            client
        });
        drop(runtime);
        bench.faults.let_go(Operation::Acquire);
        runtimes()[0].block_on(bench.becomes_free("a"));
    }
}

/// The store had carried it out, so the second answer is that nothing is held.
#[test]
fn a_release_that_a_task_runs_as_the_runtime_ends_is_repeated() {
    for runtime in runtimes() {
        let bench = Bench::new();
        let (_client, told) = runtime.block_on(async {
            let (client, told) = observed(&bench);
            let guard = client.mutex("a").acquire().await.unwrap();
            bench.faults.hold(Operation::Release);
            tokio::spawn(guard.release());
            until(|| bench.faults.ran(Operation::Release) == 1).await;
            (client, told)
        });
        drop(runtime);
        bench.faults.let_go(Operation::Release);
        assert_eq!(told.recv_timeout(PATIENCE), Ok("acquired"));
        assert_eq!(told.recv_timeout(PATIENCE), Ok("released"));
    }
}

/// The task runs on another runtime than the client's, which ends first.
#[test]
fn a_task_on_another_runtime_goes_on_when_that_of_the_client_has_ended() {
    let bench = Bench::new();
    let [runtime, other] = runtimes();
    let client = runtime.block_on(async { bench.client() });
    let (early, late) = (client.mutex("a"), client.mutex("b"));
    other.block_on(async {
        let guard = early.acquire().await.unwrap();
        bench.faults.hold(Operation::Acquire);
        let mut acquiring = pin!(late.acquire());
        assert!(poll(acquiring.as_mut()).is_pending());
        tokio::task::spawn_blocking(move || drop(runtime)).await.unwrap();
        bench.faults.let_go(Operation::Acquire);
        // The outcome of the claim is unknown, and the keeper asks again, which is not at once.
        let clock = bench.clock.clone();
        let passing = async move {
            loop {
                clock.advance(SECOND / 10);
                tokio::time::sleep(SECOND / 100).await;
            }
        };
        let guard_of_late = tokio::select! {
            acquired = tokio::time::timeout(PATIENCE, acquiring) => acquired.expect("the keeper asks again").unwrap(),
            () = passing => unreachable!("it does not end"),
        };
        guard_of_late.release().await.unwrap();
        guard.release().await.unwrap();
        assert!(bench.is_free("a").await && bench.is_free("b").await);
    });
}

/// The same, but its task is not polled any more, so that the alarm is what ends the request.
#[test]
fn a_release_of_a_task_that_is_not_polled_goes_on_when_the_runtime_of_the_client_has_ended() {
    let bench = Bench::new();
    let [runtime, other] = runtimes();
    let (client, mut told) = runtime.block_on(async { observed(&bench) });
    other.block_on(async {
        let guard = client.mutex("a").acquire().await.unwrap();
        bench.faults.hold(Operation::Release);
        let mut releasing = pin!(guard.release());
        assert!(poll(releasing.as_mut()).is_pending());
        tokio::task::spawn_blocking(move || drop(runtime)).await.unwrap();
        bench.faults.let_go(Operation::Release);
        bench.clock.advance(SECOND);
        is_told(&mut told, "released").await;
        releasing.await.unwrap();
    });
}

/// Tasks that wait, hold, give up and leave at two locks, on several threads. No request is lost, and no task hangs.
#[test]
fn tasks_on_several_threads_hand_their_requests_over() {
    const TASKS: u64 = 8;
    const ROUNDS: u64 = 500;
    let bench = Bench::new();
    let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let client = bench.client_of(Yielding::new(bench.store.nonblocking()));
        let tasks = (0..TASKS).map(|task| {
            let locks = [client.mutex("a"), client.mutex("b")];
            tokio::spawn(async move {
                for round in 0..ROUNDS {
                    let lock = &locks[usize::from((task + round / 3) % 2 == 0)];
                    if (task + round) % 7 == 0 {
                        let mut given_up = pin!(lock.acquire());
                        _ = poll(given_up.as_mut());
                    }
                    let guard = tokio::time::timeout(PATIENCE, lock.acquire()).await.expect("nobody is stuck").unwrap();
                    guard.check().unwrap();
                    if (task + round) % 5 != 0 {
                        tokio::time::timeout(PATIENCE, guard.release()).await.expect("it is answered").unwrap();
                    }
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        client.close().await;
        assert!(bench.is_free("a").await && bench.is_free("b").await);
    });
}
