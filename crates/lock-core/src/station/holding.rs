//! Holding: admission, renewal, local hand-over, loss, the end of a turn.

use std::sync::Arc;
use std::time::Duration;

use super::Station;
use super::io::{Join, Leaving, Output, TurnId};
use super::pending::Of;
use super::quest::{Grant, Quest, validity};
use super::tenure::Tenure;
use crate::{
    Admission, Answer, BackendError, Capabilities, Certainty, Copies, Effect, Evidence, FencingToken, Keep, Lease,
    LossReason, Mode, Moment, Owner, ReleaseRequest, Released, Renewed, RequestOrder, Terms, Waiting,
};

/// The shortest turn, so that none ends before it has begun.
const SHORTEST_HOLD: Duration = Duration::from_nanos(1);

impl Station {
    /// Admits the waiter that a quest is for under a fresh grant, and has the lease renewed.
    pub(super) fn admit_first(&mut self, now: Moment, grant: Grant, quest: &Quest) {
        let waiter = match quest.turn {
            Some(turn) => self.line.leave(turn),
            None => self.line.admit(grant.lease.terms),
        };
        let Some(waiter) = waiter else { return };
        let (token, others_join) = (grant.lease.tokens.low(), quest.shares_its_grant(grant.wanted));
        let mut tenure = self.keep(now, grant, quest.certainty);
        tenure.asked = quest.terms.mode.limit();
        self.raise_floor(&tenure.lease, token);
        self.admit(now, &mut tenure, waiter.join, token);
        if tenure.is_shared() && others_join {
            self.join_all(now, &mut tenure);
        }
        self.tenures.push(tenure);
    }

    /// Has the keeper renew the lease of a fresh grant.
    pub(super) fn keep(&mut self, now: Moment, grant: Grant, certainty: Certainty) -> Box<Tenure> {
        let admission = Admission { at: now, asked_at: grant.basis, valid_for: grant.valid_for };
        let tenure = Box::new(Tenure::new(grant, certainty));
        self.outbox.push(Output::Keep { lease: Arc::clone(&tenure.lease), admission });
        tenure
    }

    /// Gives a waiter its turn under a lease.
    pub(super) fn admit(&mut self, now: Moment, tenure: &mut Tenure, join: Join, token: FencingToken) {
        let Join { turn, max_hold, note, .. } = join;
        let hold_until = max_hold.map(|most| now + most.max(SHORTEST_HOLD));
        let hold = tenure.begin(now, turn, token, note, hold_until);
        self.outbox.push(Output::Admit { turn, hold });
    }

    /// A turn under this lease begins with this token.
    pub(super) fn raise_floor(&mut self, lease: &Lease, token: FencingToken) {
        match lease.terms.mode {
            Mode::Exclusive => self.floor.raise(token),
            // The answers to several claims may overtake each other. Beside a reader, one may be for an adopted lease.
            Mode::Shared | Mode::Permits { .. } => self.floor.raise_to(lease.tokens.high()),
        }
    }

    /// The holder is done: the lease is passed on to the next local waiter, or given up after its last turn.
    pub(super) fn end_turn(&mut self, now: Moment, leaving: Leaving) {
        let turn = leaving.turn;
        let Some(mut tenure) = self.tenures.take(|tenure| tenure.has(turn)) else { return };
        let is_exclusive = tenure.lease.terms.mode == Mode::Exclusive;
        let may_keep = is_exclusive && !tenure.may_be_shared();
        let at_least = tenure.take_keep(now);
        let keep = leaving.keep.map(Keep::get).or(at_least).filter(|keep| may_keep && !keep.is_zero());
        if let Some(ended) = tenure.take(turn) {
            ended.hold.give_up();
        }
        if !tenure.turns.is_empty() {
            self.outbox.push(Output::Ended { turn, result: Ok(Released::Released) });
            self.tenures.push(tenure);
        } else if !is_exclusive || keep.is_some() || tenure.may_be_replaced() || tenure.adopted {
            self.give_up(now, *tenure, Some(turn), keep);
        } else {
            tenure.replacement = None;
            self.pass_on(now, tenure, turn);
        }
    }

    /// From this moment on, the lock of this turn is kept for so long, however the turn ends: also when it is dropped or lost, or the
    /// client is closed. The last call counts, and so does a [`Leaving::keep`]. Only an exclusive turn has an effect.
    pub fn keep_at_least(&mut self, now: Moment, turn: TurnId, keep: Keep) {
        let held =
            self.tenures.iter_mut().find(|tenure| tenure.has(turn) && tenure.lease.terms.mode == Mode::Exclusive);
        held.into_iter().for_each(|tenure| tenure.keep_until(now + keep.get()));
    }

