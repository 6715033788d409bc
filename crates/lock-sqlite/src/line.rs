//! The queue of requests for one connection, and the right to serve it.
//!
//! One thread at a time serves. It takes the first request with all that can share its transaction, and then passes the
//! right to the thread of the next request. Requests that arrive during a commit therefore share the next transaction.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

use lock_core::{BackendError, Moment};

use crate::error::thread_ended;
use crate::idle::Idle;
use crate::queue::{Asked, Queue, Request, Waiting};
use crate::store::Store;
use crate::verb::Verb;

/// The requests that wait for one connection.
pub(crate) struct Line {
    queue: Queue<Sender<Serving>>,
    store: Idle<Store>,
}

impl Line {
    pub(crate) fn new(store: Store) -> Arc<Self> {
        Arc::new(Self { queue: Queue::default(), store: Idle::new(Some(store)) })
    }

    /// Puts a request at the end. Returns the right to serve if no thread has it. Otherwise `lead` gets it when this request
    /// is the first.
    #[must_use]
    pub(crate) fn join(self: &Arc<Self>, request: Box<dyn Request>, lead: Sender<Serving>) -> Option<Serving> {
        self.queue.push(Waiting { request, lead });
        self.take()
    }

    /// Asks, and waits for the answer. Serves the line on this thread whenever the request is the first.
    pub(crate) fn ask<V: Verb>(self: &Arc<Self>, verb: V, deadline: Moment) -> Result<V::Answer, BackendError> {
        let (reply, answer) = mpsc::sync_channel(1);
        let (lead, leads) = mpsc::channel();
        let request = Box::new(Asked::new(verb, deadline, move |answer| drop(reply.send(answer))));
        let first = self.join(request, lead);
        // Ends when the request is answered or dropped, and its `lead` with it.
        first.into_iter().chain(leads).for_each(Serving::serve);
        answer.try_recv().unwrap_or_else(|_| Err(thread_ended(V::OPERATION)))
    }

    /// The right to serve, if no thread has it.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Serving> {
        let store = self.store.take()?;
        Some(Serving { line: Arc::clone(self), store: Some(store) })
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

/// The right to serve a queue.
pub(crate) struct Serving {
    line: Arc<Line>,
    /// `None` once it was given back.
    store: Option<Store>,
}

impl Serving {
    /// Serves the first request, with those that can share its transaction, and passes the right on.
    pub(crate) fn serve(mut self) {
        let Some(store) = &mut self.store else { return };
        store.serve(&self.line.queue);
        // Locked before the queue is read, so that a request that joins later finds the store here.
        let mut place = self.line.store.lock();
        match self.line.queue.lead() {
            None => *place = self.store.take(),
            Some(lead) => {
                drop(place);
                // If the receiver is gone, the right is dropped here.
                drop(lead.send(self));
            }
        }
    }
}

impl Drop for Serving {
    /// The serving thread panicked, or could not begin. Dropping the requests in line reports that to their callers.
    fn drop(&mut self) {
        let Some(store) = self.store.take() else { return };
        let mut place = self.line.store.lock();
        let left = self.line.queue.take();
        *place = Some(store);
        drop(place);
        drop(left);
    }
}
