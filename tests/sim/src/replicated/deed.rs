//! What the servers do in their own time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::env::{Env, Plan};
use crate::network::{ConnId, StoreId, Tag};
use crate::one::Words;

/// Something that happens at the servers by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// A replica takes in what has arrived.
    TakeIn(StoreId),
    /// A request has waited long enough for replicas.
    GiveUp(ConnId, Tag),
    /// The primary fails, or is replaced.
    FailOver,
    /// The primary is replaced, and goes on.
    Replace,
    /// The sentinels choose a primary.
    Choose,
    /// A server that is not the present primary follows it.
    Repoint(StoreId),
    /// A sentinel tells its clients of a new primary.
    Announce(StoreId),
    /// A server is back.
    Return(StoreId),
}

/// What is planned, by its number.
#[derive(Debug, Default)]
pub(super) struct Deeds(BTreeMap<usize, Deed>);

impl Deeds {
    pub(super) fn plan(&mut self, env: &mut Env<Words>, after: Duration, deed: Deed) {
        let number = usize::try_from(env.number()).unwrap_or(usize::MAX);
        self.0.insert(number, deed);
        env.plan(after, Plan::Cue(number));
    }

    pub(super) fn take(&mut self, number: usize) -> Option<Deed> {
        self.0.remove(&number)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
