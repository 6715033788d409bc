//! The thread that serves the line of an async client.

use std::fmt;
use std::io;
use std::sync::mpsc::{self, SendError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Operation, to_the_millisecond};
use lock_host::{Alarm, Alarms, Clock, HostClock, Ring};
use tokio::sync::oneshot;

use crate::error::{BACKEND, refusal, thread_ended};
use crate::idle::Idle;
use crate::line::{Line, Serving};
use crate::queue::{Asked, Request};
use crate::settings::Settings;
use crate::store::Store;
use crate::verb::Verb;
use crate::watcher::Watcher;

/// The part of its time for which a request may wait in line and for other processes. The rest is for the disk, so that a
/// request that has to wait too long ends with "nothing has happened" and not with "unknown".
const WAITING_PART: (u32, u32) = (9, 10);

/// Serves requests on a thread, and answers each in time whatever the thread does.
///
/// The thread starts with the first request. After this handle is dropped, it ends once all requests are done.
pub(crate) struct Worker {
    settings: Arc<Settings>,
    watcher: Arc<Watcher>,
    alarms: Arc<Alarms>,
    line: Arc<Line>,
    thread: Mutex<Option<Sender<Serving>>>,
    /// A connection for another worker, opened before anything is granted.
    spare: Idle<Store>,
}

impl Worker {
    pub(crate) fn new(store: Store, alarms: Arc<Alarms>) -> Self {
        let (settings, watcher) = (store.settings(), store.watcher());
        Self { settings, watcher, alarms, line: Line::new(store), thread: Mutex::default(), spare: Idle::new(None) }
    }

    /// Opens the file on the calling thread, so that problems with it show now.
    pub(crate) fn open(settings: Arc<Settings>, alarms: Arc<Alarms>) -> Result<Self, BackendError> {
        let mut store = Store::unopened(settings);
        store.open()?;
        let spare = store.another()?;
        let worker = Self::new(store, alarms);
        *worker.spare.lock() = Some(spare);
        *lock(&worker.thread) = Some(start().map_err(|error| no_thread(Operation::Connect, error))?);
        Ok(worker)
    }

