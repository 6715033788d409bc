//! What a store tells a client unasked.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Lease, LockName};

/// A hint from the store. It may be lost, doubled, late or early; nothing depends on it but speed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A lease was handed over to a waiter of this client.
    Granted {
        /// What it holds now.
        lease: Lease,
        /// How long the store keeps it, from the hand-over.
        valid_for: Duration,
    },
    /// A lock became free, or may have.
    Freed {
        /// Which one.
        name: LockName,
    },
    /// Hints may have been missed: everybody who waits should ask again.
    RecheckAll,
}

/// Where a backend delivers events. Calling it never blocks for long and never calls back into the backend.
#[derive(Clone)]
pub struct EventSink(Arc<dyn Fn(Event) + Send + Sync>);

impl EventSink {
    /// Wraps what is to be done with each event.
    pub fn new(deliver: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(deliver))
    }

    /// Delivers one event.
    pub fn deliver(&self, event: Event) {
        (self.0)(event);
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSink")
    }
}
