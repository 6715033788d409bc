//! A station together with the waiters and holders of this process.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use lock_core::station::{Action, Input, Join, Output, Request, Station, TurnId};
use lock_core::{AcquireError, BackendError, Ended, Hold, LossReason, Moment, Owner, Refusal};
use lock_host::{Alarms, NAP_MAX, Ring, Ringer, SharedClock, StationCell};

use crate::driver::Driver;
use crate::keeper::KeeperHandle;
use crate::seats::{Condition, Inner, Outstanding, Presence, Seat, Verdict};
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
    /// Rung when something has been run that a thread waits for.
    quiet: Condvar,
    this: Weak<Self>,
}

impl Cell {
    pub(crate) fn new(ports: Arc<Ports>, station: Station) -> Arc<Self> {
        let (ringer, inner, quiet) = (ports.alarms.ringer(), Mutex::new(Inner::new(station)), Condvar::new());
        Arc::new_cyclic(|this| Self { ports, ringer, inner, quiet, this: Weak::clone(this) })
    }

    /// Joins the line and waits for the verdict, running claims meanwhile.
    pub(crate) fn join(&self, join: Join) -> Verdict {
        let (turn, mut inner) = (join.turn, self.lock());
        inner.seats.insert(turn, Box::new(Seat { presence: Presence::Here, ..Seat::default() }));
        self.feed(&mut inner, Input::Join(join));
        let (mut inner, verdict) = self.work(inner, turn, |seat| seat.verdict.take());
        if verdict.is_ok() {
            inner.seats.entry(turn).and_modify(|seat| seat.presence = Presence::Away);
        } else {
            // What a waiter that is turned away leaves behind it clears itself: its process may end now.
            if let Some(release) = inner.take_own(turn) {
                inner = self.run(inner, release);
            }
            inner.seats.remove(&turn);
        }
        self.find_hands(&mut inner);
        verdict
    }

    /// Ends the turn and waits until the store was told; `None` if that was done before.
    pub(crate) fn leave(&self, turn: TurnId) -> Option<Result<Ended, BackendError>> {
        let mut inner = self.lock();
        inner.seats.get_mut(&turn)?.presence = Presence::Here;
        self.feed(&mut inner, Input::Leave(turn));
        let (mut inner, ended) = self.work(inner, turn, |seat| seat.ended.take());
        inner.seats.remove(&turn);
        self.find_hands(&mut inner);
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

    /// Runs one action that no thread of a seat will run. Tells whether there is another one.
    pub(crate) fn run_one(&self) -> bool {
        let mut inner = self.lock();
        let action = inner.take(Inner::is_left);
        inner.attended = action.is_some();
        if let Some(action) = action {
            inner = self.run(inner, action);
            inner.attended = inner.has_left();
        }
        inner.attended
    }

    /// Leaves what no thread of a seat will run to the driver's threads.
    pub(crate) fn hand_over(&self) {
        let mut inner = self.lock();
        inner.attended = false;
        self.find_hands(&mut inner);
    }

    /// What the store has not answered yet, if there is anything.
    pub(crate) fn outstanding(&self) -> Option<Outstanding> {
        let inner = self.lock();
        let all = || inner.actions();
        Some(Outstanding { last: all().map(|(id, _)| id).max()?, longest: all().map(|(_, within)| within).max()? })
    }

    /// Waits until everything up to the last of these is answered, but not beyond `until`. What follows from the answers is
    /// not waited for.
    pub(crate) fn settle(&self, outstanding: Outstanding, until: Instant) {
        let mut inner = self.lock();
        inner.settling += 1;
        while inner.actions().any(|(id, _)| id <= outstanding.last) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            inner = self.quiet.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        inner.settling -= 1;
    }

    /// Runs what is for this seat to run and sleeps in turns, until `done` has something.
    fn work<'a, T>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        turn: TurnId,
        done: impl Fn(&mut Seat) -> Option<T>,
    ) -> (MutexGuard<'a, Inner>, T) {
        loop {
            if let Some(result) = inner.seats.get_mut(&turn).and_then(|seat| done(seat)) {
                return (inner, result);
            }
            inner = match inner.take_own(turn) {
                Some(action) => self.run(inner, action),
                None => self.sleep(inner, turn),
            };
        }
    }

    fn run<'a>(&'a self, mut inner: MutexGuard<'a, Inner>, action: Action) -> MutexGuard<'a, Inner> {
        let id = action.id;
        inner.running.push((id, action.within));
        self.find_hands(&mut inner);
        drop(inner);
        let reply = self.ports.driver.run(action);
        let mut inner = self.lock();
        inner.running.retain(|(other, _)| *other != id);
        self.feed(&mut inner, reply);
        self.find_hands(&mut inner);
        if inner.settling > 0 {
            self.quiet.notify_all();
        }
        inner
    }

    fn sleep<'a>(&'a self, mut inner: MutexGuard<'a, Inner>, turn: TurnId) -> MutexGuard<'a, Inner> {
        self.find_hands(&mut inner);
        let Some(seat) = inner.seats.get_mut(&turn) else { return inner };
        seat.presence = Presence::Asleep;
        let bell = Arc::clone(&seat.bell);
        let mut inner = bell.wait_timeout(inner, NAP_MAX).unwrap_or_else(PoisonError::into_inner).0;
        if let Some(seat) = inner.seats.get_mut(&turn) {
            seat.presence = Presence::Here;
        }
        inner
    }

    /// Has what is pending run: claims by a thread that waits for its turn, what nobody here will run by the driver's. The
    /// present thread does no I/O.
    fn find_hands(&self, inner: &mut Inner) {
        if inner.pending.is_empty() {
            return;
        }
        if inner.pending.iter().any(|action| matches!(action.request, Request::Acquire(_))) {
            inner.wake_a_waiter();
        }
        if !inner.attended
            && inner.has_left()
            && let Some(this) = self.this.upgrade()
        {
            inner.attended = self.ports.driver.see_to(this);
        }
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
        inner.asked = inner.station.last_asked();
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
        for seat in inner.seats.values_mut() {
            let closed = || LossReason::Closed;
            match &seat.hold {
                Some(hold) => {
                    hold.lose(closed());
                    self.ports.keeper.forget(hold.lease().owner);
                    seat.ended.get_or_insert_with(|| Ok(Ended::AlreadyLost(closed())));
                }
                None => _ = seat.verdict.get_or_insert_with(|| Err(Refusal::Error(AcquireError::Closed))),
            }
            seat.bell.notify_all();
        }
    }

    fn carry_out(&self, inner: &mut Inner, output: Output) {
        match output {
            Output::Admit { turn, hold } => inner.tell(turn, |seat| {
                seat.owner = Some(hold.lease().owner);
                seat.hold = Some(Arc::clone(&hold));
                seat.verdict = Some(Ok(hold));
            }),
            Output::Refuse { turn, refusal } => {
                let asked = inner.asked.filter(|owner| !inner.is_a_holders(*owner));
                inner.tell(turn, |seat| {
                    seat.owner = asked;
                    seat.verdict = Some(Err(refusal));
                });
            }
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

impl StationCell for Cell {
    fn handle(&self, input: Input) {
        let mut inner = self.lock();
        self.feed(&mut inner, input);
        self.find_hands(&mut inner);
    }

    fn close(&self) {
        // Requests to the store stay pending; closing the client runs them.
        self.feed(&mut self.lock(), Input::Close);
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
