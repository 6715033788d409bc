//! Faults on command: a wrapper around any backend, or any node of a quorum, that refuses calls, loses replies or holds
//! them back, and counts and records requests.
//!
//! Requests to a node are counted as `Acquire`, `Fence` and `Release`; looking counts as `Inspect`, and whatever
//! changes its state as `Connect`.
//!
//! ```
//! # mod leasehold { pub use lock_core::{self as backend, self as error, ErrorKind}; pub use lock_memory as memory; }
//! # fn main() {
//! use leasehold::backend::BlockingBackend;
//! use leasehold::memory::{blocking::Memory, faults::{Fault, Faults, Faulty}};
//! use leasehold::error::{Effect, Operation};
//! use leasehold::ErrorKind;
//!
//! let faults = Faults::new();
//! let backend = Faulty::new(Memory::new(), &faults);
//! faults.fail_next(Operation::Renew, Fault::LostReply);
//! let error = backend.renew(&[], std::time::Duration::from_secs(1)).unwrap_err();
//! assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown));
//! assert!(backend.renew(&[], std::time::Duration::from_secs(1)).is_ok());
//! assert_eq!(faults.calls(Operation::Renew), 2);
//! # }
//! ```

mod blocking;
mod node;
mod nonblocking;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use lock_core::{Backend, BackendError, Effect, ErrorKind, Layer, Lease, Operation, Owner};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The store never sees the call. It fails with an error of this kind and no effect; only the effect of
    /// [`ErrorKind::Timeout`] (the request was lost) is always unknown.
    Refused(ErrorKind),
    /// The store runs the call and its answer is lost: a timeout with unknown effect.
    LostReply,
}

/// A request to a store, and its owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A lease for this owner.
    Acquire(Owner),
    /// The renewal of these owners' leases.
    Renew(Vec<Owner>),
    /// The acknowledgement of these owners' leases, by a node of a quorum.
    Fence(Vec<Owner>),
    /// The end of this owner's lease or place.
    Release(Owner),
}

/// The switches of one or more [`Faulty`] backends. Cloning gives another handle on the same switches.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Switches>);

#[derive(Debug, Default)]
struct Switches {
    lines: Mutex<Lines>,
    asked: Mutex<Vec<Asked>>,
    let_go: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    each: HashMap<Operation, Line>,
    everything: Option<Fault>,
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

impl Line {
    fn heal(&mut self) {
        self.next.clear();
        self.standing = None;
    }
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

    /// Fails every call of `operation` until [`Faults::heal`], after the faults that were set for single calls.
    pub fn fail_all(&self, operation: Operation, fault: Fault) {
        self.line(operation, |line| line.standing = Some(fault));
    }

    /// Removes every fault that is set for `operation`. Replies that are held stay held.
    pub fn heal(&self, operation: Operation) {
        self.line(operation, Line::heal);
    }

    /// Fails every call of any operation until [`Faults::heal_everything`], after the faults that were set for its operation.
    pub fn fail_everything(&self, fault: Fault) {
        self.lines().everything = Some(fault);
    }

    /// Removes every fault that is set. Replies that are held stay held.
    pub fn heal_everything(&self) {
        let mut lines = self.lines();
        lines.everything = None;
        lines.each.values_mut().for_each(Line::heal);
    }

    /// Holds back the replies of `operation`, including those of calls already at the store, until [`Faults::let_go`].
    ///
    /// The store runs the calls meanwhile; refusals are returned at once. Held calls ignore their time limit: the test
    /// decides when they end.
    pub fn hold(&self, operation: Operation) {
        self.line(operation, |line| line.replies = Replies::Held);
    }

    /// Delivers the held replies of `operation`, and lets later ones pass.
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

    /// All requests so far, in order, whatever their outcome.
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
        change(self.lines().each.entry(operation).or_default())
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, operation: Operation) -> Option<Fault> {
        let mut lines = self.lines();
        let everything = lines.everything;
        let line = lines.each.entry(operation).or_default();
        line.calls += 1;
        line.next.pop_front().or(line.standing).or(everything)
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
        let held = |lines: &mut Lines| lines.each.get(&operation).is_some_and(|line| line.replies == Replies::Held);
        drop(self.0.let_go.wait_while(self.lines(), held).unwrap_or_else(PoisonError::into_inner));
    }
}

/// A backend, or a node of a quorum, whose calls fail, wait and are counted as its [`Faults`] say. Events pass
/// unchanged.
#[derive(Debug)]
pub struct Faulty<B: ?Sized> {
    faults: Faults,
    backend: Arc<B>,
}

impl<B> Faulty<B> {
    /// Wraps `backend`; several wrappers may share their switches.
    pub fn new(backend: B, faults: &Faults) -> Self {
        Self { faults: faults.clone(), backend: Arc::new(backend) }
    }
}

impl<B: ?Sized> Faulty<B> {
    /// Wraps a backend that is already shared.
    pub fn of(backend: Arc<B>, faults: &Faults) -> Self {
        Self { faults: faults.clone(), backend }
    }
}

/// The owners and the operation of a call.
#[derive(Clone, Copy)]
struct Call {
    backend: &'static str,
    operation: Operation,
}

impl Call {
    fn error(self, kind: ErrorKind, effect: Effect, message: &str) -> BackendError {
        BackendError::new(self.backend, self.operation, kind, effect, message)
    }
}

/// What happens to the answer of a call that the store has run.
#[derive(Clone, Copy)]
enum Reply {
    Delivered,
    Lost,
}

impl<B: ?Sized> Faulty<B> {
    fn begin(&self, call: Call) -> Result<Reply, BackendError> {
        match self.faults.next(call.operation) {
            None => Ok(Reply::Delivered),
            Some(Fault::LostReply) => Ok(Reply::Lost),
            Some(Fault::Refused(kind)) => Err(call.error(kind, Effect::None, "refused on command")),
        }
    }
}

fn end<T>(call: Call, reply: Reply, answer: T) -> Result<T, BackendError> {
    match reply {
        Reply::Delivered => Ok(answer),
        Reply::Lost => Err(call.error(ErrorKind::Timeout, Effect::Unknown, "the reply was lost on command")),
    }
}

impl<B: Backend + ?Sized> Faulty<B> {
    fn call(&self, operation: Operation) -> Call {
        Call { backend: self.backend.capabilities().backend, operation }
    }
}

fn owners(leases: &[Lease]) -> Vec<Owner> {
    leases.iter().map(|lease| lease.owner).collect()
}

impl<B: Backend + ?Sized> Layer for Faulty<B> {
    type Inner = B;

    fn inner(&self) -> &Arc<B> {
        &self.backend
    }
}
