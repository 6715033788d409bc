//! One server, and what it knows of who leads.

use std::collections::BTreeMap;

use lock_core::Moment;

use super::data::Tie;
use crate::one::LeaseId;
use crate::ordered::Replica;

/// How many servers there are. A connection leads to one of them.
pub(super) const MEMBERS: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Member {
    pub(super) replica: Replica<Tie>,
    /// The latest term that it knows of.
    pub(super) term: u64,
    /// When each lease ends, as it knows, if it believes to lead.
    pub(super) ends: BTreeMap<LeaseId, Moment>,
    pub(super) deposed: Deposed,
}

/// Whether it has led, and does not know that another one does now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Deposed {
    #[default]
    No,
    /// It learns of it with the first request that the leader has to order.
    Stuck,
    /// It learns of it then.
    CutOff(Moment),
}
