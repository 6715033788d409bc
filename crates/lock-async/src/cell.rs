//! A station together with the waiters and holders of this process.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use lock_core::station::{Input, Output, Station, TurnId};
use lock_core::{AcquireError, BackendError, Ended, Hold, LossReason, Moment, Owner, Refusal};
use lock_host::{Alarms, Ring, Ringer, SharedClock, StationCell};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};

use crate::driver::Driver;
use crate::keeper::KeeperHandle;

/// Where a cell's outputs go.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) clock: SharedClock,
    pub(crate) alarms: Alarms,
    pub(crate) driver: Driver,
    pub(crate) keeper: KeeperHandle,
}

/// A station and the seats of those who use it.
pub(crate) struct Cell {
    ports: Arc<Ports>,
    ringer: Ringer,
    inner: Mutex<Inner>,
    /// Told when a hold is lost.
    lost: Notify,
    this: Weak<Self>,
}

struct Inner {
    station: Station,
    condition: Condition,
    seats: HashMap<TurnId, Seat>,
    /// The earliest alarm that is set. A later one is set when it rings.
    alarm_at: Option<Moment>,
}

/// Whether the station can be relied on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Condition {
    #[default]
    Works,
    /// It panicked.
    Broken,
}

/// What the station's answer to a waiter is.
pub(crate) type Verdict = Result<Arc<Hold>, Refusal>;

/// Where somebody waits for the station's word about its turn.
pub(crate) struct Seat {
    pub(crate) verdict: Option<oneshot::Sender<Verdict>>,
    pub(crate) ended: Option<oneshot::Sender<Result<Ended, BackendError>>>,
    /// What its guard knows, once it holds.
    pub(crate) hold: Option<Arc<Hold>>,
}

impl Cell {
    pub(crate) fn new(ports: Arc<Ports>, station: Station) -> Arc<Self> {
        let inner =
            Mutex::new(Inner { station, condition: Condition::default(), seats: HashMap::new(), alarm_at: None });
        let (ringer, lost) = (ports.alarms.ringer(), Notify::new());
        Arc::new_cyclic(|this| Self { ports, ringer, inner, lost, this: Weak::clone(this) })
    }

    /// Takes a seat and joins the line.
    pub(crate) fn join(&self, seat: Seat, join: lock_core::station::Join) {
        let mut inner = self.lock();
        inner.seats.insert(join.turn, seat);
        self.feed(&mut inner, Input::Join(join));
    }

    /// Leaves the line, or ends the turn; `ended` hears how that went, if the turn is still on.
    pub(crate) fn leave(&self, turn: TurnId, ended: Option<oneshot::Sender<Result<Ended, BackendError>>>) {
        let mut inner = self.lock();
        if let Some(seat) = inner.seats.get_mut(&turn) {
            seat.ended = ended;
            self.feed(&mut inner, Input::Leave(turn));
        }
        // Who leaves the line hears no more of its turn.
        if inner.seats.get(&turn).is_some_and(|seat| seat.verdict.is_some()) {
            inner.seats.remove(&turn);
        }
    }

