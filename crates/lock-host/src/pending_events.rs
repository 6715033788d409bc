//! The observers of a client, and the events of which they were not notified yet.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lock_core::station::{ByTurn, Event, Input, Outcome, Reply, TurnId};
use lock_core::{BackendError, LockName, Moment, Renewed};

use crate::observer::SharedObserver;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::traced::Acquisition;

/// The observers of a client, and what was reported to them about its store.
pub(crate) struct Observers {
    all: Vec<SharedObserver>,
    unavailable_since: Mutex<Option<Moment>>,
}

impl Observers {
    /// `None` if nobody observes.
    pub(crate) fn new(observers: Vec<SharedObserver>) -> Option<Arc<Self>> {
        (!observers.is_empty()).then(|| Arc::new(Self { all: observers, unavailable_since: Mutex::default() }))
    }

    fn notify(&self, PendingEvent { event, call }: PendingEvent) {
        for observer in &self.all {
            let observe = || observer.observe(&event);
            // It is called on the threads that renew leases and watch deadlines, which must continue.
            _ = catch_unwind(AssertUnwindSafe(|| match &call {
                Some(call) => call.run(observe),
                None => observe(),
            }));
        }
    }

    /// What a request reveals about the store, if that is new. An error that is not transient reveals nothing.
    fn change(&self, now: Moment, error: Option<&BackendError>) -> Option<Event> {
        let mut since = lock(&self.unavailable_since);
        match error {
            None => since.take().map(|since| Event::store_available(now.since(since))),
            Some(error) if error.kind().is_transient() && since.is_none() => {
                *since = Some(now);
                Some(Event::store_unavailable(error.clone()))
            }
            Some(_) => None,
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observers").field("all", &self.all).finish_non_exhaustive()
    }
}

/// The events of one lock of which observers were not notified yet.
pub(crate) struct PendingEvents {
    lock: LockName,
    observers: Arc<Observers>,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    events: Vec<PendingEvent>,
    /// The calls that wait: the events of a wait belong to its span.
    calls: ByTurn<Acquisition>,
}

struct PendingEvent {
    event: Event,
    /// The call whose span the event belongs to.
    call: Option<Acquisition>,
}

impl PendingEvents {
    pub(crate) fn new(lock: LockName, observers: Arc<Observers>) -> Self {
        Self { lock, observers, pending: Mutex::default() }
    }

    /// The lock.
    pub(crate) fn lock(&self) -> LockName {
        self.lock.clone()
    }

    pub(crate) fn push(&self, event: Event) {
        self.push_in(None, event);
    }

    /// The same, as part of a call.
    pub(crate) fn push_in(&self, call: Option<Acquisition>, event: Event) {
        lock(&self.pending).events.push(PendingEvent { event, call });
    }

    /// The next input is the join of this turn, by this call.
    pub(crate) fn joins(&self, turn: TurnId, call: &Acquisition) {
        lock(&self.pending).calls.insert(turn, call.clone());
    }

    /// The station has reported this. A waiter has its call until it is admitted or refused.
    pub(crate) fn extend(&self, events: impl IntoIterator<Item = (Option<TurnId>, Event)>) {
        let Pending { events: pending, calls } = &mut *lock(&self.pending);
        for (turn, event) in events {
            let goes_on = matches!(event, Event::WaitingLong { .. });
            let call = turn.and_then(|turn| if goes_on { calls.get(turn).cloned() } else { calls.remove(turn) });
            pending.push(PendingEvent { event, call });
        }
    }

    /// The station of a waiter is broken. Nothing is reported if its refusal was.
    pub(crate) fn broken(&self, turn: TurnId) {
        if lock(&self.pending).calls.get(turn).is_some() {
            self.extend([(Some(turn), Event::not_waited(self.lock(), Outcome::Closed))]);
        }
    }

    /// An input comes to the station: it may say whether the store answers.
    pub(crate) fn on_input(&self, now: Moment, input: &Input) {
        let error = match input {
            Input::Reply(_, Reply::Acquire(result)) => result.as_ref().err(),
            Input::Reply(_, Reply::Release(result)) => result.as_ref().err(),
            Input::Renewal { answer: Ok(Renewed::Unsure(error)) | Err(error), .. } => Some(error),
            Input::Renewal { .. } => None,
            Input::Join(_) | Input::Adopt { .. } | Input::Detach(_) | Input::Leave(_) | Input::Cancel(_) => return,
            Input::Replace { .. } | Input::Event(_) | Input::Tick | Input::Close | Input::Break => return,
        };
        self.answered(now, error);
    }

    /// A request was answered, or failed.
    pub(crate) fn answered(&self, now: Moment, error: Option<&BackendError>) {
        if let Some(error) = error.cloned() {
            self.push(Event::request_failed(self.lock(), error));
        }
        if let Some(event) = self.observers.change(now, error) {
            self.push(event);
        }
    }

    /// Whether nobody waits.
    #[cfg(test)]
    pub(crate) fn has_no_calls(&self) -> bool {
        lock(&self.pending).calls.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.pending).events.is_empty()
    }

    /// Reports what was not reported yet, in order. No mutex is held meanwhile.
    #[inline(never)]
    pub(crate) fn notify(&self) {
        let pending = std::mem::take(&mut lock(&self.pending).events);
        pending.into_iter().for_each(|event| self.observers.notify(event));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
