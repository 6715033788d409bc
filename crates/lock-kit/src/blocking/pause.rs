//! Pauses that the end of a client cuts short.

use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use lock_host::{Member, Wake};

use crate::errors::ObserveError;

/// A thread that is woken when the client may have been closed.
struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// Waits for so long.
///
/// # Errors
/// `Closed` as soon as the client is closed.
pub(super) fn pause(lock: &Member, time: Duration) -> Result<(), ObserveError> {
    let whom: Arc<dyn Wake> = Arc::new(Sleeper(thread::current()));
    let client = lock.closing.wakes(&lock.name, Arc::downgrade(&whom));
    let began = Instant::now();
    while !client.is_over() {
        let left = time.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        thread::park_timeout(left);
    }
    Err(ObserveError::Closed)
}
