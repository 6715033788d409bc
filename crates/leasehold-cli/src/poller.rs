//! Polls the locks of a store.

use std::io::stdout;
use std::time::Duration;

use leasehold::clock::{Clock, HostClock, Moment};
use leasehold::inspect::{Entry, Note};
use leasehold::{FencingToken, LockName};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::exit::{Exit, Failure};
use crate::locks::Locks;
use crate::report::say_warning;
use crate::store::Store;

/// The locks of a store at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// When the store was asked.
    pub(crate) asked: Moment,
    /// When it had answered.
    pub(crate) at: Moment,
    /// By name; each lock once.
    pub(crate) entries: Vec<Entry>,
}

/// The next step after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Poll again.
    Again,
    /// Nobody reads what is printed.
    End,
}

/// Polls some locks of a store, even if it was away meanwhile.
pub(crate) struct Poller {
    locks: Locks,
    pattern: String,
    /// Why the store did not answer the last poll.
    away: Option<String>,
}

impl Poller {
    /// Connects to the store of this URL.
    pub(crate) fn begin(url: Option<&str>, pattern: &str) -> Result<Self, Failure> {
        Self::of(&Store::choose(url)?, pattern)
    }

    /// Connects to a store.
    pub(crate) fn of(store: &Store, pattern: &str) -> Result<Self, Failure> {
        let locks = Locks::connect_to_look(store)?;
        Ok(Self { locks, pattern: pattern.to_owned(), away: None })
    }

    /// The note of the client that broke the lease whose highest token this is, if one did.
    pub(crate) fn broken_by(&self, name: &LockName, token: FencingToken) -> Result<Option<Note>, Failure> {
        self.locks.revoked_by(name, token)
    }

    /// Shown in place of the remaining time of a lease that has none.
    pub(crate) fn endless(&self) -> &'static str {
        self.locks.endless()
    }

    /// Polls once. A store that does not answer is an error.
    pub(crate) fn first(&mut self) -> Result<Snapshot, Failure> {
        let asked = HostClock.now();
        let mut entries = self.locks.list(&self.pattern)?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries.dedup_by(|a, b| a.name == b.name);
        Ok(Snapshot { asked, at: HostClock.now(), entries })
    }

    /// Polls again; `None` while the store is unreachable. It warns of that once.
    pub(crate) fn again(&mut self) -> Result<Option<Snapshot>, Failure> {
        match self.first() {
            Ok(look) => {
                if self.away.take().is_some() {
                    say_warning("the store is reachable again");
                }
                Ok(Some(look))
            }
            Err(failure) if failure.exit == Exit::Unavailable => {
                if self.away.replace(failure.message.clone()).is_none() {
                    say_warning(&format!("the store is unreachable; retrying: {}", failure.message));
                }
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Sleeps, unless the reader of standard output ends meanwhile.
pub(crate) fn pause(time: Duration) -> Next {
    let out = stdout();
    let mut polled = [PollFd::new(&out, PollFlags::empty())];
    // After an interruption it is time to poll, too.
    let _ = poll(&mut polled, Timespec::try_from(time).ok().as_ref());
    if polled[0].revents().is_empty() { Next::Again } else { Next::End }
}
