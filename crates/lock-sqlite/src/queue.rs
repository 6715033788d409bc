//! The requests that wait for a connection, in their order.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lock_core::{BackendError, Moment};
use lock_host::{Clock, HostClock};

use crate::error::Fault;
use crate::session::{Access, Ask};
use crate::transaction::Transaction;
use crate::verb::Verb;
use crate::watcher::Watcher;

/// A request in a line. One that is dropped without an answer may have taken effect.
pub(crate) trait Request: Send {
    fn ask(&self) -> Ask;

    /// Does the work inside a transaction, and keeps the answer until that transaction has ended.
    fn work(&mut self, transaction: &Transaction<'_>, watcher: &Watcher) -> Result<(), Fault>;

    /// Answers the request once its transaction was committed, or failed with this error.
    fn answer(self: Box<Self>, end: Result<(), BackendError>, watcher: &Watcher);
}

/// A verb, and its answer for `reply`.
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

/// A request in the queue.
pub(crate) struct Waiting<L> {
    pub(crate) request: Box<dyn Request>,
    /// The way to the thread that asked. It is dropped after the answer.
    pub(crate) lead: L,
}

/// The requests that wait for one connection.
pub(crate) struct Queue<L>(Mutex<VecDeque<Waiting<L>>>);

impl<L> Default for Queue<L> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<L> Queue<L> {
    pub(crate) fn push(&self, waiting: Waiting<L>) {
        self.lock().push_back(waiting);
    }

    pub(crate) fn next(&self) -> Option<Waiting<L>> {
        self.lock().pop_front()
    }

    /// Takes the next request if it writes and still has time.
    pub(crate) fn next_that_writes(&self) -> Option<Waiting<L>> {
        let mut waiting = self.lock();
        let ask = waiting.front()?.request.ask();
        if ask.access == Access::Write && HostClock.now() < ask.deadline { waiting.pop_front() } else { None }
    }

    /// Removes those whose time is over.
    pub(crate) fn take_overdue(&self) -> VecDeque<Waiting<L>> {
        let now = HostClock.now();
        let mut waiting = self.lock();
        let is_overdue = |waiting: &Waiting<L>| now >= waiting.request.ask().deadline;
        if !waiting.iter().any(is_overdue) {
            return VecDeque::new();
        }
        let (overdue, left) = mem::take(&mut *waiting).into_iter().partition(is_overdue);
        *waiting = left;
        overdue
    }

    /// Puts a request back at the front.
    pub(crate) fn put_back(&self, waiting: Waiting<L>) {
        self.lock().push_front(waiting);
    }

    /// The way to the thread of the next request.
    pub(crate) fn lead(&self) -> Option<L>
    where
        L: Clone,
    {
        self.lock().front().map(|next| next.lead.clone())
    }

    /// Removes all.
    pub(crate) fn take(&self) -> VecDeque<Waiting<L>> {
        mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting<L>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
