//! Faults on command: a cover round any backend that refuses calls, loses replies, holds them back, counts and writes
//! down what was asked.
//!
//! ```
//! use lock_core::{BlockingBackend, Effect, ErrorKind, Operation};
//! use lock_memory::{blocking::Memory, faults::{Fault, Faults, Faulty}};
//!
//! let faults = Faults::new();
//! let backend = Faulty::new(Memory::new(), &faults);
//! faults.fail_next(Operation::Renew, Fault::LostReply);
//! let error = backend.renew(&[], std::time::Duration::from_secs(1)).unwrap_err();
//! assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown));
//! assert!(backend.renew(&[], std::time::Duration::from_secs(1)).is_ok());
//! assert_eq!(faults.calls(Operation::Renew), 2);
//! ```

mod blocking;
mod nonblocking;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use lock_core::{Backend, BackendError, Capabilities, Effect, ErrorKind, EventSink, Operation, Owner};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The store never sees the call: an error of this kind and of no effect, but [`ErrorKind::Timeout`] (the request
    /// was lost), which is always of unknown effect.
    Refused(ErrorKind),
    /// The store runs the call and its answer is lost: a timeout of unknown effect.
    LostReply,
}

/// What was asked of a store, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A lease for this owner.
    Acquire(Owner),
    /// The renewal of these owners' leases.
    Renew(Vec<Owner>),
    /// The end of this owner's lease or place.
    Release(Owner),
}

/// The switches of one or more [`Faulty`] backends. Cloning gives another handle on the same switches.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Switches>);

#[derive(Debug, Default)]
struct Switches {
    lines: Mutex<HashMap<Operation, Line>>,
    asked: Mutex<Vec<Asked>>,
    let_go: Condvar,
}

/// What is set and counted for one operation.
#[derive(Debug, Default)]
struct Line {
    calls: u64,
    ran: u64,
    next: VecDeque<Fault>,
    standing: Option<Fault>,
    replies: Replies,
    waiting: Vec<Waker>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Replies {
    #[default]
    Flow,
    Held,
}

impl Faults {
    /// Switches that let everything pass.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fails one call of `operation`: the next one for which nothing is set yet.
    pub fn fail_next(&self, operation: Operation, fault: Fault) {
        self.line(operation, |line| line.next.push_back(fault));
    }

    /// Fails every call of `operation` until [`Faults::heal`], after those that were set singly.
    pub fn fail_all(&self, operation: Operation, fault: Fault) {
        self.line(operation, |line| line.standing = Some(fault));
    }

    /// Forgets every fault that is set for `operation`. Replies that are held stay so.
    pub fn heal(&self, operation: Operation) {
        self.line(operation, |line| {
            line.next.clear();
            line.standing = None;
        });
    }

    /// Holds back the replies of `operation`, also those of calls already at the store, until [`Faults::let_go`].
    ///
    /// The store runs the calls meanwhile; refusals come at once. Held calls do not heed their time limit: the test decides when it is over.
    pub fn hold(&self, operation: Operation) {
        self.line(operation, |line| line.replies = Replies::Held);
    }

    /// Lets the held replies of `operation` go, and later ones pass.
    pub fn let_go(&self, operation: Operation) {
        let waiting = self.line(operation, |line| {
            line.replies = Replies::Flow;
            std::mem::take(&mut line.waiting)
        });
        self.0.let_go.notify_all();
        waiting.into_iter().for_each(Waker::wake);
    }

    /// How many calls of `operation` were made.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.line(operation, |line| line.calls)
    }

    /// How many calls of `operation` the store has run, whether or not their replies were held or lost.
    pub fn ran(&self, operation: Operation) -> u64 {
        self.line(operation, |line| line.ran)
    }

    /// What was asked so far, in order, whatever became of it.
    pub fn asked(&self) -> Vec<Asked> {
        self.journal().clone()
    }

    fn note_asked(&self, asked: Asked) {
        self.journal().push(asked);
    }

    fn journal(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line<T>(&self, operation: Operation, change: impl FnOnce(&mut Line) -> T) -> T {
        change(self.lines().entry(operation).or_default())
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Operation, Line>> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, operation: Operation) -> Option<Fault> {
        self.line(operation, |line| {
            line.calls += 1;
            line.next.pop_front().or(line.standing)
        })
    }

    fn note_ran(&self, operation: Operation) {
        self.line(operation, |line| line.ran += 1);
    }

    fn poll_let_go(&self, operation: Operation, context: &Context<'_>) -> Poll<()> {
        self.line(operation, |line| match line.replies {
            Replies::Flow => Poll::Ready(()),
            Replies::Held => {
                line.waiting.push(context.waker().clone());
                Poll::Pending
            }
        })
    }

    fn wait_let_go(&self, operation: Operation) {
        let held = |lines: &mut HashMap<Operation, Line>| {
            lines.get(&operation).is_some_and(|line| line.replies == Replies::Held)
        };
        drop(self.0.let_go.wait_while(self.lines(), held).unwrap_or_else(PoisonError::into_inner));
    }
}

/// A backend whose calls fail, wait and are counted as its [`Faults`] say. Events pass untouched.
#[derive(Debug)]
pub struct Faulty<B: ?Sized> {
    faults: Faults,
    backend: Arc<B>,
}

impl<B: Backend> Faulty<B> {
    /// Covers `backend`; several covers may share their switches.
    pub fn new(backend: B, faults: &Faults) -> Self {
        Self { faults: faults.clone(), backend: Arc::new(backend) }
    }
}

/// What becomes of a call's answer once the store has run it.
#[derive(Clone, Copy)]
enum Reply {
    Delivered,
    Lost,
}

impl<B: Backend + ?Sized> Faulty<B> {
    fn begin(&self, operation: Operation) -> Result<Reply, BackendError> {
        match self.faults.next(operation) {
            None => Ok(Reply::Delivered),
            Some(Fault::LostReply) => Ok(Reply::Lost),
            Some(Fault::Refused(kind)) => Err(self.error(operation, kind, Effect::None, "refused on command")),
        }
    }

    fn end<T>(&self, operation: Operation, reply: Reply, answer: T) -> Result<T, BackendError> {
        match reply {
            Reply::Delivered => Ok(answer),
            Reply::Lost => {
                let message = "the reply was lost on command";
                Err(self.error(operation, ErrorKind::Timeout, Effect::Unknown, message))
            }
        }
    }

    fn error(&self, operation: Operation, kind: ErrorKind, effect: Effect, message: &str) -> BackendError {
        BackendError::new(self.capabilities().backend, operation, kind, effect, message)
    }

    fn cannot_inspect(&self) -> BackendError {
        let message = "this store offers no view for operators";
        self.error(Operation::Inspect, ErrorKind::Unsupported, Effect::None, message)
    }
}

impl<B: Backend + ?Sized> Backend for Faulty<B> {
    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    fn listen(&self, sink: EventSink) {
        self.backend.listen(sink);
    }
}
