//! The directory of a lock: its entries, and who holds it.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_core::inspect::{Held, Waiter};
use lock_core::{FencingToken, Holder, Note, Slots, Width};
use zookeeper_client::{CreateMode, Error, Stat};

use crate::data::Data;
use crate::entry::{self, Listed, Role};
use crate::session::Session;

/// How the names of slots begin. No directory of a lock begins so.
const SLOT: &str = "_c_slot-";

/// A directory, by its path.
pub(crate) struct Directory(String);

impl Directory {
    pub(crate) const fn at(path: String) -> Self {
        Self(path)
    }

    /// The path of a child.
    pub(crate) fn path(&self, child: &str) -> String {
        format!("{}/{child}", self.0)
    }

    /// The path of a slot, which is there while a holder of permits has it.
    pub(crate) fn slot(&self, slot: u32) -> String {
        self.path(&format!("{SLOT}{slot}"))
    }

    /// Makes it, and those above it. ZooKeeper removes them once they have been empty for a while.
    pub(crate) async fn make(&self, session: &Session) -> Result<(), Error> {
        let options = session.create_options(CreateMode::Container);
        session.write(|client| client.mkdir(&self.0, &options)).await
    }

    /// Its entries in order; none if it is not there.
    pub(crate) async fn listed(&self, session: &Session) -> Result<Vec<Listed>, Error> {
        Ok(entry::in_order(&session.children(&self.0).await?.unwrap_or_default()))
    }

    /// The slots that holders of permits have.
    pub(crate) async fn taken_slots(&self, session: &Session) -> Result<HashSet<u32>, Error> {
        let children = session.children(&self.0).await?.unwrap_or_default();
        Ok(children.iter().filter_map(|child| child.strip_prefix(SLOT)?.parse().ok()).collect())
    }

    /// Who has the first of these entries. `None` if it has ended.
    pub(crate) async fn holder(&self, session: &Session, listed: &[Listed]) -> Result<Option<Holder>, Error> {
        let Some(first) = listed.first() else { return Ok(None) };
        Ok(self.held(session, first).await?.map(|held| held.holder))
    }

    /// The lease of an entry. `None` if the entry has ended.
    pub(crate) async fn held(&self, session: &Session, entry: &Listed) -> Result<Option<Held>, Error> {
        let path = self.path(&entry.child);
        let (mode, remaining) = (entry.role.mode(), None);
        let (data, stat) = match session.data(&path).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(Error::NoAuth) => {
                return Ok(Some(Held { holder: Holder::Foreign, mode, slots: Slots::NONE, age: None, remaining }));
            }
            Err(failure) => return Err(failure),
        };
        let (mut holder, mut slots) = (Holder::Foreign, Slots::NONE);
        if let Some(data) = Data::read(&data) {
            let tokens = session.base().tokens(drawn_by(entry.role, &stat), Width::for_waiters(data.width.into()));
            holder = tokens.map_or(holder, |tokens| Holder::Leasehold { tokens, note: Note::from_wire(&data.note) });
            slots = Slots::new(data.slots);
        }
        // The servers record only grants of permits, as a change of the entry.
        let age = entry.role.permits().map(|_| time_since(stat.mtime));
        Ok(Some(Held { holder, mode, slots, age, remaining }))
    }

    /// The waiter of an entry. `None` if the entry has ended.
    pub(crate) async fn waiter(&self, session: &Session, entry: &Listed) -> Result<Option<Waiter>, Error> {
        let mode = entry.role.mode();
        match session.data(&self.path(&entry.child)).await {
            Ok(found) => Ok(found.map(|(data, stat)| {
                let note = Data::read(&data).map(|data| Note::from_wire(&data.note));
                Waiter { note, mode, age: Some(time_since(stat.ctime)) }
            })),
            Err(Error::NoAuth) => Ok(Some(Waiter { note: None, mode, age: None })),
            Err(failure) => Err(failure),
        }
    }
}

/// How long ago a time of the servers was, which is in milliseconds since 1970.
fn time_since(millis: i64) -> Duration {
    let then = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
    let age = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(then);
    Duration::from_secs(age.as_secs())
}

/// The transaction that the tokens of an entry come from: its creation or, for permits, the change that took the slots.
pub(crate) const fn drawn_by(role: Role, stat: &Stat) -> i64 {
    if role.permits().is_some() { stat.mzxid } else { stat.czxid }
}

/// The highest token that was drawn while this is the holder.
pub(crate) fn drawn(holder: &Holder) -> Option<FencingToken> {
    match holder {
        Holder::Leasehold { tokens, .. } => Some(tokens.high()),
        Holder::Foreign => None,
    }
}
