//! The line of the requests of one connection, and the right to serve it.
//!
//! One at a time serves. It takes the first request, with all that can share its transaction, and then gives the right
//! to the one that is first by then. So requests that arrive while others are written are written together.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use lock_core::{BackendError, Moment};
use lock_host::{Clock, HostClock};

use crate::error::{Fault, thread_ended};
use crate::session::{Access, Ask, BUSY_RETRY};
use crate::store::Store;
use crate::transaction::Transaction;
use crate::verb::Verb;
use crate::watcher::Watcher;

/// A request in a line. If it is dropped instead of answered, it may have taken effect.
pub(crate) trait Request: Send {
    fn ask(&self) -> Ask;

    /// Does the work inside a transaction, and keeps the answer until that transaction has ended.
    fn work(&mut self, transaction: &Transaction<'_>, watcher: &Watcher) -> Result<(), Fault>;

    /// Answers: the transaction is committed, or it is not for this reason.
    fn answer(self: Box<Self>, end: Result<(), BackendError>, watcher: &Watcher);
}

/// A verb with its answer, which `reply` gets.
pub(crate) struct Asked<V: Verb, R> {
    verb: V,
    deadline: Moment,
    answer: Option<V::Answer>,
    reply: R,
}

impl<V: Verb, R: FnOnce(Result<V::Answer, BackendError>) + Send> Asked<V, R> {
    pub(crate) fn new(verb: V, deadline: Moment, reply: R) -> Self {
        Self { verb, deadline, answer: None, reply }
    }
}

impl<V: Verb, R: FnOnce(Result<V::Answer, BackendError>) + Send> Request for Asked<V, R> {
    fn ask(&self) -> Ask {
        Ask { operation: V::OPERATION, access: V::ACCESS, deadline: self.deadline }
    }

    fn work(&mut self, transaction: &Transaction<'_>, watcher: &Watcher) -> Result<(), Fault> {
        self.verb.begin(watcher);
        self.answer = Some(self.verb.work(transaction)?);
        Ok(())
    }

    fn answer(self: Box<Self>, end: Result<(), BackendError>, watcher: &Watcher) {
        match (end, self.answer) {
            (Ok(()), Some(answer)) => {
                self.verb.end(watcher, &answer);
                (self.reply)(Ok(answer));
            }
            (Ok(()), None) => {}
            (Err(error), _) => (self.reply)(Err(error)),
        }
    }
}

/// A request in its place.
pub(crate) struct Waiting {
    pub(crate) request: Box<dyn Request>,
    /// Where the right to serve goes once this request is the first. It is dropped after the answer.
    pub(crate) lead: Sender<Serving>,
}

/// The requests that wait for one connection.
pub(crate) struct Line(Mutex<State>);

struct State {
    waiting: VecDeque<Waiting>,
    /// None while somebody serves.
    store: Option<Store>,
}

impl Line {
    pub(crate) fn new(store: Store) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { waiting: VecDeque::new(), store: Some(store) })))
    }

    /// Puts a request at the end. If nobody serves, the caller has the right to.
    #[must_use]
    pub(crate) fn join(self: &Arc<Self>, waiting: Waiting) -> Option<Serving> {
        self.lock().waiting.push_back(waiting);
        self.take()
    }

    /// Asks, and waits for the answer. Meanwhile serves the line on this thread whenever the request is the first.
    pub(crate) fn ask<V: Verb>(self: &Arc<Self>, verb: V, deadline: Moment) -> Result<V::Answer, BackendError> {
        let (reply, answer) = mpsc::sync_channel(1);
        let (lead, leads) = mpsc::channel();
        let request = Box::new(Asked::new(verb, deadline, move |answer| drop(reply.send(answer))));
        let first = self.join(Waiting { request, lead });
        // Ends when the request is gone.
        first.into_iter().chain(leads).for_each(Serving::serve);
        answer.try_recv().unwrap_or_else(|_| Err(thread_ended(V::OPERATION)))
    }

    /// The right to serve, if nobody does.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Serving> {
        let store = self.lock().store.take()?;
        Some(Serving { line: Arc::clone(self), since: HostClock.now(), store: Some(store) })
    }

    pub(crate) fn next(&self) -> Option<Waiting> {
        self.lock().waiting.pop_front()
    }

    /// The next request, if it can be part of such a transaction now.
    pub(crate) fn next_beside(&self, access: Access) -> Option<Waiting> {
        let mut state = self.lock();
        let ask = state.waiting.front()?.request.ask();
        if ask.access == access && HostClock.now() < ask.deadline { state.waiting.pop_front() } else { None }
    }

    /// Makes a request the next one again.
    pub(crate) fn put_back(&self, waiting: Waiting) {
        self.lock().waiting.push_front(waiting);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("waiting", &self.lock().waiting.len()).finish_non_exhaustive()
    }
}

/// For how long a line that does not end is served without a pause.
///
/// Chosen: a few commits. Between two of them, other processes hardly find the file free.
const TURN: Duration = Duration::from_millis(10);

/// How long the file is then left to others. They have tried for it twice by then.
const PAUSE: Duration = BUSY_RETRY.saturating_mul(2);

/// The right to serve a line.
pub(crate) struct Serving {
    line: Arc<Line>,
    /// When this turn began.
    since: Moment,
    /// None once it was given away.
    store: Option<Store>,
}

impl Serving {
    /// Serves the first request, with those that can share its transaction. Then the next one leads.
    pub(crate) fn serve(mut self) {
        let Some(store) = &mut self.store else { return };
        if HostClock.now() >= self.since + TURN {
            thread::sleep(PAUSE);
            self.since = HostClock.now();
        }
        store.serve(&self.line);
        let mut state = self.line.lock();
        match state.waiting.front().map(|next| next.lead.clone()) {
            None => state.store = self.store.take(),
            Some(lead) => {
                drop(state);
                // If nobody is there to take it, it is dropped.
                drop(lead.send(self));
            }
        }
    }
}

impl Drop for Serving {
    /// Whoever served panicked, or could not begin. Those in line learn that from their dropped requests.
    fn drop(&mut self) {
        let Some(store) = self.store.take() else { return };
        let mut state = self.line.lock();
        let left = mem::take(&mut state.waiting);
        state.store = Some(store);
        drop(state);
        drop(left);
    }
}
