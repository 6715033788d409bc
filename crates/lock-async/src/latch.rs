//! Waiting until a number of processes has arrived.

use std::time::Duration;

use lock_core::Operation;
use lock_core::latch::{LatchError, LatchState, Request, Seen, Step, Watching};
use lock_host::{CancelToken, NamedLatch};

use crate::both;
use crate::driver::{Driver, ask};
use crate::wake_signal::{Call, WakeSignal, sleep};

/// A latch by its name: it opens when as many have arrived as are expected. Made by [`Client::latch`](crate::Client::latch).
///
/// One process, the coordinator or a waiter, sets how many are expected with [`expect`](Self::expect). The others
/// [`arrive`](Self::arrive) and need to know neither that number nor each other. They may arrive before the number is set.
/// Callers of [`wait`](Self::wait) continue when all have arrived. The latch stays open until it is
/// [`reset`](Self::reset) or its [`ttl`](Self::ttl) expires.
///
/// The store keeps the arrivals, so they survive the end of the processes that arrived or wait. It does so for
/// the latch's own ttl, an hour if not set; each arrival, count and reset restarts it. A reboot forgets the
/// latches of SQLite files.
///
/// A request that fails is repeated for up to 10 s, and counts once even if its first attempt was not answered. The store
/// notifies waiters if it can push (Redis over a URL, memory); otherwise they poll, at least every quarter of a second.
///
/// **When not to use it.** A latch does not detect dead processes: if one dies before it arrives, the others wait until their
/// limit. To let one process at a time do something, use a [`Mutex`](crate::Mutex). To hand out work or results, use a queue or
/// a database. A quorum (`redlock://`) has no latches: each of its nodes would count on its own.
///
/// # Examples
/// ```
/// # mod leasehold { pub use lock_core::latch; }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = lock_memory::MemoryStore::default();
/// # let locks = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
/// use std::time::Duration;
/// use leasehold::latch::LatchError;
///
/// let loaded = locks.latch("load:2026-11-22");
/// loaded.expect(3).await?; // the coordinator
/// for shard in ["shard-1", "shard-2"] {
///     loaded.arrive_as(shard).await?; // in other processes; a shard that is loaded again counts once
/// }
/// match loaded.wait_for(Duration::from_millis(10)).await {
///     Err(error @ LatchError::TimedOut { .. }) => assert_eq!(error.missing(), Some(1)),
///     other => other?,
/// }
/// loaded.arrive_as("shard-3").await?;
/// loaded.wait().await?;
/// # Ok(())
/// # }
/// ```
#[both]
#[derive(Clone, Debug)]
#[must_use = "a latch does nothing until it is used"]
pub struct Latch(pub(crate) NamedLatch<Driver>);

