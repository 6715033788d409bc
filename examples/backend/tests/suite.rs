//! The store passes the suite that every backend passes, on a clock that is moved by hand.
#![cfg(test)]

use std::sync::Arc;
use std::time::Duration;

use example_backend::Vectors;
use lock_conformance::{Exemption, Facade, Fault, Faults, Harness, Need, OnCommand};
use lock_core::{AsyncBackend, BlockingBackend, Immediate};
use lock_host::{ManualClock, SharedClock};
use tokio::runtime::Handle;

lock_conformance::suite!(VectorsHarness);

struct VectorsHarness {
    clock: ManualClock,
    store: Vectors,
    faults: OnCommand,
}

impl Harness for VectorsHarness {
    fn new() -> Self {
        let clock = ManualClock::new();
        Self { store: Vectors::new(Arc::new(clock.clone())), clock, faults: OnCommand::default() }
    }

    fn async_backend(&self, _runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Arc::new(self.faults.cover(Immediate::new(Arc::new(self.store.clone()))))
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(self.faults.cover(self.store.clone()))
    }

    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(self.store.clone())
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

    fn exempt(&self, _facade: Facade) -> Vec<Exemption> {
        let reasons = [
            (Need::Fault(Fault::Hang), "a store in this process answers at once or never"),
            (Need::Fault(Fault::RestartWithData), "its locks end with the process"),
            (Need::Fault(Fault::RestartEmpty), "its locks end with the process"),
            (Need::Inspect, "it shows operators nothing"),
            (Need::Processes, "its locks never leave the process"),
        ];
        reasons.map(|(need, why)| Exemption::new(need, why)).to_vec()
    }
}
