//! The store as one client sees it: a connection that is opened when it is needed.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_core::BackendError;
use lock_host::{Clock, HostClock};

use crate::batch::Batch;
use crate::error::too_busy;
use crate::file::Missing;
use crate::idle::{self, Opened};
use crate::queue::{Queue, Waiting};
use crate::session::{Ask, Begun, Session, replaced_again};
use crate::settings::Settings;
use crate::turn::Turn;
use crate::watcher::Watcher;

/// How long opening waits for others that open or write the file.
pub(crate) const OPEN_WITHIN: Duration = Duration::from_secs(5);

/// How many times in one transaction the file may turn out to be another one.
const REPLACED_MAX: u32 = 3;

/// Serves the requests of one client. The async and the blocking backend share it.
pub(crate) struct Store {
    settings: Arc<Settings>,
    watcher: Arc<Watcher>,
    session: Option<Session>,
    turn: Turn,
}

impl Store {
    /// A store that opens its file with the first request.
    pub(crate) fn unopened(settings: Arc<Settings>) -> Self {
        let watcher = Arc::new(Watcher::new(Arc::clone(&settings)));
        Self { settings, watcher, session: None, turn: Turn::default() }
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings)
    }

    pub(crate) fn watcher(&self) -> Arc<Watcher> {
        Arc::clone(&self.watcher)
    }

    /// Opens the file at once, so that problems with it show now.
    pub(crate) fn open(&mut self) -> Result<(), BackendError> {
        let deadline = HostClock.now() + OPEN_WITHIN;
        self.session = Some(Session::open(&self.settings, &mut self.session, Missing::Create, deadline)?);
        Ok(())
    }

    /// A store with a connection of its own to the same file, which is open.
    pub(crate) fn another(&self) -> Result<Self, BackendError> {
        let mut another = Self::unopened(self.settings());
        another.open()?;
        Ok(another)
    }

    /// Serves the next request of a queue, with those behind it that can share its transaction.
    pub(crate) fn serve<L>(&mut self, queue: &Queue<L>) {
        let Some(first) = queue.next() else { return };
        let ask = first.request.ask();
        let session = match self.begin(&ask, queue) {
            Ok(session) => session,
            Err(error) => return first.request.answer(Err(error), &self.watcher),
        };
        let mut batch = Batch::new(&self.settings, &self.watcher, first);
        let (session, end) = session.finish(|db| batch.work(db, &ask, queue));
        self.session = session;
        batch.answer(&end);
    }

    #[cfg(test)]
    pub(crate) fn connection(&mut self) -> &mut rusqlite::Connection {
        self.session.as_mut().unwrap().connection()
    }

    /// A session whose transaction runs. It is taken out meanwhile, so that a panic closes it and nothing is half done.
    fn begin<L>(&mut self, ask: &Ask, queue: &Queue<L>) -> Result<Session, BackendError> {
        if HostClock.now() >= ask.deadline {
            return Err(too_busy(ask.operation, &self.settings.path));
        }
        self.turn.leave_room();
        let has_waited = Cell::new(false);
        let (settings, watcher) = (Arc::clone(&self.settings), Arc::clone(&self.watcher));
        let session = self.begin_now(ask, || {
            has_waited.set(true);
            refuse_overdue(queue, &settings, &watcher);
        });
        if has_waited.get() {
            self.turn.waited(HostClock.now());
        }
        session
    }

    fn begin_now(&mut self, ask: &Ask, meanwhile: impl Fn()) -> Result<Session, BackendError> {
        let mut begun = match &self.session {
            Some(session) => session.begin(&self.settings, ask, &meanwhile)?,
            None => Begun::Replaced,
        };
        for _ in 0..=REPLACED_MAX {
            if begun == Begun::Here
                && let Some(session) = self.session.take()
            {
                return Ok(session);
            }
            idle::close_outdated();
            let session = Session::open(&self.settings, &mut self.session, Missing::Create, ask.deadline)?;
            begun = session.begin(&self.settings, ask, &meanwhile)?;
            self.session = Some(session);
        }
        Err(replaced_again(ask.operation, &self.settings))
    }
}

impl Opened for Store {
    fn close_outdated(&mut self) {
        self.session.take_if(|session| !session.is_current());
    }
}

/// Answers those in line that may not wait as long as the first one.
fn refuse_overdue<L>(queue: &Queue<L>, settings: &Settings, watcher: &Watcher) {
    for Waiting { request, lead } in queue.take_overdue() {
        let operation = request.ask().operation;
        request.answer(Err(too_busy(operation, &settings.path)), watcher);
        drop(lead);
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{ErrorKind, Operation};

    use super::*;
    use crate::session::Access;
    use crate::{SqliteConfig, Timing};

    #[test]
    fn only_a_file_that_was_locked_makes_a_client_leave_room() {
        let directory = tempfile::tempdir().unwrap();
        let config = SqliteConfig::new(directory.path().join("locks.db"));
        let mut store = Store::unopened(Arc::new(Settings::new(&config, Timing::of_host().unwrap())));
        let begin = |store: &mut Store, within| {
            let ask = Ask { operation: Operation::Acquire, access: Access::Write, deadline: HostClock.now() + within };
            store.begin(&ask, &Queue::<()>::default())
        };
        let alone = begin(&mut store, OPEN_WITHIN).unwrap();
        assert_eq!(store.turn, Turn::default());

        let error = begin(&mut store, Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_ne!(store.turn, Turn::default());
        drop(alone);
    }
}
