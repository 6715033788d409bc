//! The thread that owns a client's connection, and the queue of its requests.

use std::fmt;
use std::io;
use std::sync::mpsc::{self, SendError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Moment, Operation, to_the_millisecond};
use lock_host::{Alarm, Alarms, Clock, HostClock, Ring};
use tokio::sync::oneshot;

use crate::error::BACKEND;
use crate::error::refusal;
use crate::settings::Settings;
use crate::store::Store;
use crate::watcher::Watcher;

type Job = Box<dyn FnOnce(&mut Store) + Send>;

/// The part of its time for which a request may wait in line and for others. The rest is left for the disk, so that
/// "nothing has happened" is reported before "unknown" is.
const WAITING_PART: (u32, u32) = (9, 10);

/// Hands requests to a thread in their order, and answers each in time whatever the thread does.
///
/// The thread starts with the first request and ends, when all that was handed over is done, with this handle.
pub(crate) struct Worker {
    settings: Arc<Settings>,
    watcher: Arc<Watcher>,
    alarms: Arc<Alarms>,
    line: Mutex<Option<Sender<Job>>>,
}

impl Worker {
    pub(crate) fn new(settings: Arc<Settings>, watcher: Arc<Watcher>, alarms: Arc<Alarms>) -> Self {
        Self { settings, watcher, alarms, line: Mutex::default() }
    }

    /// A worker with a connection and a thread of its own for the same file.
    pub(crate) fn another(&self) -> Self {
        let watcher = Arc::new(Watcher::new(Arc::clone(&self.settings)));
        Self::new(Arc::clone(&self.settings), watcher, Arc::clone(&self.alarms))
    }

    /// Opens the file on the calling thread, so that problems with it show now.
    pub(crate) fn open(&self) -> Result<(), BackendError> {
        let mut store = self.store();
        store.open()?;
        *lock(&self.line) = Some(start(store).map_err(|error| no_thread(Operation::Connect, error))?);
        Ok(())
    }

    pub(crate) fn watcher(&self) -> &Watcher {
        &self.watcher
    }

    fn store(&self) -> Store {
        Store::unopened(Arc::clone(&self.settings), Arc::clone(&self.watcher))
    }

    /// Asks the store, and waits for the answer until `within` is over.
    ///
    /// # Errors
    /// Those of `work`, and `Timeout`, after which the request may still be carried out.
    ///
    /// # Cancel safety
    /// A dropped call is still carried out.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        operation: Operation,
        within: Duration,
        work: impl FnOnce(&mut Store, Moment) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let now = HostClock.now();
        let (sender, answer) = oneshot::channel();
        let reply = Arc::new(Reply { operation, within, sender: Mutex::new(Some(sender)) });
        let ring: Arc<dyn Ring> = Arc::<Reply<T>>::clone(&reply);
        let alarm = self.alarms.set(now + within, Arc::downgrade(&ring));
        drop(ring);
        let deadline = now + within / WAITING_PART.1 * WAITING_PART.0;
        self.submit(Box::new(move |store| reply.send(work(store, deadline))))
            .map_err(|error| no_thread(operation, error))?;
        let answer = answer.await;
        self.alarms.unset(alarm);
        answer.unwrap_or_else(|_| Err(thread_ended(operation)))
    }

    fn submit(&self, mut job: Job) -> io::Result<()> {
        let mut line = lock(&self.line);
        if let Some(sender) = line.as_ref() {
            match sender.send(job) {
                Ok(()) => return Ok(()),
                Err(SendError(unsent)) => job = unsent,
            }
        }
        let sender = start(self.store())?;
        // If the new thread has already ended, the caller learns it from the dropped reply.
        drop(sender.send(job));
        *line = Some(sender);
        Ok(())
    }
}

fn start(mut store: Store) -> io::Result<Sender<Job>> {
    let (sender, jobs) = mpsc::channel::<Job>();
    thread::Builder::new().name("leasehold-sqlite".into()).spawn(move || {
        for job in jobs {
            job(&mut store);
        }
    })?;
    Ok(sender)
}

pub(crate) fn no_thread(operation: Operation, error: io::Error) -> BackendError {
    let message = format!("no thread can be started: {error}");
    refusal(operation, ErrorKind::Unavailable, message).with_remedy("raise the limit on threads").with_source(error)
}

fn thread_ended(operation: Operation) -> BackendError {
    let message = "the thread that serves the file ended";
    BackendError::new(BACKEND, operation, ErrorKind::Unavailable, Effect::Unknown, message).with_remedy("try again")
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
    fn ring(&self, _: Alarm) {
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
    use lock_core::inspect::Query;

    use super::*;
    use crate::{SqliteConfig, Timing};

    fn worker(directory: &tempfile::TempDir) -> Worker {
        let config = SqliteConfig::new(directory.path().join("locks.db"));
        let settings = Arc::new(Settings::new(&config, Timing::of_host().unwrap()));
        let alarms = Arc::new(Alarms::start(Arc::new(HostClock)).unwrap());
        Worker::new(Arc::clone(&settings), Arc::new(Watcher::new(settings)), alarms)
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_disk_that_hangs_is_a_timeout_and_holds_up_nobody_elses_worker() {
        let directory = tempfile::tempdir().unwrap();
        let worker = worker(&directory);
        let (go_on, hang) = mpsc::channel::<()>();
        let stuck = worker.ask(Operation::Renew, Duration::from_millis(100), move |_, _| {
            hang.recv().unwrap();
            Ok(())
        });
        let error = block_on(stuck).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown));

        let another = worker.another();
        assert_eq!(block_on(another.ask(Operation::Renew, LONG, |_, _| Ok(7))).unwrap(), 7);
        go_on.send(()).unwrap();
        assert_eq!(block_on(worker.ask(Operation::Renew, LONG, |_, _| Ok(8))).unwrap(), 8);
    }

    #[test]
    fn a_request_whose_time_was_over_in_the_line_is_not_begun() {
        let directory = tempfile::tempdir().unwrap();
        let worker = worker(&directory);
        let answer = worker.ask(Operation::Renew, LONG, |store, _| store.list(&Query::all(), HostClock.now()));
        let error = block_on(answer).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None));
        assert!(!directory.path().join("locks.db").exists());
    }

    #[test]
    fn a_worker_that_panicked_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let worker = worker(&directory);
        let crash = worker.ask::<()>(Operation::Renew, LONG, |_, _| panic!("on purpose"));
        assert_eq!(block_on(crash).unwrap_err().effect(), Effect::Unknown);
        // The thread may still be ending, and one more request may be lost with it.
        let served = (0..100).any(|_| block_on(worker.ask(Operation::Renew, LONG, |_, _| Ok(()))).is_ok());
        assert!(served);
    }
}
