//! The view for operators and for the watcher.

use std::slice;

use lock_core::inspect::{Cursor, Entry, Page, Query, glob_matches};
use lock_core::{LockName, Mode};

use crate::error::Fault;
use crate::transaction::Transaction;
use crate::wire::{self, Held, Place};

impl Transaction<'_> {
    pub(crate) fn holder(&self, name: &LockName) -> Result<Option<Entry>, Fault> {
        let key = self.key(name);
        self.held(&key)?.map(|held| self.entry(&key, name.clone(), &held)).transpose()
    }

    fn entry(&self, key: &str, name: LockName, held: &Held) -> Result<Entry, Fault> {
        let several = if held.mode == Mode::Exclusive { Vec::new() } else { self.holds(key)? };
        let holds = if several.is_empty() { slice::from_ref(&held.last) } else { &several };
        let (waiters, queue) = self.waiting(key)?;
        Ok(Entry {
            name,
            holder: held.last.shown(),
            remaining: Some(held.last.remaining),
            leases: u32::try_from(holds.len()).unwrap_or(u32::MAX),
            holders: holds.iter().take(Entry::SHOWN_MAX).map(|hold| held.shown(self.now, hold)).collect(),
            waiters,
            queue,
        })
    }

    pub(crate) fn list(&self, query: &Query) -> Result<Page, Fault> {
        let prefix = &self.settings.prefix;
        let after = prefix.key(query.cursor.as_ref().map_or("", |cursor| cursor.0.as_str()));
        // At least one, or the listing would never end.
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX).max(1);
        let mut entries = Vec::new();
        let (mut seen, mut last) = (0, None);
        for (key, held) in self.held_after(&after)? {
            let Some(name) = prefix.name(&key) else { break };
            if glob_matches(&query.pattern, name.as_str()) {
                if entries.len() == limit {
                    return Ok(Page { entries, next: last.map(Cursor) });
                }
                entries.push(self.entry(&key, name.clone(), &held)?);
            }
            seen += 1;
            last = Some(name.as_str().to_owned());
        }
        let next = if seen == wire::SCAN_MAX { last.map(Cursor) } else { None };
        Ok(Page { entries, next })
    }

    /// How the lock is held now, and who is the next in line.
    pub(crate) fn look(&self, name: &LockName) -> Result<(Option<Held>, Option<Place>), Fault> {
        let key = self.key(name);
        Ok((self.held(&key)?, self.first_place(&key)?))
    }
}