    /// Local hand-over, if the rules allow it: bounded in number, half of what was granted left, a token left, a next waiter
    /// that fits.
    fn pass_on(&mut self, now: Moment, mut tenure: Box<Tenure>, after: TurnId) {
        tenure.passes = tenure.passes.saturating_add(1);
        let may_pass = tenure.passes <= self.policy.chain && tenure.has_half_left(now);
        let token = tenure.lease.tokens.nth(u64::from(tenure.passes)).filter(|_| may_pass);
        match token.and_then(|token| Some((token, self.line.admit(tenure.lease.terms)?))) {
            Some((token, waiter)) => {
                self.outbox.push(Output::Ended { turn: after, result: Ok(Released::Released) });
                self.raise_floor(&tenure.lease, token);
                self.admit(now, &mut tenure, waiter.join, token);
                self.tenures.push(tenure);
            }
            None => self.give_up(now, *tenure, Some(after), None),
        }
    }

    /// Ends what is over by now: the lease, or a turn by its `max_hold`. Comes before everything else that happens.
    pub(super) fn expire(&mut self, now: Moment) {
        let ended: Vec<_> = self.tenures.iter().flat_map(|tenure| tenure.ended(now)).collect();
        for (turn, reason) in ended {
            self.lose(now, turn, reason);
        }
    }

    /// All holders lose their hold.
    pub(super) fn lose_all(&mut self, now: Moment, reason: &LossReason) {
        while let Some(owner) = self.tenures.first().map(|tenure| tenure.lease.owner) {
            self.lose_lease(now, owner, reason);
        }
    }

    /// The store has granted this lease, so it has none that excludes it. What is held under one here is lost.
    pub(super) fn lose_excluded(&mut self, now: Moment, granted: &Lease) {
        let is_older = |held: &Lease| held.tokens.high() < granted.tokens.low();
        let is_excluded = |held: &Lease| match (granted.terms.mode, held.terms.mode) {
            (Mode::Exclusive, _) => true,
            (_, Mode::Exclusive) => is_older(held),
            _ => false,
        };
        let owners: Vec<_> =
            self.tenures.iter().filter(|tenure| is_excluded(&tenure.lease)).map(|tenure| tenure.lease.owner).collect();
        owners.into_iter().for_each(|owner| self.lose_lease(now, owner, &LossReason::NotHeld));
    }

    /// All who hold under this owner's lease lose their hold.
    pub(super) fn lose_lease(&mut self, now: Moment, owner: Owner, reason: &LossReason) {
        while let Some(id) = self.tenure_of(owner).and_then(|tenure| Some(tenure.turns.first()?.0)) {
            self.lose(now, id, reason.clone());
        }
    }

    /// A holder loses its hold: it is told first. What may be left at the store is released with the last turn, except what
    /// may still keep others out for it.
    fn lose(&mut self, now: Moment, id: TurnId, reason: LossReason) {
        let Some(mut tenure) = self.tenures.take(|tenure| tenure.has(id)) else { return };
        let is_denied = matches!(reason, LossReason::NotHeld | LossReason::Revoked { .. });
        if let Some(turn) = tenure.take(id) {
            turn.hold.lose(reason.clone());
            self.outbox.push(Output::Lose { turn: id, reason });
        }
        if !tenure.turns.is_empty() {
            self.tenures.push(tenure);
        } else if is_denied && self.policy.store.copies == Copies::Several {
            self.let_expire(now, *tenure);
        } else {
            let keep = tenure.take_keep(now).filter(|keep| !keep.is_zero());
            self.give_up(now, *tenure, None, keep);
        }
    }

    /// Stops renewing the lease, and releases nothing: what is left of it keeps others out while the holder's work ends.
    fn let_expire(&mut self, now: Moment, tenure: Tenure) {
        let owner = tenure.lease.owner;
        self.outbox.push(Output::Forget(owner));
        // A claim that the hand-over overtook ends with the lease.
        self.take_quest_of(owner);
        self.others_may_be_served(now);
    }

    /// Stops renewing the lease, and releases it; `turn` gets the outcome.
    fn give_up(&mut self, now: Moment, tenure: Tenure, turn: Option<TurnId>, keep: Option<Duration>) {
        let Lease { name, owner, terms, .. } = Arc::unwrap_or_clone(tenure.lease);
        // Those who ask with the same limit need not wait for this.
        let terms = Terms { mode: tenure.asked.map_or(terms.mode, |limit| terms.mode.under(limit)), ..terms };
        self.outbox.push(Output::Forget(owner));
        // A claim that the hand-over overtook ends with the lease.
        let certainty = self.take_quest_of(owner).map_or(tenure.certainty, |quest| quest.certainty());
        // A lease that was adopted may have been adopted twice, if the store has forgotten the first time.
        let is_valid = turn.is_some() && now < tenure.until && !tenure.adopted;
        let evidence = if is_valid { Evidence::ValidHold } else { Evidence::Nothing };
        let request = ReleaseRequest { name, owner, terms, certainty, keep, evidence };
        self.others_may_be_served(now);
        let (of, of_two) = if tenure.adopted { (Of::Adopted, Of::OneOfTwoAdopted) } else { (Of::Lease, Of::OneOfTwo) };
        let Some(new) = tenure.replacement.filter(|new| new.may_have_happened()) else {
            return self.release(now, request, of, turn);
        };
        let request = ReleaseRequest { certainty: Certainty::Unknown, evidence: Evidence::Nothing, ..request };
        self.release(now, request.clone(), of_two, None);
        let (owner, terms) = (new.owner, new.terms);
        self.release(now, ReleaseRequest { owner, terms, ..request }, of_two, turn);
    }

