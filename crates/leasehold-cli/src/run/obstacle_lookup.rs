//! Looks up what is in the way of a lock, on its own thread: a store that hangs must not delay the response to a signal.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

/// A thread that looks up the obstacle when asked.
#[derive(Debug)]
pub(super) struct ObstacleLookup {
    ask: SyncSender<()>,
    seen: Receiver<Option<String>>,
}

impl ObstacleLookup {
    /// Looks up the obstacle with this function, which may block.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(super) fn new(look: impl Fn() -> Option<String> + Send + 'static) -> io::Result<Self> {
        // Requests are not queued while the thread is busy.
        let (ask, asked) = sync_channel(0);
        let (tell, seen) = channel();
        thread::Builder::new()
            .name("obstacle-lookup".to_owned())
            .spawn(move || while asked.recv().is_ok() && tell.send(look()).is_ok() {})?;
        Ok(Self { ask, seen })
    }

    /// Asks for a lookup, unless one is in progress. Does not block.
    pub(super) fn ask(&self) {
        let _ = self.ask.try_send(());
    }

    /// The result of the last lookup, if it is new. Does not block.
    pub(super) fn latest(&self) -> Option<Option<String>> {
        self.seen.try_iter().last()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::RecvTimeoutError;
    use std::time::{Duration, Instant};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn who_asks_is_not_blocked_by_a_look_that_hangs() {
        let (started, starts) = channel();
        let (end, ends) = channel::<()>();
        let lookup = ObstacleLookup::new(move || {
            started.send(()).unwrap();
            assert_ne!(ends.recv_timeout(PATIENCE), Err(RecvTimeoutError::Timeout));
            Some("held".to_owned())
        });
        let lookup = lookup.unwrap();
        let until = Instant::now() + PATIENCE;
        while starts.try_recv().is_err() {
            assert!(Instant::now() < until, "no lookup was made");
            lookup.ask();
        }
        lookup.ask();
        assert_eq!(lookup.latest(), None, "the lookup continues");
        drop(end);
        let seen = lookup.seen.recv_timeout(PATIENCE).unwrap();
        assert_eq!(seen.as_deref(), Some("held"));
        assert_eq!(lookup.latest(), None, "asked during a lookup");
    }
}
