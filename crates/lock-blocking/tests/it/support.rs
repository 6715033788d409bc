use std::sync::Arc;
use std::time::Duration;

use lock_blocking::Client;
use lock_core::{
    Answer, BackendError, BlockingBackend, BlockingLayer, Claim, Effect, ErrorKind, Layer, Lease, Note, Operation,
    ReleaseRequest, Released, Renewed,
};
use lock_host::ManualClock;
use lock_memory::MemoryStore;
use lock_memory::blocking::Memory;
use lock_memory::faults::{Faults, Faulty};
use test_support::bounds::Watchdog;

/// Longer than any step takes. A test that waits this long fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Bench {
    pub(crate) clock: ManualClock,
    pub(crate) store: MemoryStore,
    pub(crate) faults: Faults,
    _watchdog: Watchdog,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::new();
        let store = MemoryStore::new(Arc::new(clock.clone()));
        Self { store, clock, faults: Faults::new(), _watchdog: Watchdog::over_this_test() }
    }

    pub(crate) fn client(&self) -> Client {
        let backend = Faulty::new(self.store.blocking(), &self.faults);
        Client::builder(Arc::new(backend)).clock(Arc::new(self.clock.clone())).build().unwrap()
    }

    /// Whether nothing is left of the lock: another client gets it at once.
    pub(crate) fn is_free(&self, name: &str) -> bool {
        let probe =
            Client::builder(Arc::new(self.store.blocking())).clock(Arc::new(self.clock.clone())).build().unwrap();
        probe.mutex(name).try_acquire().unwrap().is_some()
    }

    pub(crate) fn becomes_free(&self, name: &str) {
        for _ in 0..2000 {
            if self.is_free(name) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{name} was never free");
    }
}

/// Waits in steps until `done`.
#[track_caller]
pub(crate) fn until(done: impl Fn() -> bool) {
    for _ in 0..4000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it never came true");
}

/// What is asked of a [`Hooked`] store, and how long it may take.
pub(crate) enum Ask<'a> {
    Acquire(Duration),
    Renew(Duration),
    Release(&'a ReleaseRequest, Duration),
}

/// A store that calls the test before each request, and runs the request only if the test returns `Ok`.
pub(crate) struct Hooked<F>(Arc<dyn BlockingBackend>, Arc<F>);

impl<F> Hooked<F> {
    pub(crate) fn new(store: Memory, hook: F) -> Self
    where
        F: Fn(Ask<'_>) -> Result<(), BackendError>,
    {
        Self(Arc::new(store), Arc::new(hook))
    }
}

impl<F> std::fmt::Debug for Hooked<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooked")
    }
}

impl<F> Layer for Hooked<F>
where
    F: Fn(Ask<'_>) -> Result<(), BackendError> + Send + Sync + 'static,
{
    type Inner = dyn BlockingBackend;

    fn inner(&self) -> &Arc<dyn BlockingBackend> {
        &self.0
    }
}

impl<F> BlockingLayer for Hooked<F>
where
    F: Fn(Ask<'_>) -> Result<(), BackendError> + Send + Sync + 'static,
{
    fn over(&self, inner: Arc<dyn BlockingBackend>) -> Arc<dyn BlockingBackend> {
        Arc::new(Self(inner, Arc::clone(&self.1)))
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        (self.1)(Ask::Acquire(within))?;
        self.0.acquire(claim, within)
    }

    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        (self.1)(Ask::Renew(within))?;
        self.0.renew(leases, within)
    }

    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        (self.1)(Ask::Release(request, within))?;
        self.0.release(request, within)
    }
}

/// No answer for as long as a request may take.
pub(crate) fn hang(ask: &Ask<'_>) -> BackendError {
    let (Ask::Acquire(within) | Ask::Renew(within) | Ask::Release(_, within)) = ask;
    std::thread::sleep(*within);
    unanswered()
}

pub(crate) fn unanswered() -> BackendError {
    BackendError::new("test", Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, "no answer")
}

/// Who ends the leases of others.
pub(crate) fn operator() -> Note {
    Note::new("console", 1, "it hangs").unwrap()
}
