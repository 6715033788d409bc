use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use async_trait::async_trait;
use lock_async::Client;
use lock_core::{
    Answer, AsyncBackend, AsyncLayer, BackendError, BlockingBackend, Claim, Layer, Note, ReleaseRequest, Released,
};
use lock_host::{Event, ManualClock, Observer};
use lock_memory::MemoryStore;
use lock_memory::faults::{Faults, Faulty};
use lock_memory::nonblocking::Memory;

/// Longer than any step takes. A test that waits this long fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Bench {
    pub(crate) clock: ManualClock,
    pub(crate) store: MemoryStore,
    pub(crate) faults: Faults,
    _watchdog: test_support::bounds::Watchdog,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::new();
        let store = MemoryStore::new(Arc::new(clock.clone()));
        Self { store, clock, faults: Faults::new(), _watchdog: test_support::bounds::Watchdog::over_this_test() }
    }

    pub(crate) fn client(&self) -> Client {
        self.client_of(Faulty::new(self.store.nonblocking(), &self.faults))
    }

    pub(crate) fn client_of(&self, backend: impl AsyncBackend) -> Client {
        Client::builder(Arc::new(backend)).clock(Arc::new(self.clock.clone())).build().unwrap()
    }

    /// Whether nothing is left of the lock: another client gets it at once.
    pub(crate) async fn is_free(&self, name: &str) -> bool {
        let probe =
            Client::builder(Arc::new(self.store.nonblocking())).clock(Arc::new(self.clock.clone())).build().unwrap();
        match probe.mutex(name).try_acquire().await.unwrap() {
            Some(guard) => guard.release().await.is_ok(),
            None => false,
        }
    }

    /// How many places there are in the queue.
    pub(crate) fn places(&self, name: &str) -> u64 {
        let shown = self.store.blocking().holder(&name.parse().unwrap(), PATIENCE).unwrap();
        shown.map_or(0, |entry| entry.waiters.into())
    }

    /// Waits until nothing is left of the name, of whatever kind it was: while anything is, a mutex of it is refused.
    pub(crate) async fn becomes_unused(&self, name: &str) {
        let probe = self.client_of(self.store.nonblocking());
        for _ in 0..2000 {
            if let Ok(Some(guard)) = probe.mutex(name).try_acquire().await {
                return guard.release().await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{name} was never free");
    }

    pub(crate) async fn becomes_free(&self, name: &str) {
        for _ in 0..2000 {
            if self.is_free(name).await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{name} was never free");
    }
}

/// Waits in steps until `done`.
pub(crate) async fn until(done: impl Fn() -> bool) {
    for _ in 0..4000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came true");
}

/// A store that calls the test before each release, and releases only if the test returns `Ok`.
pub(crate) struct Hooked<F>(Arc<dyn AsyncBackend>, Arc<F>);

impl<F> Hooked<F> {
    pub(crate) fn new(store: Memory, hook: F) -> Self {
        Self(Arc::new(store), Arc::new(hook))
    }
}

impl<F> std::fmt::Debug for Hooked<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooked")
    }
}

/// What a hook does.
pub(crate) type Hook = futures_util::future::BoxFuture<'static, Result<(), BackendError>>;

impl<F: Fn(&ReleaseRequest) -> Hook + Send + Sync + 'static> Layer for Hooked<F> {
    type Inner = dyn AsyncBackend;

    fn inner(&self) -> &Arc<dyn AsyncBackend> {
        &self.0
    }
}

#[async_trait]
impl<F: Fn(&ReleaseRequest) -> Hook + Send + Sync + 'static> AsyncLayer for Hooked<F> {
    fn over(&self, inner: Arc<dyn AsyncBackend>) -> Arc<dyn AsyncBackend> {
        Arc::new(Self(inner, Arc::clone(&self.1)))
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        (self.1)(request).await?;
        self.0.release(request, within).await
    }
}

/// A store at which claims and releases wait before they are carried out, and again before the answer.
#[derive(Debug)]
pub(crate) struct Yielding(Arc<dyn AsyncBackend>);

/// How often a request waits, each time.
pub(crate) const YIELDS: usize = 2;

impl Yielding {
    pub(crate) fn new(store: Memory) -> Self {
        Self(Arc::new(store))
    }

    async fn wait(&self) {
        for _ in 0..YIELDS {
            tokio::task::yield_now().await;
        }
    }
}

impl Layer for Yielding {
    type Inner = dyn AsyncBackend;

    fn inner(&self) -> &Arc<dyn AsyncBackend> {
        &self.0
    }
}

#[async_trait]
impl AsyncLayer for Yielding {
    fn over(&self, inner: Arc<dyn AsyncBackend>) -> Arc<dyn AsyncBackend> {
        Arc::new(Self(inner))
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.wait().await;
        let answer = self.0.acquire(claim, within).await;
        self.wait().await;
        answer
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.wait().await;
        let answer = self.0.release(request, within).await;
        self.wait().await;
        answer
    }
}

/// Passes on the names of the events that it gets.
pub(crate) struct Names(pub(crate) Sender<&'static str>);

impl Observer for Names {
    fn observe(&self, event: &Event) {
        // The test may have ended.
        _ = self.0.send(event.name());
    }
}

/// Who ends the leases of others.
pub(crate) fn operator() -> Note {
    Note::new("console", 1, "it hangs").unwrap()
}
