//! Several locks, acquired and released together.

use std::ops::Deref;

use lock_core::{Invalid, TryAcquireError};
use lock_host::{HoldError, Setting};

use super::waiting::{join_all, try_all};
use super::{Guard, LossWatch, Mutex, both};
use crate::errors::{AcquireAllError, ReleaseAllError};
use crate::guards::{Guards, Stack};
use crate::set::{SetPlan, passes};

/// A set of locks that are acquired together, of one or several clients and stores. Each keeps its own options; the shortest
/// [`wait`](All::wait) is that of the set.
///
/// Locks of several clients are acquired in the order of their [locations](lock_core::Location). To avoid deadlocks, all processes must name a
/// server in the same way in their URLs (host and port, or path). A SQLite file must have one path, apart from symbolic links.
///
/// # Examples
/// ```
/// # mod leasehold { pub use lock_kit::{nonblocking, nonblocking::all}; }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let client = || lock_async::Client::new(std::sync::Arc::new(lock_memory::MemoryStore::default().nonblocking()));
/// # let (orders, stock) = (client()?, client()?);
/// let guard = leasehold::all([orders.mutex("order:42"), stock.mutex("item:7")]).acquire().await?;
/// guard.check()?;
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[both]
pub fn all(mutexes: impl IntoIterator<Item = Mutex>) -> All {
    All(mutexes.into_iter().collect())
}

/// Several locks that are acquired and released together. Made by [`Kit::all`](super::Kit::all) or [`all`].
///
/// If all of them are free, they are acquired at the same time: in async code with one round trip to each store, however many there are,
/// and otherwise in as many short-lived threads. If not, they are acquired one after the other, in an order that is the same for all
/// clients. So sets cannot deadlock with each other, whatever the order of their names. A set and a guard that is already
/// held can: acquire all locks of a piece of work as one set.
#[derive(Clone, Debug)]
#[must_use = "a set of locks does nothing until it is acquired"]
pub struct All(Vec<Mutex>);

#[both]
impl All {
    ::lock_host::option_setters!(all);

    ::lock_host::option_setters!(each);

    ::lock_host::option_setters!(on_unavailable);

    fn set(self, setting: Setting) -> Self {
        Self(self.0.into_iter().map(|mutex| mutex.set(setting.clone())).collect())
    }

    /// Waits for all of the locks.
    ///
    /// A lock that was acquired early in the wait is held during the rest of it. If it is lost then, all are released, and
    /// the wait begins again.
    ///
    /// # Errors
    /// `Invalid` for an invalid name or option, an empty set, a lock that is listed twice, and locks of several clients
    /// one of which does not know its server; otherwise the error of the lock that was not acquired, as in
    /// [`Mutex::acquire`]. None of the locks is held then.
    ///
    /// # Cancel safety
    /// As [`Mutex::acquire`]: dropping the future gives up the wait, and what was acquired is released in the background.
    ///
    /// # Blocking
    /// For as long as [`wait`](Self::wait) allows, plus at most two operation timeouts, and one for each lock to release; for as long
    /// after a [token](Self::cancelled_by) was cancelled.
    pub async fn acquire(&self) -> Result<AllGuard, AcquireAllError> {
        let plan = self.plan()?;
        if plan.tries_all_first() {
            match self.try_all(&plan).await {
                Ok(guard) => return Ok(guard),
                Err(obstacle) => passes(obstacle)?,
            }
        }
        loop {
            let held = self.in_order(&plan).await?;
            if held.is_held() {
                return Ok(AllGuard(Guards::new(held, plan.order())));
            }
        }
    }

    /// Takes all of the locks if all are free; `None` if one is held.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), without `TimedOut`: a busy lock is not an error.
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    ///
    /// # Blocking
    /// For at most two operation timeouts, and one for each lock to release.
    pub async fn try_acquire(&self) -> Result<Option<AllGuard>, AcquireAllError> {
        TryAcquireError::unless_busy(self.try_acquire_or_holder().await)
    }

    /// Takes all of the locks if all are free, and otherwise names one that is not, and its holder.
    ///
    /// # Errors
    /// `Busy` names a lock that is not free. `Failed` as [`try_acquire`](Self::try_acquire).
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    ///
    /// # Blocking
    /// As [`try_acquire`](Self::try_acquire).
    pub async fn try_acquire_or_holder(&self) -> Result<AllGuard, TryAcquireError<AcquireAllError>> {
        self.try_all(&self.plan().map_err(AcquireAllError::from)?).await
    }