    /// Waits for the next loss of a hold here, from now on, whosever it is.
    pub(crate) fn a_loss(&self) -> Notified<'_> {
        self.lost.notified()
    }

    /// The way to the backend.
    pub(crate) fn driver(&self) -> &Driver {
        &self.ports.driver
    }

    /// Why waiters still wait, where the store fails.
    pub(crate) fn trouble(&self) -> Option<BackendError> {
        self.lock().station.trouble().cloned()
    }

    /// Tells the station what happened, and carries out what it says. Where it panics, or the clock does, this station
    /// ends, and nothing else: its waiters and holders are told.
    fn feed(&self, inner: &mut Inner, input: Input) {
        if inner.condition == Condition::Broken {
            return self.end(inner);
        }
        if catch_unwind(AssertUnwindSafe(|| self.feed_unguarded(inner, self.ports.clock.now(), input))).is_err() {
            inner.condition = Condition::Broken;
            // What it still knows to release is released.
            _ = catch_unwind(AssertUnwindSafe(|| self.feed_unguarded(inner, Moment::ORIGIN, Input::Close)));
            self.end(inner);
        }
    }

    fn feed_unguarded(&self, inner: &mut Inner, now: Moment, input: Input) {
        inner.station.handle_input(now, input);
        while let Some(output) = inner.station.poll_output() {
            self.carry_out(inner, output);
        }
        let wake = inner.station.next_wake();
        if let Some(at) = wake.filter(|wake| inner.alarm_at.is_none_or(|set| *wake < set)) {
            inner.alarm_at = Some(at);
            let this: Weak<Self> = Weak::clone(&self.this);
            self.ports.alarms.set(self.ringer, at, this);
        }
    }

    /// Tells everybody here that the station has ended.
    fn end(&self, inner: &mut Inner) {
        for (_, seat) in inner.seats.drain() {
            if let Some(hold) = seat.hold {
                hold.lose(LossReason::Closed);
                self.ports.keeper.forget(hold.lease().owner);
            }
            if let Some(verdict) = seat.verdict {
                _ = verdict.send(Err(Refusal::Error(AcquireError::Closed)));
            }
        }
        self.lost.notify_waiters();
    }

    fn carry_out(&self, inner: &mut Inner, output: Output) {
        match output {
            Output::Admit { turn, hold } => {
                if let Some(seat) = inner.seats.get_mut(&turn) {
                    seat.hold = Some(Arc::clone(&hold));
                }
                inner.tell(turn, Ok(hold));
            }
            Output::Refuse { turn, refusal } => {
                inner.tell(turn, Err(refusal));
                inner.seats.remove(&turn);
            }
            Output::Lose { turn, reason: _ } => {
                inner.seats.remove(&turn);
                self.lost.notify_waiters();
            }
            Output::Ended { turn, result } => {
                if let Some(ended) = inner.seats.remove(&turn).and_then(|seat| seat.ended) {
                    _ = ended.send(result);
                }
            }
            Output::Run(action) => {
                if let Some(this) = self.this.upgrade() {
                    self.ports.driver.run(this, action);
                }
            }
            Output::Keep { lease, asked_at, valid_for } => self.ports.keeper.keep(lease, asked_at, valid_for),
            Output::Forget(owner) => self.ports.keeper.forget(owner),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn tell(&mut self, turn: TurnId, verdict: Verdict) {
        if let Some(sender) = self.seats.get_mut(&turn).and_then(|seat| seat.verdict.take()) {
            // Nobody listens any more where the acquire was dropped; it leaves in its own name.
            _ = sender.send(verdict);
        }
    }
}

impl StationCell for Cell {
    fn handle(&self, input: Input) {
        self.feed(&mut self.lock(), input);
    }

    fn close(&self) {
        self.handle(Input::Close);
    }

    fn is_idle(&self) -> bool {
        let inner = self.lock();
        inner.station.is_idle() && inner.seats.is_empty()
    }

    fn knows(&self, owner: Owner) -> bool {
        self.lock().station.knows(owner)
    }
}

impl Ring for Cell {
    fn ring(&self) {
        let mut inner = self.lock();
        inner.alarm_at = None;
        self.feed(&mut inner, Input::Tick);
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.ports.alarms.unset(self.ringer);
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").field("station", &self.lock().station).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_core::station::TurnId;
    use lock_memory::MemoryStore;

    use crate::Client;

    /// A waiter that is cancelled again and again, beside one that stays, leaves nothing behind in this process either.
    #[tokio::test]
    async fn cancelled_waiters_leave_no_seats() {
        let store = MemoryStore::default();
        let client = Client::new(std::sync::Arc::new(store.nonblocking())).unwrap();
        let guard = client.mutex("a").acquire().await.unwrap();
        let waiting = tokio::spawn({
            let mutex = client.mutex("a");
            async move { mutex.acquire().await.map(drop) }
        });
        for _ in 0..100 {
            let mutex = client.mutex("a");
            _ = tokio::time::timeout(Duration::from_micros(10), mutex.acquire()).await;
        }
        let cell = client.cell("a");
        let seats: Vec<TurnId> = cell.lock().seats.keys().copied().collect();
        assert_eq!(seats.len(), 2, "{seats:?}");
        drop(guard);
        waiting.await.unwrap().unwrap();
    }
}
