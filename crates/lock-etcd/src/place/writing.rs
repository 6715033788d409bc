//! How an entry is written.

use std::mem;
use std::time::Duration;

use lock_core::Claim;
use lock_rules::place_for;
use tonic::{Code, Status};

use super::entry_leases::EntryLeases;
use super::{Place, State};
use crate::cluster::Cluster;
use crate::entry::{Value, Version};
use crate::error;
use crate::listed::Listed;
use crate::proto::{Compare, RequestOp};
use crate::txn;

/// Beside whom an entry may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Nobody: it holds.
    Nobody,
    /// Those that were listed at this revision, and nobody else: it fits beside them.
    Holders(i64),
    /// Others, which may make it wait.
    Others,
}

/// A write that makes an entry that of the owner.
pub(super) struct Attempt {
    pub(super) leases: EntryLeases,
    pub(super) value: Value,
    /// The revision that created the entry; `None` if the write does.
    pub(super) created: Option<i64>,
    pub(super) compare: Vec<Compare>,
    /// What is written beside the entry.
    pub(super) writes: Vec<RequestOp>,
}

impl Place {
    /// Writes the entry, unless it is there. Returns the directory as it is then, or `None` if the owner was given up.
    pub(crate) async fn write(
        &mut self,
        cluster: &Cluster,
        claim: &Claim,
        beside: Beside,
    ) -> Result<Option<Listed>, Status> {
        let leases = match mem::replace(&mut self.state, State::None) {
            State::Unknown(leases) | State::There(_, leases) => leases,
            State::None => {
                let lease = cluster.leases.take(self.lasts_for(beside)).await?;
                EntryLeases::of(self.directory.entry(lease.id()), lease)
            }
        };
        let mut compare = vec![txn::is_absent(leases.key.clone())];
        match beside {
            Beside::Nobody => compare.push(txn::is_empty(&self.directory)),
            Beside::Holders(listed) => compare.push(txn::is_unchanged(&self.directory, listed)),
            Beside::Others => {}
        }
        let (mut value, mut writes) = (Value::of(claim), Vec::new());
        // A lease that was taken for a place is too short.
        if beside == Beside::Nobody && leases.current.ttl() >= self.ttl.get() {
            value = value.granted_now();
            if claim.terms.mode.limit().is_some() {
                value = value.granted_with(&(0..claim.terms.mode.count()).collect::<Vec<_>>(), None);
                compare.push(txn::is_at(self.directory.limit(), 0));
            }
            let slots = value.slots.iter().map(|slot| self.directory.slot(*slot));
            compare.extend(slots.clone().map(txn::is_absent));
            writes.extend(slots.map(|slot| txn::put(slot, Vec::new(), leases.current.id())));
        }
        self.attempt(cluster, Attempt { leases, value, created: None, compare, writes }).await
    }

    /// Writes the entry with this value, if the comparisons hold and the owner was not given up.
    pub(super) async fn attempt(&mut self, cluster: &Cluster, attempt: Attempt) -> Result<Option<Listed>, Status> {
        let Attempt { mut leases, value, created, mut compare, mut writes } = attempt;
        let (key, tombstone) = (leases.key.clone(), self.owner.tombstone(cluster.root()));
        compare.extend([txn::is_absent(tombstone.clone()), txn::is_present(txn::base_key(cluster.root()))]);
        writes.push(txn::put(key.clone(), value.to_wire(), leases.current.id()));
        let holds = value.is_granted();
        (self.value, self.is_granted) = (Some(value), false);
        leases.unanswered += 1;
        self.state = State::Unknown(leases);
        let branches = [writes, vec![txn::get(tombstone), txn::get(key)]];
        let (told, seen) = match cluster.look(&self.directory, compare, branches).await {
            Ok(told) => told,
            Err(failure) => {
                self.refused(&failure);
                return Err(failure);
            }
        };
        let written = Version { created: created.unwrap_or(told.revision), modified: told.revision };
        let version = if told.succeeded { Some(written) } else { self.found(told.key(1)) };
        if told.succeeded {
            (self.drawn_at, self.is_granted) = (told.revision, holds);
        }
        if let State::Unknown(leases) = &mut self.state {
            leases.unanswered -= 1;
        }
        self.settle(cluster, version, seen);
        let is_given_up = !told.succeeded && told.key(0).is_some();
        Ok(told.listed.filter(|_| !is_given_up))
    }

    /// How long an entry has to last that is written beside others.
    fn lasts_for(&self, beside: Beside) -> Duration {
        match beside {
            Beside::Nobody => self.ttl.get(),
            Beside::Holders(_) | Beside::Others => place_for(self.ttl),
        }
    }

    /// Forgets a write that failed, if it is sure that nothing was written.
    fn refused(&mut self, failure: &Status) {
        let State::Unknown(leases) = &mut self.state else { return };
        if error::is_refusal(failure) {
            leases.unanswered -= 1;
        }
        // Without its lease, no earlier write can have left an entry either.
        if leases.unanswered == 0 || failure.code() == Code::NotFound {
            self.state = State::None;
        }
    }
}
