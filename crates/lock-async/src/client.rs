//! The client of one store.

use lock_core::{Ability, Capabilities, Lateness};
use lock_host::{Lock, NamedLatch};

use crate::both;
use crate::driver::Stations;
use crate::latch::Latch;
use crate::mutex::{Mutex, NamedLock, Semaphore};
use crate::rw_lock::RwLock;

#[both]
use lock_core::AsyncBackend;

/// A client of one store. Cheap to clone; all clones share their stations and one keeper.
///
/// Within one client, two holds of a lock exclude each other just as they exclude other processes. In async code, it must be created on a
/// tokio runtime, which has to live as long as the client.
#[derive(Clone, Debug)]
pub struct Client(pub(crate) Stations);

#[both]
impl Client {
    /// The store, if it can show its locks, for operators: its methods [`holder`](AsyncBackend::holder),
    /// [`list`](AsyncBackend::list), [`revoke`](AsyncBackend::revoke) and [`revoked_by`](AsyncBackend::revoked_by) show the holders of
    /// locks, and end leases. All stores of this library support it. See [`inspect`](lock_core::inspect).
    ///
    /// Each request ends with an error of the store if there is no answer within its `within`. A lease that is requested here,
    /// beside the client, is not renewed.
    ///
    /// # Examples
    /// ```
    /// # use lock_core as leasehold;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let locks = lock_async::Client::new(std::sync::Arc::new(store.nonblocking()))?;
    /// use std::time::Duration;
    /// use leasehold::inspect::Query;
    ///
    /// let _guard = locks.mutex("job:7").why("nightly").acquire().await?;
    /// let inspect = locks.inspect().expect("this store has one");
    /// let page = inspect.list(&Query::matching("job:*"), Duration::from_secs(1)).await?;
    /// for entry in &page.entries {
    ///     println!("{}: {}", entry.name, entry.holder); // job:7: pid 4711 on web-3 (nightly)
    /// }
    /// # assert_eq!(page.entries.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn inspect(&self) -> Option<&dyn AsyncBackend> {
        self.capabilities().check_ability(Ability::Inspect).ok().map(|()| self.backend())
    }

    /// A lock by its name, which can be text or a [`LockName`](lock_core::LockName). Text is checked when the lock is
    /// acquired.
    pub fn mutex(&self, name: impl AsRef<str>) -> Mutex {
        NamedLock(Lock::new(&self.0, name.as_ref()))
    }

    /// A read-write lock by its name. Its write side is the [`mutex`](Self::mutex) of the same name, unless the store keeps the two
    /// [apart](lock_core::WriteSide): then a name is used as one or the other.
    /// [`ReadLock`](crate::ReadLock) has an example.
    pub fn rw_lock(&self, name: impl AsRef<str>) -> RwLock {
        let name = name.as_ref();
        RwLock { read: NamedLock(Lock::shared(&self.0, name)), write: NamedLock(Lock::writing(&self.0, name)) }
    }

    /// A semaphore by its name, with `limit` permits, from 1 to 2,147,483,646. All users of the name have to give the same
    /// limit, unless it was changed with `set_limit`. Acquiring the name as a lock meanwhile is an error of the kind
    /// [`OtherKind`](lock_core::ErrorKind::OtherKind). Name and limit are checked when permits are acquired.
    /// [`Semaphore`](crate::Semaphore) has an example.
    pub fn semaphore(&self, name: impl AsRef<str>, limit: u32) -> Semaphore {
        NamedLock(Lock::permits(&self.0, name.as_ref(), limit))
    }

    /// A latch by its name, which can be text or a [`LockName`](lock_core::LockName). Text is checked with the first
    /// request. It is independent of a lock of the same name.
    pub fn latch(&self, name: impl AsRef<str>) -> Latch {
        Latch(NamedLatch::new(&self.0, name.as_ref()))
    }

    /// The capabilities of the store.
    pub fn capabilities(&self) -> Capabilities {
        self.backend().capabilities()
    }

    /// Warnings for operators about the store, as this client found it on connecting, such as that it may evict
    /// held locks. Each is a sentence without secrets; usually there is none.
    pub fn warnings(&self) -> Vec<String> {
        self.backend().warnings()
    }

    /// How late renewals are sent. A machine or a store that is too slow for the ttl shows here before a lock is lost.
    pub fn keeper_lateness(&self) -> Lateness {
        self.0.context().renewals.lateness()
    }

    pub(crate) fn backend(&self) -> &dyn AsyncBackend {
        &*self.0.context().driver.backend
    }
}
