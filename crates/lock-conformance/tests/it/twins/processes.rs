//! A twin that says that other processes reach its store, while each has its own.

use std::sync::Arc;
use std::time::Duration;

use lock_conformance::{Exemption, Facade, Harness};
use lock_core::{AsyncBackend, BlockingBackend};
use lock_host::{HostClock, SharedClock};
use lock_memory::MemoryStore;
use tokio::runtime::Handle;

use super::is_caught;

lock_conformance::child_process!(OneForEachProcess);

/// Its address leads to another store each time.
struct OneForEachProcess(MemoryStore);

impl Harness for OneForEachProcess {
    fn new() -> Self {
        Self(MemoryStore::default())
    }

    fn async_backend(&self, _runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Arc::new(self.0.nonblocking())
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(self.0.blocking())
    }

    fn clock(&self) -> SharedClock {
        Arc::new(HostClock)
    }

    fn elapse(&self, by: Duration) {
        std::thread::sleep(by);
    }

    fn exempt(&self, _colour: Facade) -> Vec<Exemption> {
        Vec::new()
    }

    fn address(&self) -> Option<String> {
        Some("nowhere".into())
    }

    fn attach(_address: &str) -> Self {
        Self::new()
    }
}

pub(super) const CAUGHT: &[&str] = &[
    "cross_process::processes_exclude_each_other",
    "cross_process::a_killed_holder_frees_the_lock_after_its_ttl_and_not_before",
    "cross_process::a_stopped_holder_knows_that_it_lost",
    "latching::arrivals_outlive_those_who_arrived",
    "cross_process::a_process_goes_on_with_the_lock_of_another",
];

#[test]
fn one_whose_processes_do_not_see_each_other() {
    is_caught::<OneForEachProcess>(SUITE_MODULE, CAUGHT);
}