    fn plan(&self) -> Result<SetPlan, Invalid> {
        SetPlan::new(self.0.iter().map(Mutex::member).collect::<Result<_, _>>()?)
    }

    /// Sends all claims before the first answer, so that a store can serve them together.
    async fn try_all(&self, plan: &SetPlan) -> Result<AllGuard, TryAcquireError<AcquireAllError>> {
        let held = plan.landed(try_all(&self.0, plan.order()).await)?;
        Ok(AllGuard(Guards::new(held, plan.order())))
    }

    /// Waits for one lock after the other. Stops early if one of those that it has is lost.
    async fn in_order(&self, plan: &SetPlan) -> Result<Stack<Guard>, AcquireAllError> {
        let mut held = Stack::default();
        for &index in plan.order() {
            let mutex = self.0[index].clone();
            let mutex = if let Some(left) = plan.left() { mutex.wait(left) } else { mutex };
            held.push(mutex.acquire().await.map_err(|error| plan.failed(index, error))?);
            if !held.is_held() {
                break;
            }
        }
        Ok(held)
    }
}

/// Proof that all locks of a set are held, until it is released or dropped, or until one of them is lost.
///
/// Dropping it releases the locks, the one that was acquired last first: in async code in the background, and otherwise by blocking for
/// at most an operation timeout for each.
///
/// It has no `detach`: each of its locks is a lease with a ticket of its own, and another process could adopt a part of the set.
/// Acquire and detach the mutexes one by one, or use one name for the set.
#[must_use = "the locks are released when the guard is dropped"]
#[derive(Debug)]
pub struct AllGuard(Guards<Guard>);

#[both]
impl AllGuard {
    /// A handle that waits for the first loss, for instance in another task or thread. It does not keep the locks.
    pub fn watch(&self) -> AllWatch {
        AllWatch(self.iter().map(Guard::watch).collect())
    }

    /// Asks the stores whether all locks are still held.
    ///
    /// # Errors
    /// Those of [`Guard::verify`] for the first of the locks that has one.
    ///
    /// # Cancel safety
    /// Changes nothing.
    ///
    /// # Blocking
    /// For at most an operation timeout for each lock.
    pub async fn verify(&self) -> Result<(), HoldError> {
        join_all(self.iter().map(Guard::verify)).await.into_iter().collect()
    }

    /// Renews the leases of all locks now.
    ///
    /// # Errors
    /// Those of [`Guard::renew`] for the first of the locks that has one. The others were renewed.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: a lease may or may not have been renewed.
    ///
    /// # Blocking
    /// For at most an operation timeout for each lock.
    pub async fn renew(&self) -> Result<(), HoldError> {
        join_all(self.iter().map(Guard::renew)).await.into_iter().collect()
    }

    /// Releases all locks, the one that was acquired last first, and waits for the answers of their stores. Success means
    /// that no loss was detected.
    ///
    /// # Errors
    /// Names each lock that had been lost or whose release was not confirmed. All others are released whatever happens
    /// to one of them.
    ///
    /// # Cancel safety
    /// The releases are sent when the future is first polled; dropping the future only stops the waiting.
    ///
    /// # Blocking
    /// For at most an operation timeout for each lock.
    pub async fn release(self) -> Result<(), ReleaseAllError> {
        let release = async |guard: Guard| {
            let name = guard.name().clone();
            (name, guard.release().await)
        };
        ReleaseAllError::of(join_all(self.0.backwards().map(release)).await)
    }
}

impl Deref for AllGuard {
    type Target = Guards<Guard>;

    fn deref(&self) -> &Guards<Guard> {
        &self.0
    }
}

/// Waits for the first loss among the locks of a set, and does not keep them. Made by [`AllGuard::watch`].
#[derive(Clone, Debug)]
pub struct AllWatch(pub(super) Vec<LossWatch>);

impl AllWatch {
    /// Whether one of the locks is not held any more: it was lost, or the guard was dropped or is being released.
    pub fn has_ended(&self) -> bool {
        self.0.iter().any(LossWatch::has_ended)
    }
}
