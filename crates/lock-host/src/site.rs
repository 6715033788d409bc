//! A station together with the waiters and holders of this process.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lock_core::station::{Action, Event, Input, Outcome, Output, Station, TurnId};
use lock_core::{AcquireError, Backend, BackendError, Moment, Owner, Refusal, ReleaseRequest, Released};

use crate::alarms::{Alarm, Ring};
use crate::client_context::ClientContext;
use crate::notifying_guard::NotifyingGuard;
use crate::pending_events::PendingEvents;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use crate::traced::Acquisition;
use crate::waiters::Waiters;

/// How a facade runs the requests of stations. One for each client.
pub trait Driver: Send + Sync + Sized + 'static {
    /// The waiters and holders at a site.
    type Waiters: Waiters;

    /// Has each action of a site's station run once, in the order of the outputs.
    fn run(site: &Arc<Site<Self>>, waiters: &mut Self::Waiters, action: Action);

    /// Runs what the station has asked for in the background. Called after each input that did not come from a user's
    /// call: an event, an alarm, the answer to a renewal.
    fn attend(site: &Arc<Site<Self>>, waiters: &mut Self::Waiters);

    /// The user is done with a turn: it leaves the wait queue, or its hold ends. May be called more than once for a turn.
    fn leave(site: &Arc<Site<Self>>, turn: TurnId);

    /// How long after it was abandoned a release is run another way as well if it has no answer. `None` where requests do not
    /// depend on the user's tasks.
    const STALLED_AFTER: Option<Duration> = None;

    /// Runs a release another way as well, which depends on nothing of the user's. Called for each at most once.
    fn run_stalled(_site: &Arc<Site<Self>>, _release: Action) {}

    /// Releases once a lease that no station knows. Does not block.
    fn release(&self, request: ReleaseRequest, within: Duration);

    /// Has [`Site::end_session`] called while no site is locked. Does not block.
    fn end_session(site: &Arc<Site<Self>>);
}

/// A station together with the waiters and holders of this process.
pub struct Site<D: Driver> {
    context: Arc<ClientContext<D>>,
    inner: Mutex<Inner<D::Waiters>>,
    /// The events for observers, if there are any.
    events: Option<Arc<PendingEvents>>,
}

/// The state behind the mutex of a site.
pub struct Inner<W> {
    /// The waiters and holders here.
    pub waiters: W,
    station: Station,
    last_turn: TurnId,
    /// The alarm that is set. It may ring earlier than needed; the next one is set then.
    alarm: Option<Alarm>,
}

/// The contents of a locked site.
pub type Locked<'a, D> = NotifyingGuard<'a, Inner<<D as Driver>::Waiters>>;

impl<D: Driver> Site<D> {
    /// A site for a station, without turns.
    pub fn new(context: Arc<ClientContext<D>>, station: Station) -> Arc<Self> {
        let events =
            context.observers.clone().map(|observers| Arc::new(PendingEvents::new(station.name().clone(), observers)));
        let station = if events.is_some() { station.observed() } else { station };
        let inner = Mutex::new(Inner { waiters: D::Waiters::default(), station, last_turn: TurnId(0), alarm: None });
        Arc::new(Self { context, inner, events })
    }

    /// What the stations of this client share.
    pub fn context(&self) -> &ClientContext<D> {
        &self.context
    }

