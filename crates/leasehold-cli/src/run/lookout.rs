//! Looks up what is in the way of a lock, on its own thread: a store that hangs must not delay the response to a signal.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

/// A thread that looks when asked.
#[derive(Debug)]
pub(super) struct Lookout {
    ask: SyncSender<()>,
    seen: Receiver<Option<String>>,
}

impl Lookout {
    /// Looks by `look`, which may block.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(super) fn new(look: impl Fn() -> Option<String> + Send + 'static) -> io::Result<Self> {
        // Requests are not queued while the thread is busy.
        let (ask, asked) = sync_channel(0);
        let (tell, seen) = channel();
        thread::Builder::new()
            .name("lookout".to_owned())
            .spawn(move || while asked.recv().is_ok() && tell.send(look()).is_ok() {})?;
        Ok(Self { ask, seen })
    }

    /// Asks for a look, unless one is in progress. Does not block.
    pub(super) fn ask(&self) {
        let _ = self.ask.try_send(());
    }

    /// The result of the last look, if it is new. Does not block.
    pub(super) fn news(&self) -> Option<Option<String>> {
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
        let lookout = Lookout::new(move || {
            started.send(()).unwrap();
            assert_ne!(ends.recv_timeout(PATIENCE), Err(RecvTimeoutError::Timeout));
            Some("held".to_owned())
        });
        let lookout = lookout.unwrap();
        let until = Instant::now() + PATIENCE;
        while starts.try_recv().is_err() {
            assert!(Instant::now() < until, "no look was taken");
            lookout.ask();
        }
        lookout.ask();
        assert_eq!(lookout.news(), None, "the look goes on");
        drop(end);
        let seen = lookout.seen.recv_timeout(PATIENCE).unwrap();
        assert_eq!(seen.as_deref(), Some("held"));
        assert_eq!(lookout.news(), None, "asked while it was looking");
    }
}
