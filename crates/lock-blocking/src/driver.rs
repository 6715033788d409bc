//! Runs one action against the backend, on the thread that asks.

use std::fmt;
use std::sync::Arc;

use lock_core::BlockingBackend;
use lock_core::station::{Action, Input, Reply, Request};

/// The way to the backend.
pub(crate) struct Driver {
    backend: Arc<dyn BlockingBackend>,
}

impl Driver {
    pub(crate) fn new(backend: Arc<dyn BlockingBackend>) -> Self {
        Self { backend }
    }

    /// Runs an action; blocks for as long as it may take.
    pub(crate) fn run(&self, action: Action) -> Input {
        let Action { id, request, within } = action;
        let reply = match request {
            Request::Acquire(claim) => Reply::Acquire(self.backend.acquire(&claim, within)),
            Request::Release(parting) => Reply::Release(self.backend.release(&parting, within)),
        };
        Input::Reply(id, reply)
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}
