//! The verbs as requests: the kind of transaction that each needs, and what it reports to the watcher.

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{Request, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, Claim, Fenced, FencingToken, Lease, LockName, Note, Operation, ReleaseRequest, Released, Renewed,
};

use crate::error::Fault;
use crate::session::Access;
use crate::transaction::Transaction;
use crate::watcher::Watcher;

/// Work in a transaction, independent of other work in the same transaction.
pub(crate) trait Verb: Send + 'static {
    type Answer: Send + 'static;
    const OPERATION: Operation;
    const ACCESS: Access;

    fn work(&self, transaction: &Transaction<'_>) -> Result<Self::Answer, Fault>;

    /// Before the work.
    fn begin(&self, _: &Watcher) {}

    /// After the commit, before the answer is sent.
    fn end(&self, _: &Watcher, _: &Self::Answer) {}
}

impl Verb for Claim {
    type Answer = Answer;
    const OPERATION: Operation = Operation::Acquire;
    const ACCESS: Access = Access::Write;

    fn work(&self, transaction: &Transaction<'_>) -> Result<Answer, Fault> {
        transaction.acquire(self)
    }

    fn end(&self, watcher: &Watcher, answer: &Answer) {
        watcher.follow(self, answer);
    }
}

impl Verb for Vec<Lease> {
    type Answer = Vec<Renewed>;
    const OPERATION: Operation = Operation::Renew;
    const ACCESS: Access = Access::Write;

    fn work(&self, transaction: &Transaction<'_>) -> Result<Vec<Renewed>, Fault> {
        transaction.renew(self)
    }
}

impl Verb for ReleaseRequest {
    type Answer = Released;
    const OPERATION: Operation = Operation::Release;
    const ACCESS: Access = Access::Write;

    fn begin(&self, watcher: &Watcher) {
        watcher.forget(self.owner);
    }

    fn work(&self, transaction: &Transaction<'_>) -> Result<Released, Fault> {
        transaction.release(self)
    }

    /// Again: its claim may be part of the same transaction.
    fn end(&self, watcher: &Watcher, _: &Released) {
        watcher.forget(self.owner);
    }
}

impl Verb for Lease {
    type Answer = Fenced;
    const OPERATION: Operation = Operation::Fence;
    const ACCESS: Access = Access::Read;

    fn work(&self, transaction: &Transaction<'_>) -> Result<Fenced, Fault> {
        transaction.fence(self)
    }
}

impl Verb for LockName {
    type Answer = Option<Entry>;
    const OPERATION: Operation = Operation::Inspect;
    const ACCESS: Access = Access::Read;

    fn work(&self, transaction: &Transaction<'_>) -> Result<Option<Entry>, Fault> {
        transaction.holder(self)
    }
}

impl Verb for Query {
    type Answer = Page;
    const OPERATION: Operation = Operation::Inspect;
    const ACCESS: Access = Access::Read;

    fn work(&self, transaction: &Transaction<'_>) -> Result<Page, Fault> {
        transaction.list(self)
    }
}

/// Ends the hold that has this token, for whom the note names.
pub(crate) struct Revocation(pub(crate) LockName, pub(crate) FencingToken, pub(crate) Note);

impl Verb for Revocation {
    type Answer = Revoked;
    const OPERATION: Operation = Operation::Inspect;
    const ACCESS: Access = Access::Write;

    fn work(&self, transaction: &Transaction<'_>) -> Result<Revoked, Fault> {
        transaction.revoke(&self.0, self.1, &self.2)
    }
}

/// Who ended the hold whose highest token this is.
pub(crate) struct RevokedBy(pub(crate) LockName, pub(crate) FencingToken);

impl Verb for RevokedBy {
    type Answer = Option<Note>;
    const OPERATION: Operation = Operation::Inspect;
    const ACCESS: Access = Access::Read;

    fn work(&self, transaction: &Transaction<'_>) -> Result<Option<Note>, Fault> {
        transaction.revoked_by(&transaction.key(&self.0), self.1)
    }
}

/// A request that may change a latch.
impl Verb for Request {
    type Answer = Seen;
    const OPERATION: Operation = Operation::Latch;
    const ACCESS: Access = Access::Write;

    fn work(&self, transaction: &Transaction<'_>) -> Result<Seen, Fault> {
        transaction.latch(self)
    }
}

/// A look at the latch of this name.
pub(crate) struct Glance(pub(crate) LockName);

impl Verb for Glance {
    type Answer = Seen;
    const OPERATION: Operation = Operation::Latch;
    const ACCESS: Access = Access::Read;

    fn work(&self, transaction: &Transaction<'_>) -> Result<Seen, Fault> {
        transaction.seen(&self.0)
    }
}

/// A new limit for a semaphore.
pub(crate) struct NewLimit(pub(crate) limit::Request);

impl Verb for NewLimit {
    type Answer = Usage;
    const OPERATION: Operation = Operation::Limit;
    const ACCESS: Access = Access::Write;

    fn work(&self, transaction: &Transaction<'_>) -> Result<Usage, Fault> {
        transaction.limit(&self.0)
    }
}

/// A look at a semaphore.
pub(crate) struct Count(pub(crate) limit::Request);

impl Verb for Count {
    type Answer = Usage;
    const OPERATION: Operation = Operation::Limit;
    const ACCESS: Access = Access::Read;

    fn work(&self, transaction: &Transaction<'_>) -> Result<Usage, Fault> {
        transaction.limit(&self.0)
    }
}

/// Anything else that a test does in a transaction.
#[cfg(test)]
pub(crate) struct Work<F>(F);

#[cfg(test)]
pub(crate) fn work<T, F: Fn(&Transaction<'_>) -> Result<T, Fault>>(work: F) -> Work<F> {
    Work(work)
}

#[cfg(test)]
impl<T: Send + 'static, F: Fn(&Transaction<'_>) -> Result<T, Fault> + Send + 'static> Verb for Work<F> {
    type Answer = T;
    const OPERATION: Operation = Operation::Renew;
    const ACCESS: Access = Access::Write;

    fn work(&self, transaction: &Transaction<'_>) -> Result<T, Fault> {
        self.0(transaction)
    }
}
