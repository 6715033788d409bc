//! The store passes the suite that every backend passes, over a network that is slow, reports conflicts and fails.
#![cfg(test)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use example_window::{Failure, Network, WindowServer};
use lock_conformance::{Exemption, Facade, Fault, Faults, Harness, Need};
use lock_core::{AsyncBackend, BlockingBackend};
use lock_host::{Bridge, Bridged, ManualClock, SharedClock};
use tokio::runtime::Handle;

lock_conformance::suite!(WindowHarness);

struct WindowHarness {
    clock: ManualClock,
    server: WindowServer,
    failing: Failing,
}

/// The network of all clients except bystanders.
#[derive(Default)]
struct Failing {
    network: Network,
    failed_before: AtomicU64,
}

impl WindowHarness {
    fn blocking(&self, network: Network) -> Arc<dyn BlockingBackend> {
        Arc::new(Bridged::new(Arc::new(self.server.client(network)), Bridge::start().unwrap()))
    }
}

impl Harness for WindowHarness {
    fn new() -> Self {
        let clock = ManualClock::new();
        Self { server: WindowServer::new(Arc::new(clock.clone())), clock, failing: Failing::default() }
    }

    fn async_backend(&self, _runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Arc::new(self.server.client(self.failing.network.clone()))
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        self.blocking(self.failing.network.clone())
    }

    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        self.blocking(Network::default())
    }

    fn clock(&self) -> SharedClock {
        Arc::new(self.clock.clone())
    }

    fn elapse(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn faults(&self) -> &dyn Faults {
        &self.failing
    }

    fn exempt(&self, _facade: Facade) -> Vec<Exemption> {
        let reasons = [
            (Need::Fault(Fault::RestartWithData), "its locks end with the process"),
            (Need::Fault(Fault::RestartEmpty), "its locks end with the process"),
            (Need::Inspect, "it shows operators nothing"),
            (Need::Processes, "its locks never leave the process"),
        ];
        reasons.map(|(need, why)| Exemption::new(need, why)).to_vec()
    }
}

impl Faults for Failing {
    fn offers(&self) -> &[Fault] {
        &[Fault::Cut, Fault::Hang, Fault::LoseReplies]
    }

    fn begin(&self, fault: Fault) {
        self.failed_before.store(self.network.failed(), Ordering::SeqCst);
        self.network.set(Some(match fault {
            Fault::Cut => Failure::Cut,
            Fault::Hang => Failure::Silent,
            Fault::LoseReplies => Failure::LostReplies,
            Fault::RestartWithData | Fault::RestartEmpty => panic!("the network cannot cause {fault}"),
        }));
    }

    fn fired(&self) -> u64 {
        self.network.failed() - self.failed_before.load(Ordering::SeqCst)
    }

    fn end(&self) {
        self.network.set(None);
    }
}
