//! The store for plain threads: a mutex around one connection.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, BlockingInspect, Capabilities, Claim, EventSink, Fenced,
    FencingToken, Lease, LockName, Moment, ReleaseRequest, Released, Renewed,
};
use lock_host::{Clock, HostClock};

use crate::settings::{CAPABILITIES, Settings};
use crate::store::Store;
use crate::watcher::Watcher;
use crate::{SqliteConfig, Timing};

/// One blocking client of a file.
///
/// `within` bounds the time that a request waits for others, in this process and elsewhere. After that it fails as
/// `Unavailable`, and nothing has happened. It does not bound the time that the disk takes, for which the calling
/// thread waits.
#[derive(Debug)]
pub struct Sqlite {
    settings: Arc<Settings>,
    watcher: Arc<Watcher>,
    store: Mutex<Store>,
}

impl Sqlite {
    /// Opens the file, or creates it if it is missing.
    ///
    /// # Errors
    /// `Config` if the directory is missing, on a network file system, for a file that has hard links or is mounted
    /// without its directory, and for a file of a newer version; `Denied` if the file or its directory is not writable;
    /// `OtherKind` for a file of another application. All of these leave the file untouched. `Unavailable` if the disk
    /// is full.
    pub fn open(config: &SqliteConfig) -> Result<Self, BackendError> {
        Self::open_with(config, Timing::of_host()?)
    }

    /// The same with leases timed by `timing`, for tests.
    ///
    /// # Errors
    /// Those of [`Sqlite::open`].
    pub fn open_with(config: &SqliteConfig, timing: Timing) -> Result<Self, BackendError> {
        let client = Self::unopened(Arc::new(Settings::new(config, timing)));
        client.store.lock().unwrap_or_else(PoisonError::into_inner).open()?;
        Ok(client)
    }

    fn unopened(settings: Arc<Settings>) -> Self {
        let watcher = Arc::new(Watcher::new(Arc::clone(&settings)));
        let store = Mutex::new(Store::unopened(Arc::clone(&settings), Arc::clone(&watcher)));
        Self { settings, watcher, store }
    }

    fn ask<T>(&self, within: Duration, work: impl FnOnce(&mut Store, Moment) -> T) -> T {
        let deadline = HostClock.now() + within;
        // A panic leaves the store without a connection, and the next request opens another.
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut store, deadline)
    }
}

impl Backend for Sqlite {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn listen(&self, sink: EventSink) {
        self.watcher.listen(sink);
    }
}

impl BlockingBackend for Sqlite {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        Arc::new(Self::unopened(Arc::clone(&self.settings)))
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.ask(within, |store, deadline| store.acquire(claim, deadline))
    }

    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.ask(within, |store, deadline| store.renew(leases, deadline))
    }

    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.ask(within, |store, deadline| store.release(request, deadline))
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.ask(within, |store, deadline| store.fence(lease, deadline))
    }

    fn inspect(&self) -> Option<&dyn BlockingInspect> {
        Some(self)
    }
}

impl BlockingInspect for Sqlite {
    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.ask(within, |store, deadline| store.holder(name, deadline))
    }

    fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        self.ask(within, |store, deadline| store.list(query, deadline))
    }

    fn revoke(&self, name: &LockName, token: FencingToken, within: Duration) -> Result<Revoked, BackendError> {
        self.ask(within, |store, deadline| store.revoke(name, token, deadline))
    }
}
