//! The client of one store.

use std::io;
use std::sync::Arc;

use lock_core::{Ability, AsyncBackend, FLUSH_WITHIN};
use lock_host::{Build, Settings, Stations};
use tokio::sync::Notify;

use crate::driver::Driver;
use crate::keeper;
use crate::latch::Latch;
use crate::mutex::{Mutex, NamedLock, RwLock, Semaphore};

/// A client of one store. Cheap to clone; all clones share their stations, one keeper and one driver.
///
/// Must be created on a tokio runtime, which has to live as long as the client. Within one client, two holds of a lock
/// exclude each other just as they exclude other processes.
#[derive(Clone, Debug)]
pub struct Client(pub(crate) Arc<Stations<Driver>>);

/// Configures a [`Client`].
pub type Builder = lock_host::Builder<Client>;

impl Build for Client {
    type Backend = dyn AsyncBackend;

    fn build(settings: Settings<Self::Backend>) -> io::Result<Self> {
        let backend = Arc::clone(&settings.backend);
        let (driver, left_over) = Driver::spawn(Arc::clone(&backend));
        let changed = Arc::new(Notify::new());
        let wake = Arc::clone(&changed);
        let stations = settings.stations(driver, move || wake.notify_one())?;
        keeper::start(&stations, backend, changed, left_over)?;
        Ok(Self(stations))
    }
}

impl Client {
    /// A client of a store, with the default settings.
    ///
    /// # Errors
    /// Those of starting two threads.
    ///
    /// # Panics
    /// Outside a tokio runtime. The panic points at the caller.
    #[track_caller]
    pub fn new(backend: Arc<dyn AsyncBackend>) -> io::Result<Self> {
        Self::builder(backend).build()
    }

    /// The store, if it can show its locks, for operators: its methods [`holder`](AsyncBackend::holder),
    /// [`list`](AsyncBackend::list), [`revoke`](AsyncBackend::revoke) and [`revoked_by`](AsyncBackend::revoked_by) say who holds which
    /// lock, and end a lease. `None` for a quorum (`redlock://`); all other stores of this library can. See
    /// [`inspect`](lock_core::inspect).
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

    lock_host::client_methods!(dyn AsyncBackend);

    /// Ends all holds and waits of this client and its clones, and waits until the store has answered their releases.
    ///
    /// Waiters are refused, and guards are lost with [`LossReason::Closed`](lock_core::LossReason::Closed). Each release is sent once; if
    /// the store does not answer within the operation timeout, the lease expires with its ttl.
    ///
    /// # Cancel safety
    /// The client is closed when the future is first polled; dropping the future only stops the waiting.
    pub async fn close(&self) {
        let sites = self.0.close();
        sites.iter().for_each(|site| site.attend());
        for site in sites {
            // Another thread is in the middle of a poll, which ends at once.
            while site.lock().waiters.requests.is_polled() {
                tokio::task::yield_now().await;
            }
        }
        self.0.ports().driver.flush().await;
        self.backend().flush(FLUSH_WITHIN).await;
    }
}