    /// A worker with a connection and a thread of its own for the same file.
    pub(crate) fn another(&self) -> Self {
        let opened = self.spare.take();
        Self::new(opened.unwrap_or_else(|| Store::unopened(self.settings.clone())), Arc::clone(&self.alarms))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn watcher(&self) -> &Watcher {
        &self.watcher
    }

    /// Asks the store, and waits for the answer until `within` is over.
    ///
    /// # Errors
    /// Those of the verb, and `Timeout`, after which the request may still be carried out.
    ///
    /// # Cancel safety
    /// A dropped call is still carried out.
    pub(crate) async fn ask<V: Verb>(&self, verb: V, within: Duration) -> Result<V::Answer, BackendError> {
        let now = HostClock.now();
        let (sender, answer) = oneshot::channel();
        let reply = Arc::new(Reply { operation: V::OPERATION, within, sender: Mutex::new(Some(sender)) });
        let ring: Arc<dyn Ring> = Arc::<Reply<V::Answer>>::clone(&reply);
        let alarm = self.alarms.set(now + within, Arc::downgrade(&ring));
        drop(ring);
        let deadline = now + within / WAITING_PART.1 * WAITING_PART.0;
        let request = Box::new(Asked::new(verb, deadline, move |answer| reply.send(answer)));
        self.submit(request).map_err(|error| no_thread(V::OPERATION, error))?;
        let answer = answer.await;
        self.alarms.unset(alarm);
        answer.unwrap_or_else(|_| Err(thread_ended(V::OPERATION)))
    }

    fn submit(&self, request: Box<dyn Request>) -> io::Result<()> {
        let mut thread = lock(&self.thread);
        let lead = match thread.take() {
            Some(running) => running,
            None => start()?,
        };
        let serving = self.line.join(request, lead.clone());
        let unsent = serving.and_then(|serving| lead.send(serving).err());
        *thread = Some(lead);
        if let Some(SendError(serving)) = unsent {
            // It has panicked.
            let again = start()?;
            drop(again.send(serving));
            *thread = Some(again);
        }
        Ok(())
    }
}

impl Drop for Worker {
    /// Has the file closed on the thread, because that writes.
    fn drop(&mut self) {
        if let Some(thread) = lock(&self.thread).take()
            && let Some(serving) = self.line.take()
        {
            drop(thread.send(serving));
        }
    }
}

fn start() -> io::Result<Sender<Serving>> {
    let (sender, line) = mpsc::channel::<Serving>();
    thread::Builder::new().name("leasehold-sqlite".into()).spawn(move || line.into_iter().for_each(Serving::serve))?;
    Ok(sender)
}

pub(crate) fn no_thread(operation: Operation, error: io::Error) -> BackendError {
    let message = format!("no thread can be started: {error}");
    refusal(operation, ErrorKind::Unavailable, message).with_remedy("raise the limit on threads").with_source(error)
}

/// Where one answer goes: from the store or the alarm, whichever is first.
struct Reply<T> {
    operation: Operation,
    within: Duration,
    sender: Mutex<Option<oneshot::Sender<Result<T, BackendError>>>>,
}

impl<T> Reply<T> {
    fn send(&self, answer: Result<T, BackendError>) {
        if let Some(sender) = lock(&self.sender).take() {
            // Nobody may wait any more.
            drop(sender.send(answer));
        }
    }
}

impl<T: Send + 'static> Ring for Reply<T> {
    fn ring(self: Arc<Self>, _: Alarm) {
        let message = format!("no answer from the file within {:?}", to_the_millisecond(self.within));
        let error = BackendError::new(BACKEND, self.operation, ErrorKind::Timeout, Effect::Unknown, message);
        self.send(Err(error.with_remedy("check whether the disk hangs")));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use lock_core::LockName;

    use super::*;
    use crate::verb::work;
    use crate::{SqliteConfig, Timing};

    fn worker(directory: &tempfile::TempDir) -> Worker {
        let config = SqliteConfig::new(directory.path().join("locks.db"));
        let settings = Arc::new(Settings::new(&config, Timing::of_host().unwrap()));
        Worker::new(Store::unopened(settings), Arc::new(Alarms::start(Arc::new(HostClock)).unwrap()))
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_disk_that_hangs_is_a_timeout_and_holds_up_nobody_elses_worker() {
        let directory = tempfile::tempdir().unwrap();
        let worker = worker(&directory);
        let (go_on, hang) = mpsc::channel::<u8>();
        let stuck = work(move |_| Ok(hang.recv().unwrap()));
        let error = block_on(worker.ask(stuck, Duration::from_millis(100))).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown));

        let name: LockName = "a".parse().unwrap();
        assert_eq!(block_on(worker.another().ask(name, LONG)).unwrap(), None);
        go_on.send(1).unwrap();
        assert_eq!(block_on(worker.ask(work(|_| Ok(8)), LONG)).unwrap(), 8);
    }

    #[test]
    fn a_worker_that_panicked_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let worker = worker(&directory);
        let crash = worker.ask(work(|_| -> Result<(), _> { panic!("on purpose") }), LONG);
        assert_eq!(block_on(crash).unwrap_err().effect(), Effect::Unknown);
        // The thread may still be ending, and one more request may be lost with it.
        let served = (0..100).any(|_| block_on(worker.ask(work(|_| Ok(())), LONG)).is_ok());
        assert!(served);
    }

    #[test]
    fn a_call_that_is_dropped_is_carried_out_beside_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let worker = worker(&directory);
        let (go_on, hang) = mpsc::channel::<u8>();
        let (tell, told) = mpsc::channel();
        let first = worker.ask(work(move |_| Ok(hang.recv().unwrap())), LONG);
        let last = block_on(async {
            let mut first = Box::pin(first);
            let mut dropped = Box::pin(worker.ask(work(move |_| Ok(tell.send(8).is_ok())), LONG));
            poll_fn(|cx| {
                assert!(first.as_mut().poll(cx).is_pending() && dropped.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            drop((first, dropped));
            go_on.send(1).unwrap();
            worker.ask(work(|_| Ok(7)), LONG).await
        });
        assert_eq!((last.unwrap(), told.try_recv()), (7, Ok(8)));
    }
}
