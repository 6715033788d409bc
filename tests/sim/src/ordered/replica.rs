//! A server with a copy of the entries, which may be old. It notifies clients of what changes there.

use std::mem;
use std::time::Duration;

use lock_core::{Answer, Claim, FencingToken, LockName, Moment, StoreEvent};

use super::entries::{Entries, Turn};
use crate::network::ConnId;
use crate::one::{Inbox, Refused};

#[derive(Debug)]
pub(crate) struct Replica<T> {
    /// The entries as they once were at the leader, in this version.
    pub(crate) entries: Entries<T>,
    pub(crate) version: u64,
    /// How long after a change it gets that, unless a write goes through it before.
    pub(crate) lag: Duration,
    due: Option<Moment>,
    watches: Vec<Watch>,
}

/// The waiter with one entry sleeps until one of these others ends.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) conn: ConnId,
    pub(crate) inbox: Inbox,
    pub(crate) name: LockName,
    pub(crate) waits: FencingToken,
    pub(crate) watched: Vec<FencingToken>,
}

impl Watch {
    /// Has the waiter look again.
    pub(crate) fn wake(self) -> (Inbox, StoreEvent) {
        (self.inbox, StoreEvent::Freed { name: self.name })
    }
}

/// What the order means for a claim.
pub(crate) enum Judged {
    Holds(Answer),
    Waits { answer: Answer, waits: FencingToken, watched: Vec<FencingToken> },
}

impl<T> Default for Replica<T> {
    fn default() -> Self {
        let (entries, lag) = (Entries::default(), Duration::ZERO);
        Self { entries, version: 0, lag, due: None, watches: Vec::new() }
    }
}

impl<T: Clone> Replica<T> {
    /// It starts again, with all that the leader has.
    pub(crate) fn start_again(&mut self, entries: &Entries<T>, version: u64) {
        *self = Self { entries: entries.clone(), version, lag: self.lag, ..Self::default() };
    }

    /// Whether it is time to catch up with this version.
    pub(crate) fn is_due(&mut self, now: Moment, version: u64) -> bool {
        self.version < version && *self.due.get_or_insert(now + self.lag) <= now
    }

    /// Gets what the leader has. Returns the watches that this ends.
    pub(crate) fn catch_up(&mut self, entries: &Entries<T>, version: u64) -> Vec<Watch> {
        if self.version == version {
            return Vec::new();
        }
        (self.entries, self.version, self.due) = (entries.clone(), version, None);
        let entries = &self.entries;
        self.watches.extract_if(.., |watch| !watch.watched.iter().all(|key| entries.has(*key))).collect()
    }
}

impl<T> Replica<T> {
    /// Has a waiter sleep. What it watched before does not count any more.
    pub(crate) fn watch(&mut self, watch: Watch) {
        self.watches.retain(|known| known.waits != watch.waits);
        self.watches.push(watch);
    }

    /// Drops the watches of a connection. Returns whether there were any.
    pub(crate) fn closed(&mut self, conn: ConnId) -> bool {
        let before = self.watches.len();
        self.watches.retain(|watch| watch.conn != conn);
        self.watches.len() < before
    }

    /// Loses all watches.
    pub(crate) fn take_watches(&mut self) -> Vec<Watch> {
        mem::take(&mut self.watches)
    }

    /// Somebody who sleeps although it holds, as everybody sees who looks here.
    pub(crate) fn oversleeps(&self) -> Option<&Watch> {
        self.watches.iter().find(|watch| self.entries.turn(&watch.name, watch.waits) == Some(Turn::Holds))
    }

    /// What the order here means for a claim that has an entry. A place is valid for this long.
    pub(crate) fn judge(&self, claim: &Claim, lives: Duration) -> Result<Judged, Refused> {
        let (name, entries) = (&claim.name, &self.entries);
        let own = entries.entry(claim.owner).and_then(|own| Some((own, entries.turn(name, own.key())?)));
        let Some((own, turn)) = own else { return Err(Refused::GivenUp) };
        Ok(match turn {
            Turn::Holds => {
                let (lease, valid_for) = (own.lease(), claim.terms.ttl.get());
                Judged::Holds(Answer::Granted { lease, valid_for, wanted: entries.is_wanted(name) })
            }
            Turn::Waits { position, watched } => {
                let (waits, (holder, drawn)) = (own.key(), entries.first(claim)?);
                let answer = Answer::Queued { position, remaining: None, valid_for: lives, holder, drawn };
                Judged::Waits { answer, waits, watched }
            }
        })
    }

    /// What a claim is told that does not wait.
    pub(crate) fn busy(&self, claim: &Claim) -> Result<Answer, Refused> {
        let (holder, drawn) = self.entries.first(claim)?;
        Ok(Answer::Busy { remaining: None, holder, drawn })
    }
}
