//! A lock that the thread which holds it can acquire again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::{Rc, Weak};

use lock_blocking::{Guard, Mutex};
use lock_core::LockName;
use lock_host::{ClientId, Error, HoldError, Setting};

thread_local! {
    /// The holds of this thread.
    static HELD: RefCell<HashMap<(ClientId, LockName), Weak<Guard>>> = RefCell::default();
}

/// A lock that the thread which holds it can acquire again. Made by [`Kit::reentrant`](super::Kit::reentrant).
///
/// The first acquire of a thread asks the store. Later ones are local: they check that the lock is still held, and return
/// a guard with the same fencing token. The last guard releases the lock. The holder is a thread with one client, or
/// clones of it: an acquire by another thread or through another client waits, and so does an acquire through
/// [`Client::mutex`](lock_blocking::Client::mutex).
///
/// The options of the first acquire apply until the last guard is gone.
///
/// # Examples
/// ```
/// # mod leasehold { pub use lock_kit::blocking; }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = lock_memory::MemoryStore::default();
/// # let locks = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
/// use leasehold::blocking::Kit;
///
/// let pay = || -> Result<(), Box<dyn std::error::Error>> {
///     let guard = locks.reentrant("order:7").acquire()?; // asks the store only if this thread does not hold the lock
///     // ... raise the fence to guard.write_token(), then read; pay, with guard.fencing_token()
///     Ok(guard.release()?)
/// };
///
/// let guard = locks.reentrant("order:7").acquire()?;
/// pay()?;
/// guard.release()?; // the last guard: only now the lock is free
/// pay()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Reentrant(Mutex);

impl Reentrant {
    pub(super) fn new(mutex: Mutex) -> Self {
        Self(mutex)
    }

    ::lock_host::option_setters!(all);

    ::lock_host::option_setters!(each);

    ::lock_host::option_setters!(on_unavailable);

    fn set(self, setting: Setting) -> Self {
        Self(self.0.set(setting))
    }

    /// Waits for the lock, or acquires it again if this thread holds it.
    ///
    /// # Errors
    /// `Lost` if this thread held it, lost it, and still has guards of that hold; otherwise those of [`Mutex::acquire`].
    ///
    /// # Blocking
    /// As [`Mutex::acquire`]; not at all if this thread holds the lock.
    pub fn acquire(&self) -> Result<ReentrantGuard, Error> {
        let identity = self.0.identity()?;
        if let Some(guard) = again(&identity)? {
            return Ok(guard);
        }
        Ok(ReentrantGuard::first(identity, self.0.acquire()?))
    }

    /// Takes the lock if it is free or this thread holds it; `None` if it is held elsewhere.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), without `TimedOut`: a busy lock is not an error.
    ///
    /// # Blocking
    /// As [`Mutex::try_acquire`]; not at all if this thread holds the lock.
    pub fn try_acquire(&self) -> Result<Option<ReentrantGuard>, Error> {
        let identity = self.0.identity()?;
        if let Some(guard) = again(&identity)? {
            return Ok(Some(guard));
        }
        Ok(self.0.try_acquire()?.map(|guard| ReentrantGuard::first(identity, guard)))
    }
}

/// One more guard of what this thread holds, if it holds this lock.
fn again(identity: &(ClientId, LockName)) -> Result<Option<ReentrantGuard>, Error> {
    // While the thread ends, this has no more entries.
    let held = HELD.try_with(|held| held.borrow().get(identity).and_then(Weak::upgrade));
    let Some(guard) = held.unwrap_or_default() else { return Ok(None) };
    guard.check()?;
    Ok(Some(ReentrantGuard(guard)))
}

/// Proof that this thread holds the lock, until it is released, dropped or lost. It cannot be sent to another thread.
///
/// The last guard of the hold releases the lock, and blocks for at most an operation timeout.
///
/// It has no `detach`, because the functions around this one hold by the same lease.
///
/// ```compile_fail,E0277
/// fn to_another_thread(guard: lock_kit::blocking::ReentrantGuard) {
///     std::thread::spawn(move || drop(guard));
/// }
/// ```
#[must_use = "the lock is released when its last guard is dropped"]
#[derive(Debug)]
pub struct ReentrantGuard(Rc<Guard>);

impl ReentrantGuard {
    fn first(identity: (ClientId, LockName), guard: Guard) -> Self {
        let guard = Rc::new(guard);
        _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            held.retain(|_, guard| guard.strong_count() > 0);
            held.insert(identity, Rc::downgrade(&guard));
        });
        Self(guard)
    }

    /// Gives up this guard. The last one releases the lock and waits for the store's answer. Success means that no loss
    /// was detected. While this thread has other guards, the lock stays held, and nothing is sent to the store.
    ///
    /// # Errors
    /// `Lost` if the lock had already been lost. `Backend` from the last guard, as in [`Guard::release`].
    ///
    /// # Blocking
    /// For at most an operation timeout if this is the last guard.
    pub fn release(self) -> Result<(), HoldError> {
        let checked = self.0.check();
        match Rc::into_inner(self.0) {
            Some(guard) => guard.release(),
            None => Ok(checked?),
        }
    }
}

impl Deref for ReentrantGuard {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.0
    }
}
