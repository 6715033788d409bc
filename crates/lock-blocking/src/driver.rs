//! Runs actions against the backend: on the thread that asks, or on a few of its own where nobody else is there to.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use lock_core::station::{Action, Input, Reply, Request};
use lock_core::{BackendError, BlockingBackend, Effect, ErrorKind, Operation};

use crate::cell::Cell;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, thread};

/// How many threads look after what nobody waits for. Chosen: as many locks can hang at the store, less one, before the
/// others are held up.
const THREADS_MAX: usize = 4;

/// How many threads a client that closes uses. Chosen: hundreds of locks are released in well under a second where a
/// request takes a few milliseconds.
const CLOSING_MAX: usize = 16;

/// The way to the backend.
pub(crate) struct Driver {
    backend: Arc<dyn BlockingBackend>,
    errands: Arc<Mutex<Errands>>,
}

/// Cells with something left that no thread of a seat runs, each once, and the threads that do.
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

    /// Has what is left in a cell run by a thread of the driver's. Tells whether there is one: without, it stays until the
    /// station hears of something else; the ttl bounds what that can cost.
    pub(crate) fn see_to(&self, cell: Arc<Cell>) -> bool {
        let mut errands = lock(&self.errands);
        if errands.threads < THREADS_MAX {
            let shared = Arc::clone(&self.errands);
            let started = thread::Builder::new().name("leasehold-errands".into()).spawn(move || run_errands(&shared));
            errands.threads += usize::from(started.is_ok());
        }
        let is_seen_to = errands.threads > 0;
        if is_seen_to {
            errands.cells.push_back(cell);
        }
        is_seen_to
    }
}

/// One action of a cell after one of another: where a store does not answer for one lock, the others go on.
fn run_errands(errands: &Mutex<Errands>) {
    loop {
        let mut present = lock(errands);
        let Some(cell) = present.cells.pop_front() else {
            present.threads -= 1;
            return;
        };
        drop(present);
        if cell.run_one() {
            lock(errands).cells.push_back(cell);
        }
    }
}

/// Runs what is left in cells, on the present thread and on a few others, but begins nothing after `until`.
pub(crate) fn run_all(cells: Vec<Arc<Cell>>, until: Instant) {
    let others = cells.len().min(CLOSING_MAX).saturating_sub(1);
    let cells = Arc::new(Mutex::new(cells));
    for _ in 0..others {
        let cells = Arc::clone(&cells);
        // Where none can be started, those that there are do it all.
        _ = thread::Builder::new().name("leasehold-closing".into()).spawn(move || work_off(&cells, until));
    }
    work_off(&cells, until);
}

fn work_off(cells: &Mutex<Vec<Arc<Cell>>>, until: Instant) {
    let next = || lock(cells).pop();
    while let Some(cell) = next() {
        while Instant::now() < until && cell.run_one() {}
        // Nobody waits for the rest any more.
        cell.hand_over();
    }
}

fn caught<T>(operation: Operation, ask: impl FnOnce() -> Result<T, BackendError>) -> Result<T, BackendError> {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|_| {
        Err(BackendError::new("client", operation, ErrorKind::Protocol, Effect::Unknown, "the backend panicked"))
    })
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}