    /// A lease ends that was held here. Those who wait here have a claim at the store already, which may serve them now. Where it
    /// cannot tell them, they would hear of it late, so they ask: the first one, or all where claims may overtake each other.
    fn others_may_be_served(&mut self, now: Moment) {
        match self.policy.store {
            Capabilities { waiting: Waiting::QueueWithPush, .. } => {}
            Capabilities { ordering: RequestOrder::InOrder, .. } => self.next_may_be_served(now),
            Capabilities { ordering: RequestOrder::Unordered, .. } => {
                self.quests.iter_mut().for_each(|quest| quest.may_be_free(now));
            }
        }
    }

    /// One that waited here was served, and the next one may have been.
    pub(super) fn next_may_be_served(&mut self, now: Moment) {
        let Capabilities { waiting, ordering, .. } = self.policy.store;
        if waiting != Waiting::QueueWithPush
            && ordering == RequestOrder::InOrder
            && let Some(next) = self.quests.iter_mut().min_by_key(|quest| quest.turn)
        {
            next.may_be_free(now);
        }
    }

    /// The store said how a lease stands.
    pub(super) fn on_renewal(
        &mut self,
        now: Moment,
        owner: Owner,
        asked_at: Moment,
        answer: Result<Renewed, BackendError>,
    ) {
        if !matches!(answer, Ok(Renewed::Unsure(_)) | Err(_)) {
            self.failing_since = None;
        }
        let Some(tenure) = self.tenure_of(owner) else { return };
        match answer {
            Ok(Renewed::Renewed { valid_for, wanted }) => {
                tenure.last_error = None;
                tenure.hear(asked_at, wanted);
                let over = tenure.extend(validity(asked_at, valid_for), valid_for);
                over.into_iter().for_each(|turn| self.lose(now, turn, LossReason::Expired(None)));
            }
            Ok(Renewed::NotHeld) => self.on_gone(now, owner, LossReason::NotHeld),
            Ok(Renewed::Revoked { by }) => self.on_gone(now, owner, LossReason::Revoked { by }),
            Ok(Renewed::Unsure(error)) | Err(error) => {
                tenure.last_error = Some(error.clone());
                if tenure.word_asked_at.is_some() {
                    self.fail_impatient(now, None, &error);
                }
            }
        }
    }

    /// The store has a lease no more. It may have been replaced.
    fn on_gone(&mut self, now: Moment, owner: Owner, reason: LossReason) {
        let replacement = self.tenure_of(owner).and_then(|tenure| tenure.replacement.as_mut());
        match replacement.filter(|new| new.may_have_happened()) {
            Some(replacement) => replacement.old_is_gone = Some(reason),
            None => self.lose_lease(now, owner, &reason),
        }
    }

    /// Somebody elsewhere began to wait.
    pub(super) fn on_wanted(&mut self, now: Moment) {
        self.tenures.iter_mut().for_each(|tenure| tenure.hear(now, true));
    }

    /// Whether it was a lease of ours is said by its renewal, and by whom it was revoked.
    pub(super) fn on_revoked(&mut self) {
        self.outbox.extend(self.tenures.iter().map(|tenure| Output::Renew(tenure.lease.owner)));
    }

    /// The answer to a claim that the hand-over of the lease overtook: it says how the lease stands, as a renewal does.
    pub(super) fn on_overtaken(
        &mut self,
        now: Moment,
        asked_at: Moment,
        owner: Owner,
        result: Result<Answer, BackendError>,
    ) {
        let Some(tenure) = self.tenure_of(owner) else { return };
        let answer = match result {
            Ok(Answer::Granted { lease, valid_for, wanted }) if lease.is_that_of(&tenure.lease) => {
                Renewed::Renewed { valid_for, wanted }
            }
            Ok(Answer::Granted { .. }) => Renewed::NotHeld,
            // It was answered before the hand-over, or says nothing: the next renewal tells how the lease stands.
            Ok(Answer::Queued { .. } | Answer::Busy { .. }) => return,
            Err(error) if error.effect() == Effect::Unknown => return tenure.certainty = Certainty::Unknown,
            Err(_) => return,
        };
        self.on_renewal(now, owner, asked_at, Ok(answer));
    }
}
