use std::sync::Arc;
use std::time::Duration;

use lock_blocking::Client;
use lock_host::ManualClock;
use lock_memory::MemoryStore;
use lock_memory::faults::{Faults, Faulty};
use test_support::bounds::Watchdog;

/// Longer than anything takes; a test that waits for so long has failed.
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
