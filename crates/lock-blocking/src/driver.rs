//! Runs actions against the backend: on the thread that asks, or on a few of its own where nobody else is there to.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lock_core::station::{Action, Input, Reply, Request};
use lock_core::{BackendError, BlockingBackend, Effect, ErrorKind, Operation};

use crate::cell::Cell;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, thread};

/// How many threads look after what nobody waits for. Chosen: one that hangs at the store does not hold up all others.
const THREADS_MAX: usize = 2;

/// The way to the backend.
pub(crate) struct Driver {
    backend: Arc<dyn BlockingBackend>,
    errands: Arc<Mutex<Errands>>,
}

/// Cells with pending actions that nobody runs, and the threads that do.
#[derive(Default)]
struct Errands {
    cells: VecDeque<Arc<Cell>>,
    threads: usize,
}

impl Driver {
    pub(crate) fn new(backend: Arc<dyn BlockingBackend>) -> Self {
        Self { backend, errands: Arc::default() }
    }

    /// Runs an action; blocks for as long as it may take. A backend that panics has given an unknown answer.
    pub(crate) fn run(&self, action: Action) -> Input {
        let Action { id, request, within } = action;
        let reply = match request {
            Request::Acquire(claim) => {
                Reply::Acquire(caught(Operation::Acquire, || self.backend.acquire(&claim, within)))
            }
            Request::Release(parting) => {
                Reply::Release(caught(Operation::Release, || self.backend.release(&parting, within)))
            }
        };
        Input::Reply(id, reply)
    }

    /// Has a cell's pending actions run by a thread of the driver's. Without one they stay until somebody comes; the
    /// ttl bounds what that can cost.
    pub(crate) fn see_to(&self, cell: Arc<Cell>) {
        let mut errands = lock(&self.errands);
        errands.cells.push_back(cell);
        if errands.threads < THREADS_MAX {
            let shared = Arc::clone(&self.errands);
            let started = thread::Builder::new().name("leasehold-errands".into()).spawn(move || run_errands(&shared));
            errands.threads += usize::from(started.is_ok());
        }
    }
}

fn run_errands(errands: &Mutex<Errands>) {
    loop {
        let mut present = lock(errands);
        let Some(cell) = present.cells.pop_front() else {
            present.threads -= 1;
            return;
        };
        drop(present);
        cell.run_pending();
    }
}

fn caught<T>(operation: Operation, ask: impl FnOnce() -> Result<T, BackendError>) -> Result<T, BackendError> {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|_| {
        Err(BackendError::new("client", operation, ErrorKind::Protocol, Effect::Unknown, "the backend panicked"))
    })
}

fn lock(errands: &Mutex<Errands>) -> MutexGuard<'_, Errands> {
    errands.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}
