//! Polls the locks of a store.

use std::io::stdout;
use std::time::Duration;

use leasehold::inspect::watch::Change;
use leasehold::inspect::{Listing, Watch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::exit::{Exit, Failure};
use crate::locks::Locks;
use crate::report::{Next, say_warning};
use crate::store::Store;

/// Polls some locks of a store, even if the store was unreachable meanwhile.
pub(crate) struct Poller {
    locks: Locks,
    pattern: String,
    /// Why the store did not answer the last poll.
    away: Option<String>,
}

impl Poller {
    /// Connects to the store of this URL.
    pub(crate) fn begin(url: Option<&str>, pattern: &str) -> Result<Self, Failure> {
        let locks = Locks::connect_to_look(&Store::choose(url)?)?;
        Ok(Self { locks, pattern: pattern.to_owned(), away: None })
    }

    /// Shown in place of the remaining time of a lease that has none.
    pub(crate) fn endless(&self) -> &'static str {
        self.locks.endless()
    }

    /// Polls once. A store that does not answer is an error.
    pub(crate) fn first(&self) -> Result<Listing, Failure> {
        self.locks.list(&self.pattern)
    }

    /// Polls again, and returns what has happened since; nothing while the store is unreachable.
    pub(crate) fn changes(&mut self, watch: &mut Watch) -> Result<Vec<Change>, Failure> {
        match self.again()? {
            Some(listing) => self.locks.changes(watch, listing),
            None => {
                watch.miss();
                Ok(Vec::new())
            }
        }
    }

    /// Polls again; `None` while the store is unreachable. It warns of that once.
    pub(crate) fn again(&mut self) -> Result<Option<Listing>, Failure> {
        match self.first() {
            Ok(listing) => {
                if self.away.take().is_some() {
                    say_warning("the store is reachable again");
                }
                Ok(Some(listing))
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
