//! The client of one store.

use std::io;

use lock_core::{Ability, BlockingBackend, FLUSH_WITHIN, RequestOrder};
use lock_host::{Build, Settings, Stations};

use crate::closing;
use crate::driver::Driver;
use crate::keeper;
use crate::latch::Latch;
use crate::mutex::{Mutex, NamedLock, RwLock, Semaphore};
use crate::sync::{Arc, Condvar};

/// A client of one store. Cheap to clone; all clones share their stations and one keeper.
///
/// Within one client, two holds of a lock exclude each other just as they exclude other processes.
#[derive(Clone, Debug)]
pub struct Client(pub(crate) Arc<Stations<Driver>>);

/// Configures a [`Client`].
pub type Builder = lock_host::Builder<Client>;

impl Build for Client {
    type Backend = dyn BlockingBackend;

    fn build(mut settings: Settings<Self::Backend>) -> io::Result<Self> {
        let backend = Arc::clone(&settings.backend);
        // Each thread runs its own actions, so their order is not certain.
        settings.policy.store.ordering = RequestOrder::Unordered;
        let changed = Arc::new(Condvar::new());
        let woken = Arc::clone(&changed);
        let driver = Driver::new(Arc::clone(&backend));
        let stations = settings.stations(driver, move || woken.notify_one())?;
        keeper::start(&stations, backend, changed)?;
        Ok(Self(stations))
    }
}

impl Client {
    /// A client of a store, with the default settings.
    ///
    /// # Errors
    /// Those of starting two threads.
    pub fn new(backend: Arc<dyn BlockingBackend>) -> io::Result<Self> {
        Self::builder(backend).build()
    }

    /// The store, if it can show its locks, for operators: its methods [`holder`](BlockingBackend::holder),
    /// [`list`](BlockingBackend::list), [`revoke`](BlockingBackend::revoke) and [`revoked_by`](BlockingBackend::revoked_by) say who holds which
    /// lock, and end a lease. `None` for a quorum (`redlock://`); all other stores of this library can. See
    /// [`inspect`](lock_core::inspect).
    ///
    /// Each request ends with an error of the store if there is no answer within its `within`. A lease that is requested here,
    /// beside the client, is not renewed.
    ///
    /// # Examples
    /// ```
    /// # use lock_core as leasehold;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let locks = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// use std::time::Duration;
    /// use leasehold::inspect::Query;
    ///
    /// let _guard = locks.mutex("job:7").why("nightly").acquire()?;
    /// let inspect = locks.inspect().expect("this store has one");
    /// let page = inspect.list(&Query::matching("job:*"), Duration::from_secs(1))?;
    /// for entry in &page.entries {
    ///     println!("{}: {}", entry.name, entry.holder); // job:7: pid 4711 on web-3 (nightly)
    /// }
    /// # assert_eq!(page.entries.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn inspect(&self) -> Option<&dyn BlockingBackend> {
        self.capabilities().check_ability(Ability::Inspect).ok().map(|()| self.backend())
    }

    lock_host::client_methods!(dyn BlockingBackend);

    /// Ends all holds and waits of this client and its clones, and waits until the store has answered their releases.
    ///
    /// Waiters are refused, and guards are lost with [`LossReason::Closed`](lock_core::LossReason::Closed). Each release is sent once; if
    /// the store does not answer within the operation timeout, the lease expires with its ttl.
    ///
    /// # Blocking
    /// For at most two operation timeouts, however many locks are in use.
    pub fn close(&self) {
        let left = closing::finish(self.0.close());
        self.backend().flush(FLUSH_WITHIN.min(left));
    }
}
