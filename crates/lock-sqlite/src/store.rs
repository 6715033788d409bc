//! The store as one client sees it: the verbs, over a connection that is opened when it is needed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::{
    Answer, BackendError, Claim, Fenced, FencingToken, Lease, LockName, Moment, Operation, ReleaseRequest, Released,
    Renewed,
};
use lock_host::{Clock, HostClock};

use crate::error::{Fault, too_busy};
use crate::file::Missing;
use crate::session::{Access, Ask, Begun, Session, replaced_again};
use crate::settings::Settings;
use crate::transaction::Transaction;
use crate::watcher::Watcher;

/// How long opening waits for others that open or write the file.
pub(crate) const OPEN_WITHIN: Duration = Duration::from_secs(5);

/// How many times in one request the file may turn out to be another one.
const REPLACED_MAX: u32 = 3;

/// The verbs, for one request at a time. The async and the blocking backend share it.
pub(crate) struct Store {
    settings: Arc<Settings>,
    watcher: Arc<Watcher>,
    session: Option<Session>,
}

impl Store {
    /// A store that opens its file with the first request.
    pub(crate) fn unopened(settings: Arc<Settings>, watcher: Arc<Watcher>) -> Self {
        Self { settings, watcher, session: None }
    }

    /// Opens the file at once, so that problems with it show now.
    pub(crate) fn open(&mut self) -> Result<(), BackendError> {
        let deadline = HostClock.now() + OPEN_WITHIN;
        self.session = Some(Session::open(&self.settings, &mut self.session, Missing::Create, deadline)?);
        Ok(())
    }

    pub(crate) fn acquire(&mut self, claim: &Claim, deadline: Moment) -> Result<Answer, BackendError> {
        let answer = self.write(Operation::Acquire, deadline, |transaction| transaction.acquire(claim))?;
        self.watcher.follow(claim, &answer);
        Ok(answer)
    }

    pub(crate) fn renew(&mut self, leases: &[Lease], deadline: Moment) -> Result<Vec<Renewed>, BackendError> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        self.write(Operation::Renew, deadline, |transaction| transaction.renew(leases))
    }

    pub(crate) fn release(&mut self, request: &ReleaseRequest, deadline: Moment) -> Result<Released, BackendError> {
        self.watcher.forget(request.owner);
        self.write(Operation::Release, deadline, |transaction| transaction.release(request))
    }

    pub(crate) fn fence(&mut self, lease: &Lease, deadline: Moment) -> Result<Fenced, BackendError> {
        self.read(Operation::Fence, deadline, |transaction| transaction.fence(lease))
    }

    pub(crate) fn holder(&mut self, name: &LockName, deadline: Moment) -> Result<Option<Entry>, BackendError> {
        self.read(Operation::Inspect, deadline, |transaction| transaction.holder(name))
    }

    pub(crate) fn list(&mut self, query: &Query, deadline: Moment) -> Result<Page, BackendError> {
        self.read(Operation::Inspect, deadline, |transaction| transaction.list(query))
    }

    pub(crate) fn revoke(
        &mut self,
        name: &LockName,
        token: FencingToken,
        deadline: Moment,
    ) -> Result<Revoked, BackendError> {
        self.write(Operation::Inspect, deadline, |transaction| transaction.revoke(name, token))
    }

    fn write<T>(
        &mut self,
        operation: Operation,
        deadline: Moment,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, BackendError> {
        self.transact(&Ask { operation, access: Access::Write, deadline }, work)
    }

    fn read<T>(
        &mut self,
        operation: Operation,
        deadline: Moment,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, BackendError> {
        self.transact(&Ask { operation, access: Access::Read, deadline }, work)
    }

    fn transact<T>(
        &mut self,
        ask: &Ask,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, BackendError> {
        let session = self.begin(ask)?;
        let (session, outcome) = session.finish(&self.settings, ask, work);
        self.session = session;
        outcome
    }

    /// A session whose transaction runs. It is taken out meanwhile, so that a panic closes it and nothing is half done.
    fn begin(&mut self, ask: &Ask) -> Result<Session, BackendError> {
        if HostClock.now() >= ask.deadline {
            return Err(too_busy(ask.operation, &self.settings.path));
        }
        let mut begun = match &self.session {
            Some(session) => session.begin(&self.settings, ask)?,
            None => Begun::Replaced,
        };
        for _ in 0..=REPLACED_MAX {
            if begun == Begun::Here
                && let Some(session) = self.session.take()
            {
                return Ok(session);
            }
            let session = Session::open(&self.settings, &mut self.session, Missing::Create, ask.deadline)?;
            begun = session.begin(&self.settings, ask)?;
            self.session = Some(session);
        }
        Err(replaced_again(ask.operation, &self.settings))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Effect, ErrorKind, Note, Owner, Queueing, Terms, Ttl, Width};

    use super::*;
    use crate::{SqliteConfig, Timing};

    fn store(path: std::path::PathBuf) -> Store {
        let settings = Arc::new(Settings::new(&SqliteConfig::new(path), Timing::of_host().unwrap()));
        let mut store = Store::unopened(Arc::clone(&settings), Arc::new(Watcher::new(settings)));
        store.open().unwrap();
        store
    }

    fn claim(number: u8) -> Claim {
        Claim {
            name: format!("{}{number}", "x".repeat(500)).parse().unwrap(),
            owner: Owner::from_random([number; 16]),
            terms: Terms::exclusive(Ttl::DEFAULT),
            width: Width::ONE,
            floor: None,
            note: Note::new("h", 1, "").unwrap(),
            queueing: Queueing::Unwanted,
            replaces: None,
        }
    }

    fn soon() -> Moment {
        HostClock.now() + Duration::from_secs(20)
    }

    #[test]
    fn a_full_disk_is_an_error_that_changes_nothing_and_passes() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = store(directory.path().join("locks.db"));
        let session = store.session.as_ref().unwrap();
        session.connection().execute_batch("PRAGMA max_page_count = 1").unwrap();
        let (error, refused) = (1..).find_map(|n| Some((store.acquire(&claim(n), soon()).err()?, n))).unwrap();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None));
        assert!(error.to_string().contains("full"), "{error}");

        // The limit was that of the connection, which is not used again.
        assert_eq!(store.holder(&claim(refused).name, soon()).unwrap(), None);
        assert!(matches!(store.acquire(&claim(refused), soon()).unwrap(), Answer::Granted { .. }));
    }
}
