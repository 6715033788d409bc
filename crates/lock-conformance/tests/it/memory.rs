//! The reference backend on a clock that is moved by hand.

use std::sync::Arc;
use std::time::Duration;

use lock_conformance::{Exemption, Facade, Fault, Faults, Harness, Need, OnCommand};
use lock_core::{AsyncBackend, BlockingBackend};
use lock_host::{ManualClock, SharedClock};
use lock_memory::MemoryStore;
use tokio::runtime::Handle;

lock_conformance::suite!(MemoryHarness);

/// A store in this process.
pub(crate) struct MemoryHarness {
    clock: ManualClock,
    store: MemoryStore,
    faults: OnCommand,
}

const EXEMPT: [Exemption; 4] = [
    Exemption::new(Need::Fault(Fault::Hang), "a store in this process answers at once or never"),
    Exemption::new(Need::Fault(Fault::RestartWithData), "its locks and tokens end with the process, as it says"),
    Exemption::new(Need::Fault(Fault::RestartEmpty), "its locks and tokens end with the process, as it says"),
    Exemption::new(Need::Processes, "its locks and tokens never leave the process, as it says"),
];

impl Harness for MemoryHarness {
    fn new() -> Self {
        let clock = ManualClock::new();
        Self { store: MemoryStore::new(Arc::new(clock.clone())), clock, faults: OnCommand::default() }
    }

    fn async_backend(&self, _runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Arc::new(self.faults.cover(self.store.nonblocking()))
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(self.faults.cover(self.store.blocking()))
    }

    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(self.store.blocking())
    }

    fn clock(&self) -> SharedClock {
        Arc::new(self.clock.clone())
    }

    fn elapse(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn faults(&self) -> &dyn Faults {
        &self.faults
    }

    fn exempt(&self, _colour: Facade) -> Vec<Exemption> {
        EXEMPT.to_vec()
    }
}
