//! A station together with the waiters and holders of this process.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use lock_core::station::{Action, Input, Join, Output, Station, TurnId};
use lock_core::{BackendError, Ended, Hold, Moment, Refusal};
use lock_host::{Alarms, NAP_MAX, Ring, Ringer, SharedClock, StationCell};

use crate::driver::Driver;
use crate::keeper::KeeperHandle;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

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
    /// Rung when nothing is pending and nothing is being run.
    quiet: Condvar,
    this: Weak<Self>,
}

struct Inner {
    station: Station,
    seats: BTreeMap<TurnId, Box<Seat>>,
    /// Actions that nobody runs yet.
    pending: VecDeque<Action>,
    /// How many threads run actions here, or wait and can be woken to.
    hands: usize,
    /// How many actions are being run.
    running: usize,
    /// The earliest alarm that is set. A later one is set when it rings.
    alarm_at: Option<Moment>,
}

/// What the station's answer to a waiter is.
pub(crate) type Verdict = Result<Arc<Hold>, Refusal>;

/// Where somebody waits for the station's word about its turn.
#[derive(Default)]
pub(crate) struct Seat {
    verdict: Option<Verdict>,
    ended: Option<Result<Ended, BackendError>>,
    bell: Arc<Condvar>,
    /// Whether a thread sleeps here that can be woken to run an action.
    asleep: bool,
}

impl Cell {
    pub(crate) fn new(ports: Arc<Ports>, station: Station) -> Arc<Self> {
        let (seats, pending) = (BTreeMap::new(), VecDeque::with_capacity(1));
        let inner = Inner { station, seats, pending, hands: 0, running: 0, alarm_at: None };
        let (ringer, inner, quiet) = (ports.alarms.ringer(), Mutex::new(inner), Condvar::new());
        Arc::new_cyclic(|this| Self { ports, ringer, inner, quiet, this: Weak::clone(this) })
    }

    /// Joins the line and waits for the verdict, running actions meanwhile.
    pub(crate) fn join(&self, join: Join) -> Verdict {
        let (turn, mut inner) = (join.turn, self.lock());
        inner.seats.insert(turn, Box::default());
        self.feed(&mut inner, Input::Join(join));
        let verdict = self.work(inner, turn, |inner| inner.seats.get_mut(&turn)?.verdict.take());
        if verdict.is_err() {
            self.lock().seats.remove(&turn);
            // What a waiter that is turned away leaves behind it clears itself: its process may end now.
            self.run_pending();
        }
        verdict
    }

    /// Ends the turn and waits until the store was told, running actions meanwhile; `None` if that was done before.
    pub(crate) fn leave(&self, turn: TurnId) -> Option<Result<Ended, BackendError>> {
        let mut inner = self.lock();
        inner.seats.get(&turn)?;
        self.feed(&mut inner, Input::Leave(turn));
        let ended = self.work(inner, turn, |inner| inner.seats.get_mut(&turn)?.ended.take());
        self.lock().seats.remove(&turn);
        Some(ended)
    }

