//! Notifies waiters of this client when their turn comes, by watching the file.
//!
//! A separate thread checks whether others have committed something (a read of shared memory): every few milliseconds
//! for the next in line, less often for those further back or if nothing has changed for a while, and not at all without
//! waiters. Its messages are hints: a waiter that gets none asks again before its place expires.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use lock_core::{Answer, Claim, Event, EventSink, Listeners, Moment, Owner};

use crate::lookout::Lookout;
use crate::settings::Settings;
use crate::waiter::{News, Waiter};

/// How often the file is checked for the next in line while it is in motion.
///
/// Chosen: a check with its wake-up was measured at about 70 us, so that this costs 1.4 % of a core.
const TICK: Duration = Duration::from_millis(5);

/// How often it is checked once nothing has changed for long.
///
/// Chosen: 0.2 % of a core.
const CALM_TICK: Duration = Duration::from_millis(40);

/// A check may be late by one part in this many of the time without a change, so a waiter waits at most a sixteenth longer.
const CALM_PART: u32 = 16;

/// How often it is checked at least, so that many waiters that leave at once are noticed.
const TICK_MAX: Duration = Duration::from_millis(250);

/// How long after a failure the file is checked again.
const PAUSE: Duration = Duration::from_millis(250);

/// The waiters of one client, and the thread that watches for them. It ends with this handle.
#[derive(Debug)]
pub(crate) struct Watcher(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Arc<Settings>,
    listeners: Listeners,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    waiters: Vec<Waiter>,
    news: News,
    /// When the waiters' prospects last changed.
    changed: Moment,
    thread: Thread,
    #[cfg(test)]
    looks: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Thread {
    #[default]
    NotStarted,
    Running,
    Ending,
}

/// How long to sleep between two looks for a waiter at this position, after so long without a change.
///
/// Each hand-over before it takes a tick or so, so that it has looked again by the time it is the next in line. A hundred
/// waiters look as often as five at the head would.
fn tick(position: u32, calm: Duration) -> Duration {
    (TICK * position.max(1)).max((calm / CALM_PART).min(CALM_TICK)).min(TICK_MAX)
}

impl Watcher {
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        let state = State {
            waiters: Vec::new(),
            news: News::None,
            changed: Moment::ORIGIN,
            thread: Thread::NotStarted,
            #[cfg(test)]
            looks: 0,
        };
        let (listeners, state) = (Listeners::default(), Mutex::new(state));
        Self(Arc::new(Shared { settings, listeners, state, changed: Condvar::new() }))
    }

    /// From now on, also notifies `sink`.
    pub(crate) fn listen(&self, sink: EventSink) {
        self.0.listeners.add(sink);
    }

    /// Watches for the claim's owner if it has a place now, and no longer if it has none.
    pub(crate) fn follow(&self, claim: &Claim, answer: &Answer) {
        let Answer::Queued { position, valid_for, .. } = *answer else { return self.forget(claim.owner) };
        let place_until = self.0.settings.timing.now() + valid_for;
        let waiter = Waiter { name: claim.name.clone(), owner: claim.owner, terms: claim.terms, position, place_until };
        if self.0.listeners.is_empty() {
            return;
        }
        let mut state = self.0.lock();
        let before = state.waiters.len();
        state.waiters.retain(|other| other.owner != claim.owner);
        if state.waiters.len() == before {
            state.changed = self.0.settings.timing.now();
        }
        state.waiters.push(waiter);
        state.news = News::NewWaiter;
        if state.thread == Thread::NotStarted && self.start().is_ok() {
            state.thread = Thread::Running;
        }
        self.0.changed.notify_all();
    }

    pub(crate) fn forget(&self, owner: Owner) {
        self.0.lock().waiters.retain(|waiter| waiter.owner != owner);
    }

    fn start(&self) -> std::io::Result<()> {
        let shared = Arc::clone(&self.0);
        thread::Builder::new().name("leasehold-watcher".into()).spawn(move || watch(&shared)).map(drop)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.lock().thread = Thread::Ending;
        self.0.changed.notify_all();
    }
}

fn watch(shared: &Shared) {
    let mut lookout = Lookout::new(&shared.settings);
    while let Some(news) = shared.next_look(lookout.due) {
        match lookout.look(news, || shared.waiters()) {
            Ok(sight) => {
                shared.update_positions(&sight.positions);
                shared.deliver(sight.events);
            }
            // The place in the queue may be gone; a waiter that asks again gets the error from the store itself.
            Err(_) => {
                lookout.forget_everything();
                shared.deliver(vec![Event::RecheckAll]);
                thread::sleep(PAUSE);
            }
        }
    }
}

impl Shared {
    /// Sleeps until it is time to look, at the latest when something is `due`; `None` at the end.
    fn next_look(&self, due: Option<Moment>) -> Option<News> {
        let mut state = self.lock();
        if state.news == News::None && state.thread != Thread::Ending {
            let foremost = state.waiters.iter().map(|waiter| waiter.position).min().unwrap_or_default();
            let until_due = due.map_or(TICK_MAX, |due| due.since(self.settings.timing.now()).max(TICK));
            let calm = self.settings.timing.now().since(state.changed);
            let pause = tick(foremost, calm).min(until_due);
            state = self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
        loop {
            let now = self.settings.timing.now();
            state.waiters.retain(|waiter| now < waiter.place_until);
            if state.thread == Thread::Ending {
                return None;
            }
            if !state.waiters.is_empty() {
                #[cfg(test)]
                {
                    state.looks += 1;
                }
                return Some(std::mem::take(&mut state.news));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn waiters(&self) -> Vec<Waiter> {
        self.lock().waiters.clone()
    }

    fn update_positions(&self, positions: &[(Owner, u32)]) {
        let mut state = self.lock();
        let State { waiters, changed, .. } = &mut *state;
        for waiter in waiters {
            if let Some((_, position)) = positions.iter().find(|(owner, _)| *owner == waiter.owner)
                && waiter.position != *position
            {
                waiter.position = *position;
                *changed = self.settings.timing.now();
            }
        }
    }

    /// Notifies those that still wait: others may have left, or been answered, since the look.
    fn deliver(&self, mut events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let now = self.settings.timing.now();
        let mut state = self.lock();
        state.changed = now;
        state.waiters.retain(|waiter| now < waiter.place_until);
        events.retain(|event| match event {
            Event::Granted { lease, .. } => {
                let before = state.waiters.len();
                state.waiters.retain(|waiter| waiter.owner != lease.owner);
                state.waiters.len() < before
            }
            Event::Freed { name } => state.waiters.iter().any(|waiter| waiter.name == *name),
            Event::RecheckAll | _ => true,
        });
        drop(state);
        events.iter().for_each(|event| self.listeners.deliver(event));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
