//! Connections that no request has.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long an unused connection is kept. Chosen: longer than the pauses of a busy client, and between renewals at the default ttl.
pub(crate) const IDLE_FOR: Duration = Duration::from_secs(30);

/// Unused connections, the latest last.
pub(crate) struct Idle<T> {
    clients: Mutex<Vec<(T, Instant)>>,
    /// How many are kept although nobody uses them.
    kept: usize,
}

impl<T> Idle<T> {
    pub(crate) fn keeping(kept: usize) -> Self {
        Self { clients: Mutex::new(Vec::new()), kept }
    }

    /// A connection, and for how long nobody has used it.
    pub(crate) fn take(&self) -> Option<(T, Duration)> {
        self.clients().pop().map(|(client, since)| (client, since.elapsed()))
    }

    /// Whether there are more now than are kept.
    pub(crate) fn put(&self, client: T) -> bool {
        let mut clients = self.clients();
        clients.push((client, Instant::now()));
        clients.len() > self.kept
    }

    /// Closes all.
    pub(crate) fn clear(&self) {
        self.clients().clear();
    }

    /// Closes what nobody has used for a while, except what is kept.
    pub(crate) fn close(&self) {
        let mut clients = self.clients();
        // The last one is used first.
        let unused = clients.iter().take_while(|(_, since)| since.elapsed() >= IDLE_FOR).count();
        let spare = clients.len().saturating_sub(self.kept);
        clients.drain(..unused.min(spare));
    }

    fn clients(&self) -> MutexGuard<'_, Vec<(T, Instant)>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
