//! Runs actions against the backend: on the thread that asks, or on a few of its own where nobody else is there to.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use lock_core::station::{Action, Input, Reply, Request};
use lock_core::{BackendError, BlockingBackend, Effect, ErrorKind, Operation, ReleaseRequest};

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

/// What no thread of a seat runs, and the threads that do.
#[derive(Default)]
struct Errands {
    queue: VecDeque<Errand>,
    threads: usize,
}

enum Errand {
    /// The next action that is left in a cell. A cell is here once.
    Cell(Arc<Cell>),
    /// A release that no station is told of.
    Release(ReleaseRequest, Duration),
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
            Request::Release(request) => {
                Reply::Release(caught(Operation::Release, || self.backend.release(&request, within)))
            }
        };
        Input::Reply(id, reply)
    }

    /// Has what is left in a cell run by a thread of the driver's. Tells whether there is one: without, it stays until the
    /// station hears of something else; the ttl bounds what that can cost.
    pub(crate) fn see_to(&self, cell: Arc<Cell>) -> bool {
        self.hand_in(Errand::Cell(cell))
    }

    /// Has a lease or a place released, once, if there is a thread for it.
    pub(crate) fn release(&self, request: ReleaseRequest, within: Duration) {
        self.hand_in(Errand::Release(request, within));
    }

    fn hand_in(&self, errand: Errand) -> bool {
        let mut errands = lock(&self.errands);
        if errands.threads < THREADS_MAX {
            let (shared, backend) = (Arc::clone(&self.errands), Arc::clone(&self.backend));
            let thread = thread::Builder::new().name("leasehold-errands".into());
            errands.threads += usize::from(thread.spawn(move || run_errands(&shared, &*backend)).is_ok());
        }
        let is_taken = errands.threads > 0;
        if is_taken {
            errands.queue.push_back(errand);
        }
        is_taken
    }
}

/// One action of a cell after one of another: where a store does not answer for one lock, the others go on.
fn run_errands(errands: &Mutex<Errands>, backend: &dyn BlockingBackend) {
    loop {
        let mut present = lock(errands);
        let Some(errand) = present.queue.pop_front() else {
            present.threads -= 1;
            return;
        };
        drop(present);
        // Whatever happens to one errand, the thread is there for the next, and counted.
        let more = catch_unwind(AssertUnwindSafe(|| errand.run(backend))).unwrap_or(None);
        lock(errands).queue.extend(more);
    }
}

impl Errand {
    /// Runs it, and gives it back if there is more to do.
    fn run(self, backend: &dyn BlockingBackend) -> Option<Self> {
        match self {
            Self::Cell(cell) => cell.run_one().then(|| Self::Cell(cell)),
            Self::Release(request, within) => {
                _ = caught(Operation::Release, || backend.release(&request, within));
                None
            }
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

/// What a backend answers; one that panics has given an unknown answer.
pub(crate) fn caught<T>(
    operation: Operation,
    ask: impl FnOnce() -> Result<T, BackendError>,
) -> Result<T, BackendError> {
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
