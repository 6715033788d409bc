//! How the waiters of a client learn that their turn has come: by notifications or, where these do not arrive, by polling.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_core::{
    Answer, BackendError, Claim, Effect, ErrorKind, EventSink, Listeners, LockName, Owner, Queueing, StoreEvent,
};
use lock_host::{Clock, HostClock};
use lock_rules::poll::{Polled, Poller, Waiter};
use lock_rules::window;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::database::{Database, Notifications, error};
use crate::notification::Notification;
use crate::session::Session;
use crate::wire::Bell;

/// How long a client that nobody waits in goes on listening. Chosen: longer than the pauses of a busy lock.
const LISTENS_FOR: Duration = Duration::from_secs(10);
/// How long the first notification may take. A pooler may accept `LISTEN` and pass nothing on.
const BELL_WITHIN: Duration = Duration::from_secs(2);
/// How long it may take until a connection listens.
const SUBSCRIBED_WITHIN: Duration = Duration::from_secs(5);
/// How long to wait after a failure.
const RETRY: Duration = Duration::from_millis(250);
/// How often waiters are notified that a lock may be free. They have asked since, and it was not.
const FREED_EVERY: Duration = Duration::from_millis(100);
/// How many locks one request looks at. Chosen: it takes some milliseconds.
const LOCKS_MAX: usize = 50;
/// How long one look may take.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// The waiters of one client. The task that attends to them ends when this is dropped.
pub(crate) struct Waiters<D: Database>(Arc<Desk<D>>);

struct Desk<D> {
    database: D,
    channel: String,
    /// Makes the tags of waiters from their owners, which are secrets.
    tags: RandomState,
    listeners: Listeners,
    state: Mutex<State>,
    /// Notifications do not arrive.
    is_deaf: AtomicBool,
    /// Wakes the task when there is a new waiter.
    arrivals: Notify,
}

struct State {
    /// Those that may be notified, by their tags.
    asked: HashMap<i64, Waiter>,
    /// Those that have places.
    poller: Poller,
    /// When a look last found a lock that may be free.
    freed: HashMap<LockName, Instant>,
    task: Option<AbortHandle>,
}

impl<D: Database> Waiters<D> {
    pub(crate) fn new(database: D) -> Self {
        let channel = format!("leasehold_{:016x}", fastrand::u64(..));
        let state = State { asked: HashMap::new(), poller: Poller::new(D::TICK), freed: HashMap::new(), task: None };
        let (tags, listeners, state) = (RandomState::new(), Listeners::default(), Mutex::new(state));
        Self(Arc::new(Desk {
            database,
            channel,
            tags,
            listeners,
            state,
            is_deaf: AtomicBool::new(false),
            arrivals: Notify::new(),
        }))
    }

    pub(crate) fn listen(&self, sink: EventSink) {
        self.0.listeners.add(sink);
    }

    /// Where a claim is notified if it has to wait. To be called before it is sent: it may be granted before its answer is read.
    pub(crate) fn expect(&self, claim: &Claim) -> Bell {
        let is_deaf = self.0.is_deaf.load(Ordering::Relaxed);
        let (channel, tag) = (if is_deaf { String::new() } else { self.0.channel.clone() }, self.0.tag(claim.owner));
        if claim.queueing == Queueing::Wanted {
            let Claim { name, owner, terms, .. } = claim.clone();
            let waiter = Waiter { name, owner, terms, position: 0, place_until: HostClock.now() };
            self.0.state().asked.insert(tag, waiter);
        }
        Bell { channel, tag }
    }

    /// A claim was answered.
    pub(crate) fn follow(&self, claim: &Claim, answer: &Answer) {
        let mut state = self.0.state();
        let before = state.poller.waiters().len();
        state.poller.follow(HostClock.now(), claim, answer);
        if before < state.poller.waiters().len() {
            self.0.arrivals.notify_one();
        }
        if !matches!(answer, Answer::Queued { .. }) {
            state.asked.remove(&self.0.tag(claim.owner));
        } else if state.task.as_ref().is_none_or(AbortHandle::is_finished) {
            state.task = Some(tokio::spawn(Arc::clone(&self.0).attend()).abort_handle());
        }
    }

    /// A claim was refused, and has taken no effect. If it had a place before, it may still be notified.
    pub(crate) fn refused(&self, owner: Owner) {
        let mut state = self.0.state();
        if !state.poller.waiters().iter().any(|waiter| waiter.owner == owner) {
            state.asked.remove(&self.0.tag(owner));
        }
    }

    /// An owner waits no longer.
    pub(crate) fn forget(&self, owner: Owner) {
        self.0.forget(owner);
    }
}

impl<D: Database> Drop for Waiters<D> {
    fn drop(&mut self) {
        self.0.state().task.take().inspect(AbortHandle::abort);
    }
}

impl State {
    /// The events of a look. A lock that looks free may not be: a transaction may be fenced by its expired lease.
    fn seen(&mut self, found: Polled) -> Vec<StoreEvent> {
        let now = Instant::now();
        self.freed.retain(|_, at| now - *at < FREED_EVERY);
        let mut events = self.poller.finish(HostClock.now(), found);
        events.retain(|event| {
            let StoreEvent::Freed { name } = event else { return true };
            let is_repeated = self.freed.contains_key(name);
            self.freed.entry(name.clone()).or_insert(now);
            !is_repeated
        });
        events
    }
}

