//! One look at the file on behalf of waiters: what changed for them.
//!
//! # Source
//! "PRAGMA data_version" of the SQLite manual.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::{BackendError, LockName, Moment, Operation};
use lock_host::{Clock, HostClock};
use lock_rules::poll::{self, NewWaiters, Polled, Waiter};

use crate::error::{Fault, Stage, explain};
use crate::file::Missing;
use crate::session::{Access, Ask, Begun, Session};
use crate::settings::Settings;
use crate::transaction::Transaction;

/// How long one look may wait for others.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// A connection for looking only, and what it saw last.
pub(crate) struct Lookout<'a> {
    settings: &'a Settings,
    session: Option<Session>,
    version: Option<i64>,
    /// When something that was seen expires.
    due: Option<Moment>,
}

impl<'a> Lookout<'a> {
    pub(crate) fn new(settings: &'a Settings) -> Self {
        Self { settings, session: None, version: None, due: None }
    }

    pub(crate) fn forget_everything(&mut self) {
        *self = Self::new(self.settings);
    }

    /// What to tell waiters, if anything happened since the last look.
    pub(crate) fn look(
        &mut self,
        new_waiters: NewWaiters,
        waiters: impl FnOnce() -> Vec<Waiter>,
    ) -> Result<Polled, BackendError> {
        let now = self.settings.timing.now();
        let session = self.session()?;
        let version = session.data_version();
        let version =
            version.map_err(|error| explain(Operation::Acquire, Stage::Before, &self.settings.path, error.into()))?;
        let is_due = self.due.is_some_and(|due| due <= now);
        if self.version == Some(version) && new_waiters == NewWaiters::None && !is_due {
            self.session = Some(session);
            return Ok(Polled::default());
        }
        // Read before the look: what is committed between the two is seen twice rather than never.
        self.version = Some(version);
        let found = self.survey(session, &waiters())?;
        self.due = found.due;
        Ok(found)
    }

    fn session(&mut self) -> Result<Session, BackendError> {
        if let Some(session) = self.session.take_if(|session| session.is_current()) {
            return Ok(session);
        }
        self.version = None;
        Session::open(self.settings, &mut self.session, Missing::Refuse, HostClock.now() + LOOK_WITHIN)
    }

    fn survey(&mut self, session: Session, waiters: &[Waiter]) -> Result<Polled, BackendError> {
        let deadline = HostClock.now() + LOOK_WITHIN;
        let ask = Ask { operation: Operation::Acquire, access: Access::Read, deadline };
        match session.begin(self.settings, &ask, || {})? {
            Begun::Here => {
                let work = |db: &_| survey(&Transaction::new(db, self.settings), waiters);
                let (session, found) = session.finish(work);
                self.session = session;
                found.map_err(|failure| failure.explain(ask.operation, &self.settings.path))
            }
            Begun::Replaced => {
                self.session = Some(session);
                Ok(Polled::default())
            }
        }
    }
}

fn survey(transaction: &Transaction<'_>, waiters: &[Waiter]) -> Result<Polled, Fault> {
    let mut found = Polled::default();
    let names: BTreeSet<&LockName> = waiters.iter().map(|waiter| &waiter.name).collect();
    for name in names {
        let mine: Vec<&Waiter> = waiters.iter().filter(|waiter| waiter.name == *name).collect();
        poll::survey(&mut transaction.rows(name), name, &mine, &mut found)?;
    }
    Ok(found)
}
