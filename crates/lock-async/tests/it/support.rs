use std::sync::Arc;
use std::time::Duration;

use lock_async::Client;
use lock_host::ManualClock;
use lock_memory::MemoryStore;
use lock_memory::faults::{Faults, Faulty};

/// Longer than anything takes; a test that waits for so long has failed.
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
        let backend = Faulty::new(self.store.nonblocking(), &self.faults);
        Client::builder(Arc::new(backend)).clock(Arc::new(self.clock.clone())).build().unwrap()
    }

    /// Whether nothing is left of the lock: another client gets it at once.
    pub(crate) async fn is_free(&self, name: &str) -> bool {
        let probe =
            Client::builder(Arc::new(self.store.nonblocking())).clock(Arc::new(self.clock.clone())).build().unwrap();
        probe.mutex(name).try_acquire().await.unwrap().is_some()
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
