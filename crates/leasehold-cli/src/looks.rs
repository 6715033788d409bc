//! Looking at the locks of a store again and again.

use std::io::stdout;
use std::time::Duration;

use lock_core::Moment;
use lock_core::inspect::Entry;
use lock_host::{Clock, HostClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::broken::is_record;
use crate::exit::{Exit, Failure};
use crate::locks::Locks;
use crate::report::say_warning;
use crate::store::Store;

/// The locks of a store at one moment.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) at: Moment,
    pub(crate) entries: Vec<Entry>,
}

/// What there is to do after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Look again.
    Look,
    /// Nobody reads what is printed.
    End,
}

/// Looks at some locks of a store, also when it was away meanwhile.
#[derive(Debug)]
pub(crate) struct Looks {
    locks: Locks,
    pattern: String,
    is_away: bool,
    was_away: bool,
}

impl Looks {
    /// Connects to the store.
    pub(crate) fn begin(url: Option<&str>, pattern: &str) -> Result<Self, Failure> {
        let locks = Locks::connect(&Store::choose(url)?.that_shows_its_locks()?)?;
        Ok(Self { locks, pattern: pattern.to_owned(), is_away: false, was_away: false })
    }

    /// The locks.
    pub(crate) fn locks(&self) -> &Locks {
        &self.locks
    }

    /// Whether the store was away before the last look.
    pub(crate) fn was_away(&self) -> bool {
        self.was_away
    }

    /// Looks once, without the records of `leasehold break`. A store that does not answer is an error.
    pub(crate) fn first(&self) -> Result<Look, Failure> {
        let mut entries = self.locks.list(&self.pattern)?;
        entries.retain(|entry| !is_record(&entry.name));
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries.dedup_by(|a, b| a.name == b.name);
        Ok(Look { at: HostClock.now(), entries })
    }

    /// Looks again; `None` while the store is away, of which it warns once.
    pub(crate) fn again(&mut self) -> Result<Option<Look>, Failure> {
        match self.first() {
            Ok(look) => {
                self.was_away = std::mem::take(&mut self.is_away);
                if self.was_away {
                    say_warning("the store is back");
                }
                Ok(Some(look))
            }
            Err(failure) if failure.exit == Exit::Unavailable => {
                if !std::mem::replace(&mut self.is_away, true) {
                    say_warning(&format!("the store is away, and is looked for again: {}", failure.message));
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
    // After an interruption it is time to look, too.
    let _ = poll(&mut polled, Timespec::try_from(time).ok().as_ref());
    if polled[0].revents().is_empty() { Next::Look } else { Next::End }
}
