//! The store for plain threads, which take turns in serving one connection.

use std::sync::Arc;
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Act, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, Capabilities, Claim, EventSink, Fenced, FencingToken, Lease,
    Location, LockName, Note, ReleaseRequest, Released, Renewed,
};
use lock_host::{Clock, HostClock};

use crate::idle::Idle;
use crate::line::Line;
use crate::settings::{CAPABILITIES, Settings};
use crate::store::Store;
use crate::verb::{Count, Glance, NewLimit, Revocation, RevokedBy, Verb};
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
    line: Arc<Line>,
    /// The connection that renews, opened before anything is granted.
    keeper: Idle<Store>,
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
        let mut store = Store::unopened(Arc::new(Settings::new(config, timing)));
        store.open()?;
        let keeper = store.another()?;
        Ok(Self { keeper: Idle::new(Some(keeper)), ..Self::new(store) })
    }

    fn new(store: Store) -> Self {
        let (settings, watcher) = (store.settings(), store.watcher());
        Self { settings, watcher, line: Line::new(store), keeper: Idle::new(None) }
    }

    fn ask<V: Verb>(&self, verb: V, within: Duration) -> Result<V::Answer, BackendError> {
        self.line.ask(verb, HostClock.now() + within)
    }
}

impl Backend for Sqlite {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn listen(&self, sink: EventSink) {
        self.watcher.listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        Some(self.settings.locate(name))
    }
}

impl BlockingBackend for Sqlite {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        let opened = self.keeper.take();
        Arc::new(Self::new(opened.unwrap_or_else(|| Store::unopened(Arc::clone(&self.settings)))))
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.ask(claim.clone(), within)
    }

    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.ask(leases.to_vec(), within)
    }

    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.ask(request.clone(), within)
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.ask(lease.clone(), within)
    }

    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.ask(name.clone(), within)
    }

    fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        self.ask(query.clone(), within)
    }

    fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        self.ask(Revocation(name.clone(), token, by.clone()), within)
    }

    fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        self.ask(RevokedBy(name.clone(), highest), within)
    }

    fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        match request.act {
            Act::Look { .. } => self.ask(Glance(request.name.clone()), within),
            Act::Arrive { .. } | Act::Make { .. } | Act::Expect { .. } | Act::Reset { .. } => {
                self.ask(request.clone(), within)
            }
        }
    }

    fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        match request.act {
            limit::Act::Look => self.ask(Count(request.clone()), within),
            limit::Act::Set(_) => self.ask(NewLimit(request.clone()), within),
        }
    }
}