    /// Locks the site. Nothing blocks for long while it is locked. When it is unlocked, observers are notified.
    pub fn lock(&self) -> Locked<'_, D> {
        NotifyingGuard::lock(&self.inner, self.events.as_deref())
    }

    /// Passes an input of a waiter or holder to the station, and carries out its outputs.
    ///
    /// If the station or the clock panics, only this station ends. Its waiters and holders get an error.
    pub fn feed(self: &Arc<Self>, inner: &mut Inner<D::Waiters>, input: Input) {
        if inner.station.is_broken() {
            return self.break_off(inner);
        }
        let feed = |inner: &mut Inner<D::Waiters>| {
            let now = self.context.clock.now();
            self.feed_unguarded(inner, now, input);
        };
        if catch_unwind(AssertUnwindSafe(|| feed(inner))).is_err() {
            // What it still has to release is released.
            _ = catch_unwind(AssertUnwindSafe(|| self.feed_unguarded(inner, Moment::ORIGIN, Input::Break)));
            self.break_off(inner);
        }
    }

    /// Passes an input from elsewhere to the station, and carries out its outputs without blocking for long.
    pub fn handle(self: &Arc<Self>, input: Input) {
        let mut inner = self.lock();
        self.feed(&mut inner, input);
        D::attend(self, &mut inner.waiters);
    }

    /// Closes the station. Its last releases are not run here: closing the client runs those of all sites.
    pub fn close(self: &Arc<Self>) {
        self.feed(&mut self.lock(), Input::Close);
    }

    /// The next input is the join of this turn, by this call.
    pub(crate) fn joins(&self, turn: TurnId, call: &Acquisition) {
        self.events.iter().for_each(|events| events.joins(turn, call));
    }

    /// Reports a call that ends before it joins the wait queue.
    pub(crate) fn not_joined(&self, call: &Acquisition, outcome: Outcome) {
        if let Some(events) = &self.events {
            events.push_in(Some(call.clone()), Event::not_waited(events.lock(), outcome));
            events.notify();
        }
    }

    /// Runs in the background what the station has asked for.
    pub fn attend(self: &Arc<Self>) {
        D::attend(self, &mut self.lock().waiters);
    }

    /// Why waiters still wait, if the store fails.
    pub fn last_error(&self) -> Option<BackendError> {
        self.lock_to_read().station.last_error().cloned()
    }

    /// Has the backend end its session, if a release has still been pending for too long. No site may be locked, because all of them
    /// get an event. A backend that panics is asked again after the next try of the release.
    pub fn end_session(&self, backend: &(impl Backend + ?Sized)) {
        if self.lock_to_read().station.must_end_session(self.context.clock.now()) {
            _ = catch_unwind(AssertUnwindSafe(|| backend.end_session()));
        }
    }

    /// Whether nothing is in flight and there are no turns.
    pub fn is_idle(&self) -> bool {
        let mut inner = self.lock_to_read();
        inner.station.is_idle() && inner.waiters.turns().is_empty()
    }

    /// Whether the store may know this owner from the station.
    pub fn knows(&self, owner: Owner) -> bool {
        self.lock_to_read().station.knows(owner)
    }

    /// Locks the site to read it. Observers are not notified afterwards: the map of the stations may be locked.
    fn lock_to_read(&self) -> MutexGuard<'_, Inner<D::Waiters>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn feed_unguarded(self: &Arc<Self>, inner: &mut Inner<D::Waiters>, now: Moment, input: Input) {
        if let Some(events) = &self.events {
            events.on_input(now, &input);
        }
        let outputs = inner.station.handle_input(now, input);
        if let Some(events) = &self.events {
            events.extend(inner.station.take_events());
        }
        outputs.into_iter().for_each(|output| self.carry_out(&mut inner.waiters, output));
        let wake = inner.station.next_wake().into_iter().chain(inner.waiters.next_wake(now)).min();
        wake.into_iter().for_each(|at| self.wake_by(inner, at));
    }

    /// Has the alarm ring at this moment at the latest.
    fn wake_by(self: &Arc<Self>, inner: &mut Inner<D::Waiters>, at: Moment) {
        if inner.alarm.is_none_or(|set| at < set.at()) {
            let this: Weak<dyn Ring> = Arc::<Self>::downgrade(self);
            let earlier = inner.alarm.replace(self.context.alarms.set(at, this));
            earlier.into_iter().for_each(|alarm| self.context.alarms.unset(alarm));
        }
    }

    fn carry_out(self: &Arc<Self>, waiters: &mut D::Waiters, output: Output) {
        match output {
            Output::Admit { turn, hold } => waiters.turns().admit(turn, hold),
            Output::Refuse { turn, refusal } => waiters.turns().refuse(turn, refusal),
            Output::Replaced { turn, result } => waiters.turns().replaced(turn, result),
            Output::Lose { turn, .. } => waiters.turns().remove(turn),
            Output::Ended { turn, result } => waiters.turns().end(turn, result),
            Output::Detached(turn) => waiters.turns().end(turn, Ok(Released::Released)),
            Output::Run(action) => D::run(self, waiters, action),
            Output::StartRenewal { lease, admission } => self.context.renewals.start(lease, admission),
            Output::RenewNow(owner) => self.context.renewals.renew_now(owner),
            Output::StopRenewal(owner) => self.context.renewals.stop(owner),
            Output::EndSession => D::end_session(self),
        }
    }

    /// Ends all waiters and holders of a station that has ended.
    fn break_off(&self, inner: &mut Inner<D::Waiters>) {
        inner.station.break_off();
        self.events.iter().for_each(|events| events.extend(inner.station.take_events()));
        for (turn, owner) in inner.waiters.turns().open() {
            if let Some(owner) = owner {
                self.context.renewals.stop(owner);
                inner.waiters.turns().remove(turn);
            } else {
                self.events.iter().for_each(|events| events.broken(turn));
                inner.waiters.turns().refuse(turn, Refusal::Error(AcquireError::Closed));
            }
        }
    }
}

impl<W> Inner<W> {
    /// A new turn.
    pub(crate) fn next_turn(&mut self) -> TurnId {
        self.last_turn.0 += 1;
        self.last_turn
    }
}

impl<D: Driver> Ring for Site<D> {
    fn ring(self: Arc<Self>, alarm: Alarm) {
        let mut inner = self.lock();
        // This alarm may have been replaced when it was about to ring.
        inner.alarm.take_if(|set| *set == alarm);
        self.feed(&mut inner, Input::Tick);
        D::attend(&self, &mut inner.waiters);
        self.watch_releases(&mut inner);
    }
}

impl<D: Driver> Drop for Site<D> {
    fn drop(&mut self) {
        self.lock_to_read().alarm.into_iter().for_each(|alarm| self.context.alarms.unset(alarm));
    }
}

impl<D: Driver> fmt::Debug for Site<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("station", &self.lock_to_read().station).finish_non_exhaustive()
    }
}

#[path = "site/leaving.rs"]
mod leaving;
#[cfg(test)]
#[path = "site/tests.rs"]
mod tests;
