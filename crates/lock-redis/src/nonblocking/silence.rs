//! How long a connection of a tokio client has answered nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// For how many further timeouts a connection may be silent after the first one before it is replaced.
const SILENT_TIMEOUTS: u32 = 2;

/// Since when a connection has answered nothing, and whether it ended.
pub(crate) struct Silence {
    opened: Instant,
    /// Milliseconds after `opened` plus one; 0 while answers come.
    since: AtomicU64,
    /// It reported its end itself, as connections with pushed messages do.
    ended: AtomicBool,
}

/// Whether a silent connection may still be of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Left,
    Over,
}

impl Default for Silence {
    /// The connection opens now.
    fn default() -> Self {
        Self { opened: Instant::now(), since: AtomicU64::new(0), ended: AtomicBool::new(false) }
    }
}

impl Silence {
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(crate) fn answered(&self) {
        if self.since.load(Ordering::Relaxed) != 0 {
            self.since.store(0, Ordering::Relaxed);
        }
    }

    /// A request timed out after `within`.
    pub(crate) fn timed_out(&self, within: Duration) -> Patience {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        match self.since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Patience::Left,
            Err(since) if Duration::from_millis(now.saturating_sub(since)) < within * SILENT_TIMEOUTS => Patience::Left,
            Err(_) => Patience::Over,
        }
    }
}