#[both]
impl Latch {
    /// Sets how long the store keeps the latch after the latest arrival, count or reset: 100 ms to 365 days, an hour if not set.
    ///
    /// A request does not shorten the time that is left. When it has passed, arrivals and count are forgotten.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.0.set_ttl(ttl);
        self
    }

    /// Ends calls when this token is cancelled, with the error `Cancelled`: waits, and repetitions of a request that fails. A
    /// request that was sent may still take effect. A token that is already cancelled ends a call without a request.
    ///
    /// Another thread can end a wait in this way. In async code, dropping the future also ends it.
    pub fn cancelled_by(mut self, token: &CancelToken) -> Self {
        self.0.cancel(token);
        self
    }

    /// Sets how many arrivals are expected: 1 to 100,000. The same number again changes nothing.
    ///
    /// The number is for the epoch that is present when the call begins. If that is reset during the call, the number is not
    /// set for the new one, and the state that is returned shows that one.
    ///
    /// # Errors
    /// `OtherCount` if another number is set for this epoch, which stays; `Expired` if the ttl of the latch passed during
    /// the call; `Invalid` for an invalid number, name or ttl;
    /// `Backend` if the store failed or has no latches; `Closed` if this client was closed.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: the number may or may not be set. Setting it again is harmless.
    ///
    /// # Blocking
    /// Until the store has answered; for at most 10 s and an operation timeout.
    pub async fn expect(&self, count: u32) -> Result<LatchState, LatchError> {
        let call = self.0.call(WakeSignal::default())?;
        let count = call.count(count)?;
        let made = call.stored(insist(&call, &call.make()).await?)?;
        if made.expected.is_some() {
            return call.agreed(count, made);
        }
        let seen = insist(&call, &call.expectation(count, &made)).await?;
        call.expected(count, &made, seen)
    }

    /// Arrives under a new id: each call counts.
    ///
    /// Returns the latch as it is then. Once it is open, later arrivals are not counted.
    ///
    /// # Errors
    /// `Invalid` for an invalid name or ttl; `Backend` if the store failed or has no latches; its effect says whether the
    /// arrival may have been counted; `Closed` if this client was closed.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have been counted, and another one would count again. If you may have to drop it, use
    /// [`arrive_as`](Self::arrive_as).
    ///
    /// # Blocking
    /// As [`expect`](Self::expect).
    pub async fn arrive(&self) -> Result<LatchState, LatchError> {
        self.arrive_with(None).await
    }

    /// Arrives under an id of 1 to 200 bytes, such as the name of a part of the work. An id counts once in each epoch,
    /// whichever process arrives under it.
    ///
    /// # Errors
    /// As [`arrive`](Self::arrive), and `Invalid` for an invalid id.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: the id may or may not have been counted. Arriving again is harmless.
    ///
    /// # Blocking
    /// As [`expect`](Self::expect).
    pub async fn arrive_as(&self, id: &str) -> Result<LatchState, LatchError> {
        self.arrive_with(Some(id)).await
    }

    async fn arrive_with(&self, id: Option<&str>) -> Result<LatchState, LatchError> {
        let call = self.0.call(WakeSignal::default())?;
        let request = call.arrival(id)?;
        call.stored(insist(&call, &request).await?)
    }

    /// The number of missing arrivals. `None` if the expected number is not set yet.
    ///
    /// # Errors
    /// As [`arrive`](Self::arrive).
    ///
    /// # Cancel safety
    /// Changes nothing.
    ///
    /// # Blocking
    /// As [`expect`](Self::expect).
    pub async fn remaining(&self) -> Result<Option<u32>, LatchError> {
        Ok(self.state().await?.and_then(|state| state.missing()))
    }

    /// The latch as it is now. `None` if nobody has used it, or its ttl has expired.
    ///
    /// # Errors
    /// As [`arrive`](Self::arrive).
    ///
    /// # Cancel safety
    /// Changes nothing.
    ///
    /// # Blocking
    /// As [`expect`](Self::expect).
    pub async fn state(&self) -> Result<Option<LatchState>, LatchError> {
        let call = self.0.call(WakeSignal::default())?;
        Ok(insist(&call, &call.read(Watching::Unwanted)).await?.state)
    }

    /// Waits until all that are expected have arrived, however long that takes.
    ///
    /// The wait is for the first epoch that it sees, the present one if there is one.
    ///
    /// # Errors
    /// `Reset` if that epoch was reset before it was complete; `Expired` if the ttl of the latch passed; `Invalid` for an
    /// invalid name or ttl; `Backend` for errors that are permanent, or if the store has no latches; `Closed` if this client
    /// was closed; `Cancelled` if the [token](Self::cancelled_by) of the latch was.
    ///
    /// # Cancel safety
    /// Changes nothing; can be dropped and called again.
    ///
    /// # Blocking
    /// Until all have arrived, or the client is closed.
    pub async fn wait(&self) -> Result<(), LatchError> {
        self.wait_until(None).await
    }

    /// Waits for at most this time. With a time of zero, it polls once.
    ///
    /// # Errors
    /// `TimedOut` when the time has passed, with the number of missing arrivals; those of [`wait`](Self::wait); `Backend` if the
    /// store did not answer at the end.
    ///
    /// # Cancel safety
    /// Changes nothing; can be dropped and called again. The call may return an operation timeout late.
    ///
    /// # Blocking
    /// For at most this time and two operation timeouts.
    pub async fn wait_for(&self, timeout: Duration) -> Result<(), LatchError> {
        self.wait_until(Some(timeout)).await
    }

    async fn wait_until(&self, timeout: Option<Duration>) -> Result<(), LatchError> {
        let call = self.0.call(WakeSignal::default())?;
        let (mut wait, read) = (call.wait(timeout)?, call.read(Watching::Wanted));
        loop {
            let context = call.context()?;
            let asked_at = call.now();
            match wait.step(asked_at) {
                Step::End(end) => return end,
                Step::Poll => {
                    let (name, latch) = (&read.name, Operation::Latch);
                    let answer = ask(context, name, latch, |store| store.latch(&read, call.within())).await;
                    wait.answered(asked_at, call.now(), answer);
                }
                Step::Sleep(until) => {
                    sleep(&call, until).await;
                    wait.notified(call.now());
                }
            }
        }
    }

    /// Begins a new epoch: arrivals and count of the present one are forgotten, and do not count for the new one.
    ///
    /// Waiters for the old epoch continue if it was complete, and otherwise get the error `Reset`. If several call
    /// this at the same time, one new epoch begins. A latch that nobody has used needs no reset.
    ///
    /// # Errors
    /// As [`arrive`](Self::arrive).
    ///
    /// # Cancel safety
    /// Can be dropped at any point: the epoch may or may not have ended.
    ///
    /// # Blocking
    /// Until the store has answered two requests, each as in [`expect`](Self::expect).
    pub async fn reset(&self) -> Result<(), LatchError> {
        let call = self.0.call(WakeSignal::default())?;
        // Repeating it ends no later epoch, because it names the one to end.
        if let Some(state) = insist(&call, &call.read(Watching::Unwanted)).await?.state {
            insist(&call, &call.reset(&state)).await?;
        }
        Ok(())
    }
}

/// Repeats a request until the store has answered.
#[both]
async fn insist(call: &Call<'_>, request: &Request) -> Result<Seen, LatchError> {
    let mut repeat = call.repeat()?;
    loop {
        let (context, name, latch) = (call.context()?, &request.name, Operation::Latch);
        match ask(context, name, latch, |store| store.latch(request, call.within())).await {
            Ok(seen) => return Ok(seen),
            Err(error) => sleep(call, repeat.failed(call.now(), error)?).await,
        }
    }
}
