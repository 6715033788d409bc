//! The line of the requests of one connection, and the right to serve it.
//!
//! One at a time serves. It takes the first request, with all that can share its transaction, and then gives the right
//! to the one that is first by then. So requests that arrive while others are written are written together.

use std::fmt;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lock_core::{BackendError, Moment};

use crate::error::thread_ended;
use crate::queue::{Asked, Queue, Request, Waiting};
use crate::store::Store;
use crate::verb::Verb;

/// The requests that wait for one connection.
pub(crate) struct Line {
    queue: Queue<Sender<Serving>>,
    /// None while somebody serves.
    store: Mutex<Option<Store>>,
}

impl Line {
    pub(crate) fn new(store: Store) -> Arc<Self> {
        Arc::new(Self { queue: Queue::default(), store: Mutex::new(Some(store)) })
    }

    /// Puts a request at the end. If nobody serves, the caller has the right to. Otherwise `lead` gets it once this
    /// request is the first.
    #[must_use]
    pub(crate) fn join(self: &Arc<Self>, request: Box<dyn Request>, lead: Sender<Serving>) -> Option<Serving> {
        self.queue.push(Waiting { request, lead });
        self.take()
    }

    /// Asks, and waits for the answer. Meanwhile serves the line on this thread whenever the request is the first.
    pub(crate) fn ask<V: Verb>(self: &Arc<Self>, verb: V, deadline: Moment) -> Result<V::Answer, BackendError> {
        let (reply, answer) = mpsc::sync_channel(1);
        let (lead, leads) = mpsc::channel();
        let request = Box::new(Asked::new(verb, deadline, move |answer| drop(reply.send(answer))));
        let first = self.join(request, lead);
        // Ends when the request is gone.
        first.into_iter().chain(leads).for_each(Serving::serve);
        answer.try_recv().unwrap_or_else(|_| Err(thread_ended(V::OPERATION)))
    }

    /// The right to serve, if nobody does.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Serving> {
        let store = self.lock().take()?;
        Some(Serving { line: Arc::clone(self), store: Some(store) })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Store>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

/// The right to serve a line.
pub(crate) struct Serving {
    line: Arc<Line>,
    /// None once it was given away.
    store: Option<Store>,
}

impl Serving {
    /// Serves the first request, with those that can share its transaction. Then the next one leads.
    pub(crate) fn serve(mut self) {
        let Some(store) = &mut self.store else { return };
        store.serve(&self.line.queue);
        // Locked before the queue is looked at: who joins it later finds the store here.
        let mut place = self.line.lock();
        match self.line.queue.lead() {
            None => *place = self.store.take(),
            Some(lead) => {
                drop(place);
                // If nobody is there to take it, it is dropped.
                drop(lead.send(self));
            }
        }
    }
}

impl Drop for Serving {
    /// The thread that served panicked, or could not begin. Those in line learn that from their dropped requests.
    fn drop(&mut self) {
        let Some(store) = self.store.take() else { return };
        let mut place = self.line.lock();
        let left = self.line.queue.take();
        *place = Some(store);
        drop(place);
        drop(left);
    }
}
