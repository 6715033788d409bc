//! The store for tokio. No verb ever waits: the mutex is held for microseconds and never across an await.

use std::sync::Arc;

use lock_core::{AsyncBackend, AsyncLayer, Immediate, Layer};
use lock_host::SharedClock;

use crate::{MemoryConfig, MemoryStore, blocking};

/// One async client of a store in this process.
///
/// No verb waits, so `within` never runs out; a call takes effect in full when its future is first polled.
#[derive(Debug)]
pub struct Memory(Arc<Immediate<blocking::Memory>>);

impl Memory {
    /// The only client of a new store on the host's clock.
    pub fn new() -> Self {
        MemoryStore::default().nonblocking()
    }

    /// The only client of a new store on `clock`.
    pub fn with_clock(clock: SharedClock) -> Self {
        MemoryStore::new(clock).nonblocking()
    }

    /// A new client of the store that `config` names.
    pub fn open(config: &MemoryConfig) -> Self {
        MemoryStore::open(config).nonblocking()
    }
}

impl MemoryStore {
    /// A new client for tokio.
    pub fn nonblocking(&self) -> Memory {
        Memory(Arc::new(Immediate::new(Arc::new(self.blocking()))))
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Layer for Memory {
    type Inner = Immediate<blocking::Memory>;

    fn inner(&self) -> &Arc<Self::Inner> {
        &self.0
    }
}

impl AsyncLayer for Memory {
    fn over(&self, inner: Arc<dyn AsyncBackend>) -> Arc<dyn AsyncBackend> {
        inner
    }
}
