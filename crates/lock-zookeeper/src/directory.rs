//! The directory of a lock: its entries, and who holds it.

use std::collections::HashSet;

use lock_core::{FencingToken, Holder, Note, Width};
use zookeeper_client::{Acls, CreateMode, Error, Stat};

use crate::data::Data;
use crate::entry::{self, Listed, Role};
use crate::session::Session;

/// What the nodes of slots are called.
const SLOT: &str = "slot-";

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
        let options = CreateMode::Container.with_acls(Acls::anyone_all());
        session.write(|client| client.mkdir(&self.0, &options)).await
    }

    /// Its entries in order; none if it is not there.
    pub(crate) async fn listed(&self, session: &Session) -> Result<Vec<Listed>, Error> {
        match session.read(|client| client.list_children(&self.0)).await {
            Ok(children) => Ok(entry::in_order(&children)),
            Err(Error::NoNode) => Ok(Vec::new()),
            Err(failure) => Err(failure),
        }
    }

    /// The slots that holders of permits have.
    pub(crate) async fn taken_slots(&self, session: &Session) -> Result<HashSet<u32>, Error> {
        let children = session.read(|client| client.list_children(&self.0)).await?;
        Ok(children.iter().filter_map(|child| child.strip_prefix(SLOT)?.parse().ok()).collect())
    }

    /// Who has the first of these entries. `None` if it has ended.
    pub(crate) async fn holder(&self, session: &Session, listed: &[Listed]) -> Result<Option<Holder>, Error> {
        let Some(first) = listed.first() else { return Ok(None) };
        let path = self.path(&first.child);
        let (data, stat) = match session.read(|client| client.get_data(&path)).await {
            Ok(told) => told,
            Err(Error::NoNode) => return Ok(None),
            Err(Error::NoAuth) => return Ok(Some(Holder::Foreign)),
            Err(failure) => return Err(failure),
        };
        let of_ours = Data::read(&data).and_then(|data| {
            let tokens =
                session.base().tokens(drawn_by(first.role, &stat), Width::for_waiters(data.width.into())).ok()?;
            Some(Holder::Leasehold { tokens, note: Note::from_wire(&data.note) })
        });
        Ok(Some(of_ours.unwrap_or(Holder::Foreign)))
    }
}

/// The transaction that the tokens of an entry are of: the one that created it, and of permits the one that took their slots, and so changed it.
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
