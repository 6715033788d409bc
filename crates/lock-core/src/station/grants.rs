//! What follows from a grant, whether it came as a reply or by transfer.

use super::Station;
use super::progress::Progress;
use super::quest::{Grant, Place, Quest};
use crate::policy::pace;
use crate::{AcquireError, BackendError, Effect, ErrorKind, Lease, Mode, Moment, Operation, Ttl};

/// This many stale grants in a row are a failure: the store answers too slowly for the ttl, and may continue to.
const STALE_ANSWERS_MAX: u32 = 3;

impl Station {
    /// Processes a grant, by reply or by transfer: admits a waiter, asks again, or gives the lease back.
    pub(super) fn on_grant(&mut self, now: Moment, mut quest: Box<Quest>, grant: Grant) {
        let token = grant.lease.tokens.low();
        if !quest.is_granted_by(&grant.lease, &self.name) {
            let message = "the store granted another lease than the one that was asked for";
            let error = BackendError::new("backend", Operation::Acquire, ErrorKind::Protocol, Effect::Unknown, message);
            self.on_ask_error(now, quest, error);
        } else if let Some(floor) = quest.floor.filter(|floor| token <= *floor) {
            self.part(now, &quest);
            let name = self.name.clone();
            self.refuse_served(quest.turn, AcquireError::Forgotten { name, token, floor });
        } else if self.waiter_of(&quest).is_none() || self.is_outlived(&grant.lease) {
            self.part(now, &quest);
        } else if self.meets_readers(now, &grant) {
            self.on_second_lease(now, &quest, &grant);
        } else if grant.is_stale(now) {
            self.on_stale_grant(now, quest, grant);
        } else {
            self.exchange(now, &mut quest);
            self.admit_first(now, grant, &quest);
            if quest.tries > 0 {
                self.next_may_be_served(now);
            }
            // Its answer is still to come, and says how the lease stands.
            if quest.progress.due().is_none() {
                self.quests.push(quest);
            }
        }
    }

    /// Whether the store no longer has this lease, because it granted one later that the two exclude. Only a lease that was
    /// adopted can come in between.
    pub(super) fn is_outlived(&self, granted: &Lease) -> bool {
        let token = granted.tokens.high();
        match granted.terms.mode {
            Mode::Exclusive => self.floor.here().is_some_and(|floor| granted.tokens.low() <= floor),
            Mode::Shared | Mode::Permits { .. } => {
                let leases = self.tenures.iter().map(|tenure| &tenure.lease);
                leases.filter(|held| held.terms.mode == Mode::Exclusive).any(|held| token < held.tokens.low())
            }
        }
    }

    /// Asks again. If those answers are stale too, a waiter that does not wait is rejected after the second one, and the
    /// lease is given back after the last.
    fn on_stale_grant(&mut self, now: Moment, mut quest: Box<Quest>, grant: Grant) {
        quest.place = Place::Queued;
        if quest.progress.due().is_none() {
            quest.was_granted(grant);
            self.quests.push(quest);
            return;
        }
        quest.granted = Some(grant.lease.tokens.width());
        let error = too_slow(quest.terms.ttl);
        if quest.stale_answers > 1 {
            self.fail_impatient(now, quest.turn, &error);
        }
        if quest.stale_answers < STALE_ANSWERS_MAX {
            quest.progress = Progress::Due(now + self.dice.jittered(pace::poll(0)));
            self.quests.push(quest);
        } else {
            self.part(now, &quest);
            let next = self.with_next_owner(now, *quest);
            self.retry(now, next, error);
        }
    }

    /// The store pushed a grant. When its validity began follows from the quest.
    pub(super) fn on_transfer(&mut self, now: Moment, pushed: Grant) {
        // An owner that was drawn here belongs to the quest or the tenure, or was given up. In the last case, its release
        // also frees this grant. Any other owner belongs to another client of the same store, which wants its grant.
        if self.tenure_of(pushed.lease.owner).is_some() {
            return;
        }
        let Some(mut quest) = self.take_quest_of(pushed.lease.owner) else { return };
        let counts = !pushed.valid_for.is_zero() && !quest.is_ahead_of(&pushed.lease);
        if counts {
            let grant = Grant { basis: quest.basis, ..pushed };
            return self.on_grant(now, quest, grant);
        }
        match &mut quest.progress {
            Progress::UnderWay(..) => quest.was_granted(pushed),
            Progress::Due(at) => *at = now,
        }
        self.quests.push(quest);
    }
}

pub(super) fn too_slow(ttl: Ttl) -> BackendError {
    let message = format!("the store answers too slowly for a ttl of {ttl}");
    BackendError::new("backend", Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, message)
        .with_remedy("use a longer ttl")
}
