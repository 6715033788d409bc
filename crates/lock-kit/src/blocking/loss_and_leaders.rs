//! Waiting for a loss, and leaders, for threads: waits have a limit, work is not stopped, and leaders are an iterator.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use lock_core::Lost;
use lock_host::{NAP_MAX, Proof};

use super::all::{AllGuard, AllWatch};
use super::degrading::DegradingGuard;
use super::election::{Election, Leaders, Leadership};
use crate::election::{Leader, follows};
use crate::errors::{ElectionError, LeadershipLost, ObserveError};

/// How often a thread that waits for the loss of any lock of a set checks all of them. Chosen: much less than the time
/// that a lease has left when it is lost early.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl AllGuard {
    /// Waits until one of the locks is lost, but for at most `patience`. The others are held until this guard is released
    /// or dropped.
    ///
    /// # Blocking
    /// For at most `patience`.
    pub fn lost_within(&self, patience: Duration) -> Option<Lost> {
        self.watch().lost_within(patience)
    }
}

impl AllWatch {
    /// Waits until one of the locks is not held any more. `Some` if it was lost; `None` if the guard was dropped or
    /// released.
    ///
    /// # Blocking
    /// For as long as all locks are held.
    pub fn lost(&self) -> Option<Lost> {
        self.lost_within(Duration::MAX)
    }

    /// Waits until one of the locks is not held any more, but for at most `patience`. `Some` if it was lost. `None` if it
    /// was not, or not yet: [`has_ended`](Self::has_ended) tells which.
    ///
    /// # Blocking
    /// For at most `patience`. A loss ends the wait some 20 ms later at the latest.
    pub fn lost_within(&self, patience: Duration) -> Option<Lost> {
        let since = Instant::now();
        loop {
            if let Some(ended) = self.0.iter().find(|watch| watch.has_ended()) {
                return ended.lost_within(Duration::ZERO);
            }
            let left = patience.saturating_sub(since.elapsed());
            if left.is_zero() {
                return None;
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    }
}

impl DegradingGuard {
    /// Waits until the hold is lost, but for at most `patience`, as [`Guard::lost_within`](lock_blocking::Guard::lost_within). A guard of this process is not lost:
    /// for it, this sleeps that long and returns `None`.
    ///
    /// # Blocking
    /// For at most `patience`.
    pub fn lost_within(&self, patience: Duration) -> Option<Lost> {
        let Some(guard) = self.at_store() else {
            thread::sleep(patience);
            return None;
        };
        guard.lost_within(patience)
    }
}

impl Election {
    /// Campaigns, works while it leads, and campaigns again, until the work returns `Break`.
    ///
    /// A thread cannot be stopped: work that takes long has to [`check`](crate::Leading::check) the leadership between its steps, or to
    /// have another thread wait for its [`lost`](Leadership::lost), and to return in time. If the lease is not renewed, the leadership is
    /// lost the [`grace`](Self::grace) and a margin before the lease can expire. Then the campaign begins again when the work
    /// returns `Continue`. When the work returns `Break`, the leader resigns, and this returns the value.
    ///
    /// The work may pass clones of the leadership to other threads. The leader resigns when the last clone is dropped.
    ///
    /// # Errors
    /// `Acquire` if a campaign fails; a campaign outlasts transient store errors. `Lost` if the work returned `Break` after the leadership
    /// was lost.
    ///
    /// # Blocking
    /// Until the work returns `Break`.
    ///
    /// # Examples
    /// ```
    /// # mod leasehold { pub use lock_kit::blocking; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let locks = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// use std::ops::ControlFlow;
    /// use leasehold::blocking::Kit;
    ///
    /// let election = locks.election("scheduler").why("web-3:8080");
    /// let mut rounds = 0;
    /// let done = election.run_while_leader(|leadership| {
    ///     println!("raise the fence to {}, then read", leadership.write_token());
    ///     while rounds < 3 {
    ///         if leadership.check().is_err() {
    ///             return ControlFlow::Continue(()); // campaign again
    ///         }
    ///         rounds += 1; // ... schedule
    ///     }
    ///     ControlFlow::Break("done")
    /// });
    /// assert_eq!(done?, "done");
    /// # Ok(())
    /// # }
    /// ```
    pub fn run_while_leader<T>(
        &self,
        mut work: impl FnMut(Arc<Leadership>) -> ControlFlow<T>,
    ) -> Result<T, ElectionError> {
        loop {
            let leadership = Arc::new(self.campaign()?);
            let said = leadership.check().is_ok().then(|| work(Arc::clone(&leadership)));
            let led = leadership.check();
            let resigned = Arc::into_inner(leadership).map_or(Ok(()), Leadership::resign);
            if let ControlFlow::Break(outcome) = follows(said, led, resigned) {
                return Ok(outcome?);
            }
        }
    }
}

impl Leadership {
    /// Waits until this machine does not lead any more, and returns the reason. If the lease is not renewed, it returns the
    /// [`grace`](Election::grace) and a margin before the lease can expire.
    ///
    /// # Blocking
    /// For as long as this machine leads, so do not call it from the thread that does the work.
    pub fn lost(&self) -> LeadershipLost {
        loop {
            if let Some(lost) = self.lost_within(NAP_MAX) {
                return lost;
            }
        }
    }

    /// Waits until this machine does not lead any more, but for at most `patience`.
    ///
    /// # Blocking
    /// For at most `patience`.
    pub fn lost_within(&self, patience: Duration) -> Option<LeadershipLost> {
        let clock = Proof::clock(&self.guard);
        let until = clock.now() + patience;
        loop {
            let left = match self.left() {
                Ok(left) => left,
                Err(lost) => return Some(lost),
            };
            let patience = until.since(clock.now());
            if patience.is_zero() {
                return None;
            }
            _ = self.guard.lost_within(left.min(patience));
        }
    }
}

impl Leaders {
    /// Polls once more, not sooner than the [`pace`](Election::pace) says, and returns whether the leader has changed. For a thread
    /// that does other things in between.
    ///
    /// # Errors
    /// As [`changed`](Self::changed).
    ///
    /// # Blocking
    /// For the pace, and at most a second longer.
    pub fn look_again(&mut self) -> Result<bool, ObserveError> {
        self.look_on_time()
    }
}

/// The results of [`changed`](Self::changed). It ends after `Closed`.
impl Iterator for Leaders {
    type Item = Result<Option<Leader>, ObserveError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_change()
    }
}
