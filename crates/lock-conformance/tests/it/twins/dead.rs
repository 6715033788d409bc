//! A twin whose queue keeps the places of processes that have died.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, process};

use lock_conformance::{Exemption, Facade, Harness};
use lock_core::{Answer, AsyncBackend, BackendError, BlockingBackend, Claim, Immediate, Owner};
use lock_host::{HostClock, SharedClock};
use lock_memory::MemoryStore;
use tokio::runtime::Handle;

use super::cover::{Breakage, WITHIN, covered};
use super::is_caught;

lock_conformance::child_process!(WaitsForTheDead);

/// Long enough for another process to ask, and less than a place lasts.
const PATIENCE: Duration = Duration::from_secs(4);

/// A store for each process. They only see in a file who else has asked.
struct WaitsForTheDead {
    store: MemoryStore,
    asked: PathBuf,
}

/// The file of processes that have asked.
#[derive(Default)]
struct Queue {
    asked: PathBuf,
    known: AtomicUsize,
    /// The same store. A client of it that nobody uses is not notified of grants, and so gives none of them back.
    store: MemoryStore,
}

impl Breakage for Queue {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let me = process::id().to_string();
        let asked = fs::read_to_string(&self.asked).unwrap_or_default();
        let others = asked.lines().filter(|line| *line != me).count();
        for _ in self.known.swap(others, Ordering::SeqCst)..others {
            let ghost = Claim { owner: Owner::from_random([7; 16]), ..claim.clone() };
            BlockingBackend::acquire(&self.store.blocking(), &ghost, WITHIN)?;
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&self.asked).unwrap();
        writeln!(file, "{me}").unwrap();
        store.acquire(claim, WITHIN)
    }
}

impl WaitsForTheDead {
    fn backend(&self) -> Arc<dyn BlockingBackend> {
        let queue = Queue { asked: self.asked.clone(), store: self.store.clone(), ..Queue::default() };
        covered(Arc::new(self.store.blocking()), queue)
    }
}

impl Harness for WaitsForTheDead {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let name = format!("leasehold-twin-{}-{number}", process::id());
        Self::attach(std::env::temp_dir().join(name).to_str().unwrap())
    }

    fn async_backend(&self, _runtime: &Handle) -> Arc<dyn AsyncBackend> {
        Arc::new(Immediate::new(self.backend()))
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        self.backend()
    }

    fn clock(&self) -> SharedClock {
        Arc::new(HostClock)
    }

    fn elapse(&self, by: Duration) {
        std::thread::sleep(by);
    }

    fn exempt(&self, _facade: Facade) -> Vec<Exemption> {
        Vec::new()
    }

    fn address(&self) -> Option<String> {
        Some(self.asked.to_str().unwrap().to_owned())
    }

    fn attach(address: &str) -> Self {
        Self { store: MemoryStore::default(), asked: Path::new(address).to_owned() }
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }
}

impl Drop for WaitsForTheDead {
    fn drop(&mut self) {
        fs::remove_file(&self.asked).ok();
    }
}

pub(super) const CAUGHT: &[&str] = &["cross_process::a_killed_waiter_is_not_waited_for"];

#[test]
fn one_that_waits_for_the_dead() {
    is_caught::<WaitsForTheDead>(SUITE_MODULE, CAUGHT);
}
