//! A follower: it answers reads from its own copy, notifies clients of what changes there, and tells the leader of signs of life
//! when it is pinged.

use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

use lock_core::{FencingToken, LockName, Moment};

use super::data::Data;
use super::entries::{Entries, Turn};
use crate::network::ConnId;
use crate::one::{Inbox, SessionId};

#[derive(Debug, Default)]
pub(super) struct Follower {
    /// The entries as they once were at the leader, in this version.
    pub(super) entries: Entries,
    pub(super) version: u64,
    /// How long after a change it gets that, unless a write goes through it before.
    pub(super) lag: Duration,
    due: Option<Moment>,
    /// Who has sent something since the leader's last ping.
    pub(super) touched: BTreeSet<SessionId>,
    watches: Vec<Watch>,
}

/// The waiter with one entry sleeps until one of these others ends.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) conn: ConnId,
    pub(super) inbox: Inbox,
    pub(super) name: LockName,
    pub(super) waits: FencingToken,
    pub(super) watched: Vec<FencingToken>,
}

impl Follower {
    /// It starts again, with all that the leader has.
    pub(super) fn start_again(&mut self, data: &Data) {
        *self = Self { entries: data.entries.clone(), version: data.version, lag: self.lag, ..Self::default() };
    }

    /// Whether it is time to catch up.
    pub(super) fn is_due(&mut self, now: Moment, data: &Data) -> bool {
        self.version < data.version && *self.due.get_or_insert(now + self.lag) <= now
    }

    /// Gets what the leader has. Returns the watches that this ends.
    pub(super) fn catch_up(&mut self, data: &Data) -> Vec<Watch> {
        if self.version == data.version {
            return Vec::new();
        }
        (self.entries, self.version, self.due) = (data.entries.clone(), data.version, None);
        let entries = &self.entries;
        self.watches.extract_if(.., |watch| !watch.watched.iter().all(|key| entries.has(*key))).collect()
    }

    /// Has a waiter sleep. What it watched before does not count any more.
    pub(super) fn watch(&mut self, watch: Watch) {
        self.watches.retain(|known| known.waits != watch.waits);
        self.watches.push(watch);
    }

    /// Drops the watches of a connection. Returns whether there were any.
    pub(super) fn closed(&mut self, conn: ConnId) -> bool {
        let before = self.watches.len();
        self.watches.retain(|watch| watch.conn != conn);
        self.watches.len() < before
    }

    /// The leader pings: it is told who is alive.
    pub(super) fn pinged(&mut self) -> BTreeSet<SessionId> {
        mem::take(&mut self.touched)
    }

    /// Somebody who sleeps although it holds, as everybody sees who looks here.
    pub(super) fn oversleeps(&self) -> Option<&Watch> {
        self.watches.iter().find(|watch| self.entries.turn(&watch.name, watch.waits) == Some(Turn::Holds))
    }
}