impl<D: Database> Desk<D> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tag(&self, owner: Owner) -> i64 {
        self.tags.hash_one(owner).cast_signed()
    }

    fn forget(&self, owner: Owner) {
        let mut state = self.state();
        state.asked.remove(&self.tag(owner));
        state.poller.forget(owner);
    }

    /// Until nobody waits.
    async fn attend(self: Arc<Self>) {
        while self.is_needed() {
            if self.is_deaf.load(Ordering::Relaxed) {
                self.poll().await;
                continue;
            }
            match self.subscribe().await {
                Ok(Some(notifications)) => {
                    // What was sent before is lost.
                    self.look().await;
                    self.hear(notifications).await;
                }
                Ok(None) => self.is_deaf.store(true, Ordering::Relaxed),
                Err(_) => self.failed().await,
            }
        }
    }

    /// Whether somebody waits. If not, the next waiter starts the task again.
    fn is_needed(&self) -> bool {
        let mut state = self.state();
        let is_needed = state.poller.pause(HostClock.now()).is_some();
        state.task.take_if(|_| !is_needed);
        is_needed
    }

    /// A connection that listens; `None` if notifications do not arrive over it, as behind a pooler that lends connections to transactions.
    async fn subscribe(&self) -> Result<Option<Notifications>, BackendError> {
        let late = |_| Err(error::<D>(ErrorKind::Unreachable, Effect::None, "no connection listens in time"));
        let begun = timeout(SUBSCRIBED_WITHIN, self.database.listen(&self.channel)).await.unwrap_or_else(late)?;
        let Some(mut notifications) = begun else { return Ok(None) };
        let until = Instant::now() + BELL_WITHIN;
        loop {
            // A process that was stopped looks once more.
            let is_late = Instant::now() >= until;
            match timeout(D::TICK, notifications.texts.recv()).await {
                Ok(Some(_)) => return Ok(Some(notifications)),
                Ok(None) => return Err(error::<D>(ErrorKind::Unreachable, Effect::None, "the connection has ended")),
                Err(_) if is_late => return Ok(None),
                // Its own notification may never arrive, and then no other does.
                Err(_) => self.look().await,
            }
        }
    }

    /// Passes notifications on, until the connection ends or nobody has waited for a while.
    async fn hear(&self, mut notifications: Notifications) {
        let mut waited = Instant::now();
        while waited.elapsed() < LISTENS_FOR {
            match timeout(LISTENS_FOR, notifications.texts.recv()).await {
                Ok(Some(text)) => self.deliver(&text),
                Ok(None) => return,
                Err(_) => {}
            }
            if !self.state().asked.is_empty() {
                waited = Instant::now();
            }
        }
    }

    fn deliver(&self, text: &str) {
        let Ok(Notification { tag, grant }) = serde_json::from_str(text) else { return };
        let Some(waiter) = self.state().asked.get(&tag).cloned() else { return };
        let event = match grant.map(|grant| grant.of(&waiter)) {
            Some(Ok(event)) => {
                self.forget(waiter.owner);
                event
            }
            None | Some(Err(_)) => StoreEvent::Freed { name: waiter.name },
        };
        self.listeners.deliver(&event);
    }

    async fn poll(&self) {
        loop {
            let Some(pause) = self.state().poller.pause(HostClock.now()) else { return };
            _ = timeout(pause, self.arrivals.notified()).await;
            let began = Instant::now();
            self.look().await;
            self.state().poller.took(began.elapsed());
        }
    }

    /// Looks at all locks that somebody waits for, and says what was found.
    async fn look(&self) {
        self.state().poller.begin();
        let Ok(Ok(found)) = timeout(LOOK_WITHIN, self.survey()).await else { return self.failed().await };
        let events = self.state().seen(found);
        for event in events {
            if let StoreEvent::Granted { lease, .. } = &event {
                self.forget(lease.owner);
            }
            self.listeners.deliver(&event);
        }
    }

    /// The store does not answer: waiters ask, and get its errors.
    async fn failed(&self) {
        let event = self.state().poller.fail(HostClock.now());
        self.listeners.deliver(&event);
        sleep(RETRY).await;
    }

    async fn survey(&self) -> Result<Polled, BackendError> {
        let mut by_name: HashMap<_, Vec<Waiter>> = HashMap::new();
        for waiter in self.state().poller.waiters() {
            by_name.entry(waiter.name.clone()).or_default().push(waiter.clone());
        }
        let mut session = Session::<D>::new(self.database.lend().await?, Instant::now() + LOOK_WITHIN);
        let key = |name: &LockName| self.database.prefix().key(name.as_str());
        let (mut all, mut names) = (Polled::default(), by_name.iter().peekable());
        while names.peek().is_some() {
            let some = names.by_ref().take(LOCKS_MAX);
            let requests = some.map(|(name, waiters)| (key(name), window::survey(name, waiters))).collect();
            for (found, then) in session.run_all(requests).await? {
                all.events.extend(found.events);
                all.positions.extend(found.positions);
                // The server's clock is not this machine's.
                let here = found.due.map(|due| HostClock.now() + due.since(then));
                all.due = here.into_iter().chain(all.due).min();
            }
        }
        Ok(all)
    }
}
