//! Runs actions against the backend: on the thread that asks, or on a few of its own where nobody else is there to.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use lock_core::station::{Action, Input, Reply, Request};
use lock_core::{BackendError, BlockingBackend, Operation, ReleaseRequest};
use lock_host::panicked;

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, thread};
use crate::threads::{Outstanding, Threads};

/// A station with the threads that wait or hold there.
pub(crate) type Site = lock_host::Site<Driver>;

/// The inside of a locked site.
pub(crate) type Locked<'a> = lock_host::Locked<'a, Driver>;

/// How many threads look after what nobody waits for. Chosen: as many locks can hang at the store, less one, before the
/// others are held up.
const THREADS_MAX: usize = 4;

/// How many threads a client that closes uses. Chosen: hundreds of locks are released in well under a second where a
/// request takes a few milliseconds.
const CLOSING_MAX: usize = 16;

/// The way to the backend.
pub(crate) struct Driver {
    pub(crate) backend: Arc<dyn BlockingBackend>,
    left: Arc<Mutex<Left>>,
}

/// What no thread of a user runs, and the threads that do.
#[derive(Default)]
struct Left {
    queue: VecDeque<Work>,
    threads: usize,
}

enum Work {
    /// The next action that is left at a site. A site is here once.
    Site(Arc<Site>),
    /// A release that no station is told of.
    Release(ReleaseRequest, Duration),
}

impl Driver {
    pub(crate) fn new(backend: Arc<dyn BlockingBackend>) -> Self {
        Self { backend, left: Arc::default() }
    }

    /// Asks the store; blocks for as long as it may take. A backend that panics has given an unknown answer.
    fn ask(&self, action: Action) -> Input {
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

    /// Has work done by a thread of the driver's. Tells whether there is one: without, it stays until the station hears
    /// of something else; the ttl bounds what that can cost.
    fn hand_in(&self, work: Work) -> bool {
        let mut left = lock(&self.left);
        if left.threads < THREADS_MAX {
            let (shared, backend) = (Arc::clone(&self.left), Arc::clone(&self.backend));
            let thread = thread::Builder::new().name("leasehold-driver".into());
            left.threads += usize::from(thread.spawn(move || work_through(&shared, &*backend)).is_ok());
        }
        let is_taken = left.threads > 0;
        if is_taken {
            left.queue.push_back(work);
        }
        is_taken
    }
}

impl lock_host::Driver for Driver {
    type Waiters = Threads;

    fn run(_: &Site, threads: &mut Threads, action: Action) {
        threads.push(action);
    }

    fn attend(site: &Site, threads: &mut Threads) {
        find_hands(site, threads);
    }

    fn release(&self, request: ReleaseRequest, within: Duration) {
        self.hand_in(Work::Release(request, within));
    }
}

/// Has what is pending run: claims by a thread that waits for its turn, what nobody here will run by the driver's. The
/// present thread does no I/O.
pub(crate) fn find_hands(site: &Site, threads: &mut Threads) {
    if threads.has_claim() {
        threads.wake_a_waiter();
    }
    if !threads.attended
        && threads.has_left()
        && let Some(this) = site.this()
    {
        threads.attended = site.ports().driver.hand_in(Work::Site(this));
    }
}

/// Runs an action on the present thread.
pub(crate) fn run<'a>(site: &'a Site, mut inner: Locked<'a>, action: Action) -> Locked<'a> {
    let id = action.id;
    inner.waiters.begin_running(&action);
    find_hands(site, &mut inner.waiters);
    drop(inner);
    let reply = site.ports().driver.ask(action);
    let mut inner = site.lock();
    inner.waiters.end_running(id);
    site.feed(&mut inner, reply);
    find_hands(site, &mut inner.waiters);
    if inner.waiters.settling > 0 {
        inner.waiters.quiet.notify_all();
    }
    inner
}

/// Runs one action that no thread of a user will run. Tells whether there is another one.
fn run_one(site: &Site) -> bool {
    let mut inner = site.lock();
    let action = inner.waiters.take_left();
    inner.waiters.attended = action.is_some();
    if let Some(action) = action {
        inner = run(site, inner, action);
        inner.waiters.attended = inner.waiters.has_left();
    }
    inner.waiters.attended
}

/// One action of a site after one of another: where a store does not answer for one lock, the others go on.
fn work_through(left: &Mutex<Left>, backend: &dyn BlockingBackend) {
    loop {
        let mut present = lock(left);
        let Some(work) = present.queue.pop_front() else {
            present.threads -= 1;
            return;
        };
        drop(present);
        // Whatever happens to one piece of work, the thread is there for the next, and counted.
        let more = catch_unwind(AssertUnwindSafe(|| work.run(backend))).unwrap_or(None);
        lock(left).queue.extend(more);
    }
}

impl Work {
    /// Does it, and gives it back if there is more to do.
    fn run(self, backend: &dyn BlockingBackend) -> Option<Self> {
        match self {
            Self::Site(site) => run_one(&site).then(|| Self::Site(site)),
            Self::Release(request, within) => {
                _ = caught(Operation::Release, || backend.release(&request, within));
                None
            }
        }
    }
}

/// Waits until everything up to the last of these is answered, but not beyond `until`. What follows from the answers is
/// not waited for.
pub(crate) fn settle(site: &Site, outstanding: Outstanding, until: Instant) {
    let mut inner = site.lock();
    let quiet = Arc::clone(&inner.waiters.quiet);
    inner.waiters.settling += 1;
    while !inner.waiters.is_settled(outstanding) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        inner = quiet.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    inner.waiters.settling -= 1;
}

/// Runs what is left at sites, on the present thread and on a few others, but begins nothing after `until`.
pub(crate) fn run_all(sites: Vec<Arc<Site>>, until: Instant) {
    let others = sites.len().min(CLOSING_MAX).saturating_sub(1);
    let sites = Arc::new(Mutex::new(sites));
    for _ in 0..others {
        let sites = Arc::clone(&sites);
        // Where none can be started, those that there are do it all.
        _ = thread::Builder::new().name("leasehold-closing".into()).spawn(move || work_off(&sites, until));
    }
    work_off(&sites, until);
}

fn work_off(sites: &Mutex<Vec<Arc<Site>>>, until: Instant) {
    let next = || lock(sites).pop();
    while let Some(site) = next() {
        while Instant::now() < until && run_one(&site) {}
        // Nobody waits for the rest any more.
        let mut inner = site.lock();
        inner.waiters.attended = false;
        find_hands(&site, &mut inner.waiters);
    }
}

/// What a backend answers; one that panics has given an unknown answer.
pub(crate) fn caught<T>(
    operation: Operation,
    ask: impl FnOnce() -> Result<T, BackendError>,
) -> Result<T, BackendError> {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|_| Err(panicked(operation)))
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
