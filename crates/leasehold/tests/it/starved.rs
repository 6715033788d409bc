//! A task that computes for long, on the runtime of its client, right after it has let a lock or a place in the queue go.

use std::future::{Future, poll_fn};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Poll;
use std::time::Duration;

use leasehold::{Client, blocking};
use test_support::bounds::Watchdog;
use test_support::{RedisServer, temp_dir};
use tokio::runtime::{Builder, Handle};

/// How long the tasks compute. The places that they leave last for ten seconds.
const COMPUTES: Duration = Duration::from_secs(9);

/// How long the others wait for the lock: much less.
const PATIENCE: Duration = Duration::from_secs(4);

/// How long a task waits for a lock that others hold.
const BRIEFLY: Duration = Duration::from_millis(300);

/// What a task leaves for its client to release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    Guard,
    AcquireDropped,
    AcquireTimedOut,
    AcquirePolledOnce,
    AcquirePolledTwice,
    TryAcquirePolledOnce,
    AdoptPolledOnce,
    DowngradePolledOnce,
    ReleaseDropped,
    Permit,
    PermitPolledTwice,
}

impl Leaves {
    const ALL: [Self; 11] = [
        Self::Guard,
        Self::AcquireDropped,
        Self::AcquireTimedOut,
        Self::AcquirePolledOnce,
        Self::AcquirePolledTwice,
        Self::TryAcquirePolledOnce,
        Self::AdoptPolledOnce,
        Self::DowngradePolledOnce,
        Self::ReleaseDropped,
        Self::Permit,
        Self::PermitPolledTwice,
    ];

    fn waits(self) -> bool {
        matches!(self, Self::AcquireDropped | Self::AcquireTimedOut)
    }

    async fn happen(self, locks: &Client, name: &str) {
        let mutex = locks.mutex(name);
        match self {
            Self::Guard => drop(mutex.acquire().await.unwrap()),
            Self::AcquireDropped => assert!(tokio::time::timeout(BRIEFLY, mutex.acquire()).await.is_err()),
            Self::AcquireTimedOut => assert!(mutex.wait(BRIEFLY).acquire().await.is_err()),
            Self::AcquirePolledOnce => polled(1, mutex.acquire()).await,
            Self::AcquirePolledTwice => polled(2, mutex.acquire()).await,
            Self::TryAcquirePolledOnce => polled(1, mutex.try_acquire()).await,
            Self::AdoptPolledOnce => {
                let ticket = mutex.acquire().await.unwrap().detach().await.unwrap();
                polled(1, mutex.adopt(&ticket)).await;
            }
            Self::DowngradePolledOnce => {
                polled(1, locks.rw_lock(name).write().acquire().await.unwrap().downgrade()).await
            }
            Self::ReleaseDropped => polled(1, mutex.acquire().await.unwrap().release()).await,
            Self::Permit => drop(locks.semaphore(name, 1).acquire().await.unwrap()),
            Self::PermitPolledTwice => polled(2, locks.semaphore(name, 1).acquire()).await,
        }
    }

    /// Another client gets the lock, though the task computes.
    fn is_over_soon(self, url: &str, runtime: &Handle, name: &str) {
        let others = blocking::connect(url).unwrap();
        let held = self.waits().then(|| others.mutex(name).acquire().unwrap());
        let ((left, has_left), (done, is_done)) = (channel(), channel());
        let (url, task_name) = (url.to_owned(), name.to_owned());
        runtime.spawn(async move {
            let locks = leasehold::connect(&url).await.unwrap();
            // So that its connections are open.
            locks.mutex("another").acquire().await.unwrap().release().await.unwrap();
            self.happen(&locks, &task_name).await;
            compute(&left, &is_done);
        });
        has_left.recv_timeout(COMPUTES).expect("the task lets go");
        held.into_iter().for_each(|guard| guard.release().unwrap());
        let taken = if matches!(self, Self::Permit | Self::PermitPolledTwice) {
            others.semaphore(name, 1).wait(PATIENCE).acquire().map(drop)
        } else {
            others.mutex(name).wait(PATIENCE).acquire().map(drop)
        };
        done.send(()).unwrap();
        taken.unwrap_or_else(|error| panic!("{self:?} at {name}: {error}"));
    }
}

/// Polls a future so many times, and drops it.
async fn polled<F: Future>(times: u32, future: F) {
    let mut future = Box::pin(future);
    for _ in 0..times {
        if poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// What keeps a thread of the runtime busy, until the test has seen enough.
fn compute(begins: &Sender<()>, ends: &Receiver<()>) {
    begins.send(()).unwrap();
    _ = ends.recv_timeout(COMPUTES);
}

fn nothing_waits_for_the_task(url: &str) {
    let _watchdog = Watchdog::over_this_test();
    for workers in [1, 4] {
        let runtime = Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap();
        for leaves in Leaves::ALL {
            leaves.is_over_soon(url, runtime.handle(), &format!("{workers} workers, {leaves:?}"));
        }
    }
    on_one_thread(|runtime| {
        for leaves in Leaves::ALL {
            leaves.is_over_soon(url, runtime, &format!("one thread, {leaves:?}"));
        }
    });
}

/// Does this beside a runtime that has one thread.
fn on_one_thread(test: impl FnOnce(&Handle)) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    let (over, is_over) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || runtime.block_on(is_over));
    test(&handle);
    drop(over);
    _ = thread.join().unwrap();
}

#[test]
fn in_memory() {
    nothing_waits_for_the_task("memory:starved");
}

#[test]
fn in_sqlite() {
    let directory = temp_dir();
    nothing_waits_for_the_task(&format!("sqlite:{}", directory.path().join("locks.db").display()));
}

#[test]
fn in_redis() {
    nothing_waits_for_the_task(&RedisServer::start().url());
}
