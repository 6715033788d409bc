//! Who listens where.

use std::collections::{BTreeMap, BTreeSet};

use super::units::Inbox;
use crate::network::ConnId;

/// Who listens where.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listeners(BTreeMap<Inbox, BTreeSet<ConnId>>);

impl Listeners {
    pub(crate) fn add(&mut self, inbox: Inbox, conn: ConnId) {
        self.0.entry(inbox).or_default().insert(conn);
    }

    /// A connection is gone.
    pub(crate) fn closed(&mut self, conn: ConnId) {
        for conns in self.0.values_mut() {
            conns.remove(&conn);
        }
        self.0.retain(|_, conns| !conns.is_empty());
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn is_heard(&self, inbox: Inbox) -> bool {
        self.0.contains_key(&inbox)
    }

    /// The connections that listen to an inbox.
    pub(crate) fn on(&self, inbox: Inbox) -> BTreeSet<ConnId> {
        self.0.get(&inbox).cloned().unwrap_or_default()
    }

    /// All inboxes that somebody listens to.
    pub(crate) fn inboxes(&self) -> impl Iterator<Item = Inbox> {
        self.0.keys().copied()
    }
}
