//! Locks as operators see them.

use lock_core::inspect::{Cursor, Entry, Page, Query, Waiter, glob_matches};
use lock_core::{BackendError, Invalid, LockName, Moment, Note, Prefix};
use lock_rules::Hold;
use serde::{Deserialize, Serialize};

use crate::database::{Database, damaged};
use crate::session::Session;
use crate::wire::{HoldRow, ModeRow, all, to_moment};

#[derive(Serialize)]
struct Show<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct List<'a> {
    after: &'a str,
    prefix: &'a str,
    most: u32,
}

/// A waiter as it is shown.
#[derive(Deserialize)]
struct WaiterRow {
    #[serde(flatten)]
    mode: ModeRow,
    /// Absent in what the functions of an earlier version return.
    note: Option<String>,
    joined: Option<u64>,
}

impl WaiterRow {
    fn waiter(self, now: Moment) -> Result<Waiter, Invalid> {
        let age = self.joined.map(|joined| now.since(to_moment(joined)));
        Ok(Waiter { note: self.note.as_deref().map(Note::from_wire), mode: self.mode.try_into()?, age })
    }
}

/// A lock as it is shown.
#[derive(Deserialize)]
struct Shown {
    name: String,
    now: u64,
    holds: Vec<HoldRow>,
    leases: u32,
    queue: Vec<WaiterRow>,
    waiters: u32,
}

impl Shown {
    fn entry(self, name: &LockName) -> Result<Option<Entry>, Invalid> {
        let (now, holds) = (to_moment(self.now), all::<_, Hold>(self.holds)?);
        let queue = self.queue.into_iter().map(|row| row.waiter(now)).collect::<Result<_, _>>()?;
        Ok(lock_rules::entry(now, name, (holds, self.leases), (queue, self.waiters)))
    }
}

impl<D: Database> Session<D> {
    pub(crate) async fn show(&mut self, key: &str, name: &LockName) -> Result<Option<Entry>, BackendError> {
        let shown: Option<Shown> = self.call("show_1", &Show { name: key }).await?;
        shown.map_or(Ok(None), |shown| shown.entry(name)).map_err(damaged::<D>)
    }

    /// The held locks behind the cursor that match, of as many as the query asks for.
    pub(crate) async fn list(&mut self, prefix: &Prefix, query: &Query) -> Result<Page, BackendError> {
        let (beginning, most) = (prefix.beginning(), query.limit.max(1));
        let after = query.cursor.as_ref().map_or(beginning.as_str(), |cursor| &cursor.0);
        let arguments = List { after, prefix: &beginning, most };
        let shown: Vec<Shown> = self.call("list_1", &arguments).await?.unwrap_or_default();
        let is_full = usize::try_from(most).is_ok_and(|most| shown.len() >= most);
        let next = shown.last().filter(|_| is_full).map(|last| Cursor(last.name.clone()));
        let named = shown.into_iter().filter_map(|shown| Some((prefix.name(&shown.name)?, shown)));
        let matching = named.filter(|(name, _)| glob_matches(&query.pattern, name.as_str()));
        let entries = matching.filter_map(|(name, shown)| shown.entry(&name).transpose()).collect::<Result<_, _>>();
        Ok(Page { entries: entries.map_err(damaged::<D>)?, next })
    }
}
