//! Waiting for a loss, and leaders, in async code: waits are dropped, work is stopped, and leaders are a stream.

use std::future::pending;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select, select_all};
use futures_util::stream::{Stream, unfold};
use lock_core::Lost;
use lock_host::NAP_MAX;

use super::all::{AllGuard, AllWatch};
use super::degrading::DegradingGuard;
use super::election::{Election, Leaders, Leadership};
use crate::election::{Leader, follows};
use crate::errors::{ElectionError, LeadershipLost, ObserveError};

impl AllGuard {
    /// Waits until one of the locks is lost, and returns the first loss. It resolves at the local deadline, or up to a second after a resume. The
    /// others are held until this guard is released or dropped.
    ///
    /// # Cancel safety
    /// Changes nothing; can be dropped and called again.
    pub async fn lost(&self) -> Lost {
        select_all(self.iter().map(|guard| Box::pin(guard.lost()))).await.0
    }
}

impl AllWatch {
    /// Waits until one of the locks is not held any more. `Some` if it was lost; `None` if the guard was dropped or
    /// released.
    ///
    /// # Cancel safety
    /// Changes nothing; can be dropped and called again.
    pub async fn lost(&self) -> Option<Lost> {
        select_all(self.0.iter().map(|watch| Box::pin(watch.lost()))).await.0
    }
}

impl DegradingGuard {
    /// Waits until the hold is lost, as [`Guard::lost`](lock_async::Guard::lost). A guard of this process is not lost.
    ///
    /// # Cancel safety
    /// Changes nothing; can be dropped and called again.
    pub async fn lost(&self) -> Lost {
        match self.at_store() {
            Some(guard) => guard.lost().await,
            None => pending().await,
        }
    }
}

impl Election {
    /// Campaigns, works while it leads, and campaigns again, until the work returns `Break`.
    ///
    /// If the leadership is lost, the work is stopped (dropped at its next await point): the [`grace`](Self::grace) and a margin before the
    /// lease can expire. So work that awaits something often enough has ended before the next leader begins. Then the campaign begins again, as it
    /// does when the work returns `Continue`. When the work returns `Break`, the leader resigns, and this returns the value.
    ///
    /// The work may pass clones of the leadership to tasks that it spawns. They are not stopped with it, so each waits for
    /// [`lost`](Leadership::lost) itself. The leader resigns when the last clone is dropped.
    ///
    /// # Errors
    /// `Acquire` if a campaign fails; a campaign outlasts transient store errors. `Lost` if the work returned `Break` after the leadership
    /// was lost.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work, and resigns or gives up the campaign in the background.
    ///
    /// # Examples
    /// ```
    /// # use lock_kit::nonblocking as leasehold;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let locks = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// use std::ops::ControlFlow;
    /// use leasehold::Kit;
    ///
    /// let election = locks.election("scheduler").why("web-3:8080");
    /// let leading = tokio::spawn(async move {
    ///     let led = election.run_while_leader(|leadership| async move {
    ///         println!("raise the fence to {}, then read", leadership.write_token());
    ///         println!("leads in term {}", leadership.term()); // ... schedule, until it is time to stop
    ///         ControlFlow::Break("done") // with `Continue`, it would campaign again
    ///     });
    ///     led.await
    /// });
    /// assert_eq!(leading.await??, "done");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run_while_leader<T, F>(&self, mut work: impl FnMut(Arc<Leadership>) -> F) -> Result<T, ElectionError>
    where
        F: Future<Output = ControlFlow<T>>,
    {
        loop {
            let leadership = Arc::new(self.campaign().await?);
            let said = match leadership.check() {
                // It could not be renewed when it was granted.
                Err(_) => None,
                Ok(()) => match select(pin!(leadership.lost()), pin!(work(Arc::clone(&leadership)))).await {
                    Either::Left(_) => None,
                    Either::Right((said, _)) => Some(said),
                },
            };
            let led = leadership.check();
            let resigned = match Arc::into_inner(leadership) {
                Some(leadership) => leadership.resign().await,
                None => Ok(()),
            };
            if let ControlFlow::Break(outcome) = follows(said, led, resigned) {
                return Ok(outcome?);
            }
        }
    }
}

impl Leadership {
    /// Waits until this machine does not lead any more, and returns the reason. If the lease is not renewed, it resolves the
    /// [`grace`](Election::grace) and a margin before the lease can expire.
    ///
    /// # Cancel safety
    /// Changes nothing; can be dropped and called again.
    pub async fn lost(&self) -> LeadershipLost {
        loop {
            match self.left() {
                // The timers of the system stop while it is suspended, so no sleep is trusted for longer.
                Ok(left) => _ = tokio::time::timeout(left.min(NAP_MAX), self.guard.lost()).await,
                Err(lost) => return lost,
            }
        }
    }
}

impl Leaders {
    /// The results of [`changed`](Self::changed).
    ///
    /// # Errors
    /// Each item may be an error of [`changed`](Self::changed). The stream continues after it, but ends after `Closed`.
    pub fn into_stream(self) -> impl Stream<Item = Result<Option<Leader>, ObserveError>> + Send {
        unfold(self, async |mut leaders| Some((leaders.next_change().await?, leaders)))
    }
}
