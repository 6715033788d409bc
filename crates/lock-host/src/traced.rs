//! The feature `tracing`: an event for each event, and a span for each acquisition.

use std::sync::Arc;
use std::time::Duration;

use lock_core::station::{Event, Outcome};
use lock_core::{FencingToken, LockName};
use tracing::field::Empty;
use tracing::{debug, debug_span, error, info, warn};

use crate::observer::{Observer, SharedObserver};

/// The observer of every client that emits the events.
pub(crate) fn observer(backend: &'static str) -> Option<SharedObserver> {
    Some(Arc::new(Emitter { backend }))
}

/// Emits an event for each event.
struct Emitter {
    backend: &'static str,
}

impl Observer for Emitter {
    fn observe(&self, event: &Event) {
        let backend = self.backend;
        match event {
            Event::Acquired { lock, token, waited, position, .. } => {
                let (token, waited_ms) = (token.get(), millis(*waited));
                debug!(target: "leasehold", %lock, token, backend, waited_ms, position = *position, "acquired");
            }
            Event::NotAcquired { lock, waited, outcome: outcome @ Outcome::Failed(error), .. } => {
                let (waited_ms, outcome) = (millis(*waited), outcome.name());
                warn!(target: "leasehold", %lock, backend, waited_ms, outcome, %error, "not acquired");
            }
            Event::NotAcquired { lock, waited, outcome, .. } => {
                let (waited_ms, holder, outcome) = (millis(*waited), outcome.holder().map(shown), outcome.name());
                debug!(target: "leasehold", %lock, backend, waited_ms, outcome, holder, "not acquired");
            }
            Event::WaitingLong { lock, waited, holder, error, .. } => {
                let waited_ms = millis(*waited);
                let (holder, error) = (holder.as_ref().map(shown), error.as_ref().map(shown));
                warn!(target: "leasehold", %lock, backend, waited_ms, holder, error, "waiting long");
            }
            Event::RenewedLate { lock, token, late, remaining, .. } => {
                let (token, late_ms, remaining_ms) = (token.get(), millis(*late), millis(*remaining));
                warn!(target: "leasehold", %lock, token, backend, late_ms, remaining_ms, "renewed late");
            }
            Event::Lost { lock, token, held, reason, .. } => {
                let (token, held_ms) = (token.get(), millis(*held));
                error!(target: "leasehold", %lock, token, backend, held_ms, %reason, "lost");
            }
            Event::Released { lock, token, held, .. } => {
                let (token, held_ms) = (token.get(), millis(*held));
                debug!(target: "leasehold", %lock, token, backend, held_ms, "released");
            }
            Event::Detached { lock, token, held, .. } => {
                let (token, held_ms) = (token.get(), millis(*held));
                debug!(target: "leasehold", %lock, token, backend, held_ms, "detached");
            }
            Event::ReleasePending { lock, token, error, .. } => {
                warn!(target: "leasehold", %lock, token = token.get(), backend, %error, "release pending");
            }
            Event::ReleaseGivenUp { lock, token, pending, .. } => {
                let (token, pending_ms) = (token.get(), millis(*pending));
                info!(target: "leasehold", %lock, token, backend, pending_ms, "release given up");
            }
            Event::Degraded { lock, waited, error, .. } => {
                let waited_ms = millis(*waited);
                warn!(target: "leasehold", %lock, backend, waited_ms, %error, "degraded");
            }
            Event::RequestFailed { lock, error, .. } => {
                debug!(target: "leasehold", %lock, backend, %error, "request failed");
            }
            Event::StoreUnavailable { error, .. } => {
                warn!(target: "leasehold", backend, %error, "store unavailable");
            }
            Event::StoreAvailable { after, .. } => {
                info!(target: "leasehold", backend, after_ms = millis(*after), "store available");
            }
            // An event of a later version of the core.
            event => debug!(target: "leasehold", backend, "{event}"),
        }
    }
}

/// The span of one call that asks for a lock. It is a child of the caller's span. It ends with the call, or shortly after it
/// once the observers are notified of its end.
#[derive(Clone)]
pub(crate) struct Acquisition(tracing::Span);

impl Acquisition {
    pub(crate) fn begin(lock: &LockName, backend: &'static str) -> Self {
        Self(debug_span!(target: "leasehold", "acquire", %lock, backend, outcome = Empty, token = Empty))
    }

    /// Runs something inside the span.
    pub(crate) fn run<T>(&self, inside: impl FnOnce() -> T) -> T {
        self.0.in_scope(inside)
    }

    pub(crate) fn succeeded(&self, token: FencingToken) {
        self.0.record("outcome", "acquired").record("token", token.get());
    }

    pub(crate) fn failed(&self, outcome: &Outcome) {
        self.0.record("outcome", outcome.name());
    }
}

fn shown(value: &impl ToString) -> String {
    value.to_string()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