    /// Sleeps until the hold is lost, but for at most `nap` at a time.
    pub(crate) fn nap_until_lost(&self, turn: TurnId, hold: &Hold, nap: Duration) {
        let inner = self.lock();
        if let Some(seat) = inner.seats.get(&turn).filter(|_| hold.lost().is_none()) {
            let bell = Arc::clone(&seat.bell);
            drop(bell.wait_timeout(inner, nap).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Runs what is pending, and what follows from it.
    pub(crate) fn run_pending(&self) {
        let mut inner = self.lock();
        inner.hands += 1;
        while let Some(action) = inner.pending.pop_front() {
            inner = self.run(inner, action);
        }
        inner.hands -= 1;
    }

    /// Runs what is pending, and waits for what others run.
    pub(crate) fn settle(&self) {
        self.run_pending();
        let busy = |inner: &mut Inner| inner.running > 0 || !inner.pending.is_empty();
        drop(self.quiet.wait_while(self.lock(), busy).unwrap_or_else(PoisonError::into_inner));
    }

    /// Runs actions and sleeps in turns, until `done` has something.
    fn work<'a, T>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        turn: TurnId,
        done: impl Fn(&mut Inner) -> Option<T>,
    ) -> T {
        inner.hands += 1;
        let result = loop {
            if let Some(result) = done(&mut inner) {
                break result;
            }
            inner = match inner.pending.pop_front() {
                Some(action) => self.run(inner, action),
                None => Self::sleep(inner, turn),
            };
        };
        inner.hands -= 1;
        self.find_hands(&mut inner);
        result
    }

    fn run<'a>(&'a self, mut inner: MutexGuard<'a, Inner>, action: Action) -> MutexGuard<'a, Inner> {
        inner.running += 1;
        drop(inner);
        let reply = self.ports.driver.run(action);
        let mut inner = self.lock();
        inner.running -= 1;
        self.feed(&mut inner, reply);
        Self::hand_on(&mut inner);
        if inner.running == 0 && inner.pending.is_empty() {
            self.quiet.notify_all();
        }
        inner
    }

    fn sleep(mut inner: MutexGuard<'_, Inner>, turn: TurnId) -> MutexGuard<'_, Inner> {
        let Some(seat) = inner.seats.get_mut(&turn) else { return inner };
        seat.asleep = true;
        let bell = Arc::clone(&seat.bell);
        let mut inner = bell.wait_timeout(inner, NAP_MAX).unwrap_or_else(PoisonError::into_inner).0;
        if let Some(seat) = inner.seats.get_mut(&turn) {
            seat.asleep = false;
        }
        inner
    }

    /// Wakes a thread that sleeps at its seat, if something is pending.
    fn hand_on(inner: &mut Inner) {
        if inner.pending.is_empty() {
            return;
        }
        if let Some(seat) = inner.seats.values_mut().find(|seat| seat.asleep) {
            seat.asleep = false;
            seat.bell.notify_all();
        }
    }

    /// Has what is pending run by threads that are here anyway, or else by the driver's: the present one does no I/O.
    fn find_hands(&self, inner: &mut Inner) {
        Self::hand_on(inner);
        if !inner.pending.is_empty()
            && inner.hands == 0
            && let Some(this) = self.this.upgrade()
        {
            self.ports.driver.see_to(this);
        }
    }

    /// Why waiters still wait, where the store fails.
    pub(crate) fn trouble(&self) -> Option<BackendError> {
        self.lock().station.trouble().cloned()
    }

    fn feed(&self, inner: &mut Inner, input: Input) {
        let now = self.ports.clock.now();
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

    fn carry_out(&self, inner: &mut Inner, output: Output) {
        match output {
            Output::Admit { turn, hold } => inner.tell(turn, |seat| seat.verdict = Some(Ok(hold))),
            Output::Refuse { turn, refusal } => inner.tell(turn, |seat| seat.verdict = Some(Err(refusal))),
            Output::Lose { turn, reason } => inner.tell(turn, |seat| seat.ended = Some(Ok(Ended::AlreadyLost(reason)))),
            Output::Ended { turn, result } => inner.tell(turn, |seat| seat.ended = Some(result)),
            Output::Run(action) => inner.pending.push_back(action),
            Output::Keep { lease, asked_at, valid_for } => self.ports.keeper.keep(lease, asked_at, valid_for),
            Output::Forget(owner) => self.ports.keeper.forget(owner),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn tell(&mut self, turn: TurnId, what: impl FnOnce(&mut Seat)) {
        if let Some(seat) = self.seats.get_mut(&turn) {
            what(seat);
            seat.bell.notify_all();
        }
    }
}

impl StationCell for Cell {
    fn handle(&self, input: Input) {
        let mut inner = self.lock();
        self.feed(&mut inner, input);
        self.find_hands(&mut inner);
    }

    fn close(&self) {
        // What has to be told to the store is left pending, for whoever closes.
        self.feed(&mut self.lock(), Input::Close);
    }

    fn is_idle(&self) -> bool {
        let inner = self.lock();
        inner.station.is_idle() && inner.seats.is_empty()
    }
}

impl Ring for Cell {
    fn ring(&self) {
        let mut inner = self.lock();
        inner.alarm_at = None;
        self.feed(&mut inner, Input::Tick);
        self.find_hands(&mut inner);
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
