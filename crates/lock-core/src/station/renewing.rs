//! Renewal: what the store says of a lease that is held.

use super::Station;
use crate::{Answer, BackendError, Certainty, Effect, LossReason, Moment, Owner, Renewed};

impl Station {
    /// A renewal was answered.
    pub(super) fn on_renewal(
        &mut self,
        now: Moment,
        owner: Owner,
        asked_at: Moment,
        answer: Result<Renewed, BackendError>,
    ) {
        let valid_for = if let Ok(Renewed::Renewed { valid_for, .. }) = answer { Some(valid_for) } else { None };
        let late = valid_for.and_then(|valid_for| self.lease_of(owner)?.lateness(now, valid_for));
        self.on_standing(now, owner, asked_at, answer);
        late.into_iter().for_each(|late| self.report_renewed_late(owner, late));
    }

    /// The store said how a lease stands.
    fn on_standing(&mut self, now: Moment, owner: Owner, asked_at: Moment, answer: Result<Renewed, BackendError>) {
        if !matches!(answer, Ok(Renewed::Unsure(_)) | Err(_)) {
            self.failing_since = None;
        }
        let Some(held) = self.held_of(owner) else { return };
        match answer {
            Ok(Renewed::Renewed { valid_for, wanted }) => {
                held.last_error = None;
                held.update_wanted(asked_at, wanted);
                let over = held.extend(asked_at, valid_for);
                over.into_iter().for_each(|turn| self.lose(now, turn, LossReason::Expired(None)));
            }
            Ok(Renewed::NotHeld) => self.on_gone(now, owner, LossReason::NotHeld),
            Ok(Renewed::Revoked { by }) => self.on_gone(now, owner, LossReason::Revoked { by }),
            Ok(Renewed::Unsure(error)) | Err(error) => {
                held.last_error = Some(error.clone());
                if held.refresh_asked_at.is_some() {
                    self.fail_unasked(now, &error);
                }
            }
        }
    }

    /// The store has a lease no more. It may have been replaced.
    fn on_gone(&mut self, now: Moment, owner: Owner, reason: LossReason) {
        let mut unknown = self.attempts.iter_mut().filter(|attempt| attempt.certainty() == Certainty::Unknown);
        if let Some(replace) = unknown.find_map(|attempt| attempt.replacing(owner)) {
            replace.old_is_gone = Some(reason);
            return;
        }
        drop(unknown);
        self.lose_lease(now, owner, &reason);
    }

    /// The answer to a claim that the hand-over of the lease overtook: it says how the lease stands, as a renewal does.
    pub(super) fn on_overtaken(
        &mut self,
        now: Moment,
        asked_at: Moment,
        owner: Owner,
        result: Result<Answer, BackendError>,
    ) {
        let Some(held) = self.held_of(owner) else { return };
        let answer = match result {
            Ok(Answer::Granted { lease, valid_for, wanted }) if lease.is_that_of(&held.lease) => {
                Renewed::Renewed { valid_for, wanted }
            }
            Ok(Answer::Granted { .. }) => Renewed::NotHeld,
            // It was answered before the hand-over, or says nothing: the next renewal tells how the lease stands.
            Ok(Answer::Queued { .. } | Answer::Busy { .. }) => return,
            Err(error) if error.effect() == Effect::Unknown => return held.certainty = Certainty::Unknown,
            Err(_) => return,
        };
        self.on_standing(now, owner, asked_at, Ok(answer));
    }
}
