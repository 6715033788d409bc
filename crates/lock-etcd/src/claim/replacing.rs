//! Claims that replace a lease: its entry becomes theirs.

use std::time::Duration;

use futures_util::future::try_join_all;
use lock_core::{Answer, BackendError, Mode, Owner};
use lock_rules::{cannot_replace, given_up, is_replaced_by, nothing_to_replace};

use super::{Asking, Look, failed, holder};
use crate::directory::OwnerHash;
use crate::entry::Entry;
use crate::error::BACKEND;
use crate::place::{Place, State};

impl Asking<'_> {
    /// Takes the entry of `old`, unless this was done before.
    pub(super) async fn replace(&self, place: &mut Place, old: Owner) -> Result<Look, BackendError> {
        if matches!(place.state, State::Unknown(_)) {
            place.look_for(self.cluster).await.map_err(failed)?;
            return Ok(Look::Again);
        }
        let listed = self.cluster.list_all(&place.directory).await.map_err(failed)?;
        if place.adopt(&listed) {
            place.is_granted = true;
            return Ok(Look::Again);
        }
        if place.is_given_up(self.cluster).await.map_err(failed)? {
            return Err(given_up(BACKEND));
        }
        self.check_kind(&listed, listed.under_limit(self.claim.terms.mode))?;
        let (replaced, mode) = (OwnerHash::of(old), self.claim.terms.mode);
        let held = listed.entries.iter().find(|entry| entry.is_of(&replaced) && listed.holds(entry));
        let entry = held.ok_or_else(|| nothing_to_replace(BACKEND))?;
        if !is_replaced_by(entry.mode(), mode) {
            return Err(cannot_replace(BACKEND));
        }
        let others = || listed.entries.iter().filter(|other| other.key != entry.key && listed.may_hold(other));
        if mode == Mode::Exclusive && others().next().is_some() {
            let remaining = self.last_end(others()).await?;
            let (holder, drawn) = holder(&listed, Some(&entry.key));
            return Ok(Look::Told(Answer::Busy { remaining, holder, drawn }));
        }
        let found = (old, entry, &listed);
        place.replace(self.cluster, self.claim, found).await.map_err(failed)?.ok_or_else(|| given_up(BACKEND))?;
        Ok(Look::Again)
    }

    /// How long until all of these leases have ended, unless they are renewed.
    async fn last_end(&self, entries: impl Iterator<Item = &Entry>) -> Result<Option<Duration>, BackendError> {
        let ends = entries.map(|entry| self.cluster.leases.remaining(entry.lease));
        let ends = try_join_all(ends).await.map_err(failed)?;
        Ok(ends.into_iter().flatten().max())
    }
}
