//! Tells waiters of this client their turn, by watching the file.
//!
//! A thread of its own looks every few milliseconds whether others have committed something (a read of shared memory),
//! but only while somebody waits. What it says are hints: whoever hears none asks again before its place is over.
//!
//! # Source
//! "PRAGMA data_version" of the SQLite manual.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use lock_core::{
    Answer, BackendError, Claim, Event, EventSink, Lease, Listeners, LockName, Moment, Operation, Owner, Ttl,
};
use lock_host::{Clock, HostClock};

use crate::Site;
use crate::desk::Desk;
use crate::error::{Fault, Stage, explain};
use crate::file::Missing;
use crate::session::{Access, Ask, Begun, Session};

/// How often the file is looked at while somebody waits.
///
/// Chosen: with its wake-up a look was measured at about 80 us, so that waiting costs 1.6 % of a core.
const TICK: Duration = Duration::from_millis(5);

/// How long after a failure the file is looked at again.
const PAUSE: Duration = Duration::from_millis(250);

/// How long one look may wait for others.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// The waiters of one client, and the thread that watches for them. It ends with this handle.
#[derive(Debug)]
pub(crate) struct Watcher(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    site: Arc<Site>,
    listeners: Listeners,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiters: Vec<Waiter>,
    news: News,
    thread: Thread,
}

/// Whether somebody took a place since the last look: it may have been called before it was known here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum News {
    #[default]
    None,
    NewWaiter,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Thread {
    #[default]
    NotStarted,
    Running,
    Ending,
}

#[derive(Clone, Debug)]
struct Waiter {
    name: LockName,
    owner: Owner,
    ttl: Ttl,
    place_until: Moment,
}

impl Watcher {
    pub(crate) fn new(site: Arc<Site>) -> Self {
        let (listeners, state) = (Listeners::default(), Mutex::default());
        Self(Arc::new(Shared { site, listeners, state, changed: Condvar::new() }))
    }

    /// From now on, tells `sink` as well.
    pub(crate) fn listen(&self, sink: EventSink) {
        self.0.listeners.add(sink);
    }

    /// Watches for the claim's owner if it has a place now, and no longer if it has none.
    pub(crate) fn follow(&self, claim: &Claim, answer: &Answer) {
        let Answer::Queued { valid_for, .. } = answer else { return self.forget(claim.owner) };
        let place_until = self.0.site.timing.now() + *valid_for;
        let waiter = Waiter { name: claim.name.clone(), owner: claim.owner, ttl: claim.ttl, place_until };
        if self.0.listeners.is_empty() {
            return;
        }
        let mut state = self.0.lock();
        state.waiters.retain(|other| other.owner != claim.owner);
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
    let mut lookout = Lookout::new(&shared.site);
    while let Some(news) = shared.next_look() {
        match lookout.look(news, || shared.waiters()) {
            Ok(events) => shared.deliver(events),
            // The place in the queue may be gone; whoever asks again hears what is wrong from the store itself.
            Err(_) => {
                lookout.forget_everything();
                shared.deliver(vec![Event::RecheckAll]);
                thread::sleep(PAUSE);
            }
        }
    }
}

impl Shared {
    /// Sleeps until it is time to look; `None` at the end.
    fn next_look(&self) -> Option<News> {
        let mut state = self.lock();
        if state.news == News::None && state.thread != Thread::Ending {
            state = self.changed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0;
        }
        loop {
            let now = self.site.timing.now();
            state.waiters.retain(|waiter| now < waiter.place_until);
            if state.thread == Thread::Ending {
                return None;
            }
            if !state.waiters.is_empty() {
                return Some(std::mem::take(&mut state.news));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn waiters(&self) -> Vec<Waiter> {
        self.lock().waiters.clone()
    }

    fn deliver(&self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let mut state = self.lock();
        for event in &events {
            if let Event::Granted { lease, .. } = event {
                state.waiters.retain(|waiter| waiter.owner != lease.owner);
            }
        }
        drop(state);
        events.iter().for_each(|event| self.listeners.deliver(event));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection for looking only, and what it saw last.
struct Lookout<'a> {
    site: &'a Site,
    session: Option<Session>,
    version: Option<i64>,
    /// When something that was seen ends by itself.
    due: Option<Moment>,
}

impl<'a> Lookout<'a> {
    fn new(site: &'a Site) -> Self {
        Self { site, session: None, version: None, due: None }
    }

    fn forget_everything(&mut self) {
        *self = Self::new(self.site);
    }

    /// What there is to tell, if anything happened since the last look.
    fn look(&mut self, news: News, waiters: impl FnOnce() -> Vec<Waiter>) -> Result<Vec<Event>, BackendError> {
        let now = self.site.timing.now();
        let session = self.session()?;
        let version = session.data_version();
        let version = version.map_err(|error| explain(Operation::Acquire, Stage::Before, &self.site.path, error))?;
        let is_due = self.due.is_some_and(|due| due <= now);
        if self.version == Some(version) && news == News::None && !is_due {
            self.session = Some(session);
            return Ok(Vec::new());
        }
        // Read before the look: what is committed between the two is seen twice rather than never.
        self.version = Some(version);
        let sight = self.survey(session, now, &waiters())?;
        self.due = sight.due;
        Ok(sight.events)
    }

    fn session(&mut self) -> Result<Session, BackendError> {
        if let Some(session) = self.session.take_if(|session| session.is_current()) {
            return Ok(session);
        }
        self.version = None;
        Session::open(self.site, &mut self.session, Missing::Refuse, HostClock.now() + LOOK_WITHIN)
    }

    fn survey(&mut self, session: Session, now: Moment, waiters: &[Waiter]) -> Result<Sight, BackendError> {
        let deadline = HostClock.now() + LOOK_WITHIN;
        let ask = Ask { operation: Operation::Acquire, access: Access::Read, deadline };
        match session.begin(self.site, &ask)? {
            Begun::Here => {
                let (session, sight) = session.finish(self.site, &ask, |desk| survey(desk, now, waiters));
                self.session = session;
                sight
            }
            Begun::Replaced => {
                self.session = Some(session);
                Ok(Sight::default())
            }
        }
    }
}

/// What waiters should know, and when to look again although nobody writes.
#[derive(Default)]
struct Sight {
    events: Vec<Event>,
    due: Option<Moment>,
}

fn survey(desk: &Desk<'_>, now: Moment, waiters: &[Waiter]) -> Result<Sight, Fault> {
    let mut sight = Sight::default();
    let names: BTreeSet<&LockName> = waiters.iter().map(|waiter| &waiter.name).collect();
    for name in names {
        let mine = |owner: Owner| waiters.iter().find(|waiter| waiter.owner == owner && waiter.name == *name);
        let ends_in = match desk.look(name)? {
            (Some(hold), _) => {
                if let Some(waiter) = mine(hold.owner) {
                    let lease = Lease { name: name.clone(), owner: hold.owner, tokens: hold.tokens, ttl: waiter.ttl };
                    sight.events.push(Event::Granted { lease, valid_for: hold.remaining });
                }
                Some(hold.remaining)
            }
            // The next in line asks for the lock; it is of no use that the others do, until its place is over.
            (None, Some(next)) if mine(next.owner).is_none() => Some(next.remaining),
            (None, _) => {
                sight.events.push(Event::Freed { name: name.clone() });
                None
            }
        };
        let due = ends_in.map(|ends_in| now + ends_in);
        sight.due = [sight.due, due].into_iter().flatten().min();
    }
    Ok(sight)
}
