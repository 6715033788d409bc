//! Asking for the lease: claims, answers, and what the store reports meanwhile.

use std::time::Duration;

use super::Station;
use super::io::{ActionId, Request};
use super::line::Waiter;
use super::progress::Progress;
use super::quest::{Grant, Hint, Place, Quest};
use crate::policy::{ABANDONED_CLAIM_FOR, pace};
use crate::{
    Answer, BackendError, Certainty, Claim, Effect, ErrorKind, Event, Holder, Mode, Moment, Queueing, Terms, Waiting,
    Width,
};

impl Station {
    /// Begins a quest for the front waiter.
    pub(super) fn ask_first(&mut self, now: Moment) {
        if self.is_held_back() {
            return;
        }
        if let Some(terms) = self.line.terms() {
            let quest = Box::new(Quest::new(self.owners.draw(), terms, None, now));
            self.ask(now, quest);
        }
    }

    /// Sends the next claim of a quest that is due, or gives the quest up if the front waiter has no use for it.
    pub(super) fn go_on_asking(&mut self, now: Moment) {
        let Some(Quest { progress: Progress::Due(at), terms, owner, .. }) = self.quests.first() else {
            return;
        };
        if self.line.front_with(*terms).is_none() {
            self.give_up_quests(now);
        } else if *at <= now && !self.is_held_back() {
            let quest = self.take_quest_of(*owner);
            quest.into_iter().for_each(|quest| self.ask(now, quest));
        }
    }

    /// When to give up a quest whose claim is under way and that nobody here wants: its answer may be long in coming. A quest whose
    /// owner holds already ends with the hold.
    pub(super) fn abandoned_until(&self, quest: &Quest) -> Option<Moment> {
        let (_, asked_at) = quest.progress.under_way()?;
        let holds = || self.tenures.iter().any(|tenure| tenure.lease.owner == quest.owner);
        let is_abandoned = self.waiter_of(quest).is_none() && !holds();
        is_abandoned.then(|| asked_at + ABANDONED_CLAIM_FOR)
    }

    /// Gives up the quests that nobody has wanted for long enough. Their releases may overtake the claims. Returns whether there were any.
    pub(super) fn part_from_abandoned(&mut self, now: Moment) -> bool {
        let is_over = |quest: &&Quest| self.abandoned_until(quest).is_some_and(|end| end <= now);
        let owners: Vec<_> = self.quests.iter().filter(is_over).map(|quest| quest.owner).collect();
        for owner in &owners {
            let Some(mut quest) = self.take_quest_of(*owner) else { continue };
            self.part(now, &quest);
            (quest.place, quest.certainty) = (Place::Outside, Certainty::Answered);
            self.overtaken.push(quest);
        }
        !owners.is_empty()
    }

    /// The answer to a claim that a release may have overtaken. What the store keeps of it, if it came after all, is released once
    /// more, unless that is under way or more would be owed than may be.
    fn on_late_answer(&mut self, now: Moment, id: ActionId, result: &Result<Answer, BackendError>) {
        let Some(mut quest) = self.overtaken.take(|quest| quest.progress.asked_at(id).is_some()) else { return };
        quest.progress = Progress::Due(now);
        let may_owe = self.pending_releases.0.len() < self.owed_most(self.quests.len());
        if may_owe && !self.pending_releases.has(quest.owner) {
            self.on_useless_answer(now, *quest, result);
        }
    }

    /// Sends the next claim of a quest.
    pub(super) fn ask(&mut self, now: Moment, mut quest: Box<Quest>) {
        let Some(waiter) = self.waiter_of(&quest) else { return self.leave_queue(now, &quest) };
        if quest.is_unknown_to_store() {
            (quest.basis, quest.floor) = (now, self.floor.get());
        }
        let claim = Claim {
            name: self.name.clone(),
            owner: quest.owner,
            terms: quest.terms,
            width: quest.granted.unwrap_or_else(|| self.width(quest.terms)),
            floor: quest.floor,
            note: waiter.join.note.clone(),
            queueing: self.queueing(&quest),
            replaces: None,
            fairness: waiter.join.fairness,
        };
        self.last_asked = Some(quest.owner);
        quest.fairness = claim.fairness;
        quest.hint = Hint::Nothing;
        quest.progress = self.run(now, Request::Acquire(claim), quest.terms);
        self.quests.push(quest);
    }

    /// The waiter that the quest is for.
    pub(super) fn waiter_of(&self, quest: &Quest) -> Option<&Waiter> {
        match quest.turn {
            Some(turn) => self.line.get(turn),
            None => self.line.front_with(quest.terms),
        }
    }

    /// Whether a waiter that the quest is for could use a place in the store's queue.
    fn queueing(&self, quest: &Quest) -> Queueing {
        match quest.turn {
            Some(turn) => self.line.get(turn).map_or(Queueing::Unwanted, Waiter::queueing),
            None => self.line.queueing(),
        }
    }

    /// How many tokens to ask for.
    fn width(&self, terms: Terms) -> Width {
        match terms.mode {
            Mode::Exclusive | Mode::Shared => self.line.width(terms, self.policy.chain),
            Mode::Permits { .. } => terms.mode.width(),
        }
    }

    pub(super) fn on_acquire_reply(&mut self, now: Moment, id: ActionId, result: Result<Answer, BackendError>) {
        if result.is_ok() {
            self.failing_since = None;
        }
        if let Some((asked_at, replacement)) = self.take_replacement(id) {
            self.on_replacement_answer(now, asked_at, replacement, result);
        } else if let Some((asked_at, adoption)) = self.take_adopting(id) {
            self.on_adoption_answer(now, asked_at, adoption, result);
        } else if let Some((asked_at, quest)) = self.take_asking(id) {
            let turn = quest.turn;
            self.on_answer(now, asked_at, quest, result);
            self.refuse_exhausted(now, turn);
        } else {
            self.on_late_answer(now, id, &result);
        }
    }

    /// The quest that this action was for, and when it was handed out.
    fn take_asking(&mut self, id: ActionId) -> Option<(Moment, Box<Quest>)> {
        let quest = self.quests.take(|quest| quest.progress.asked_at(id).is_some())?;
        Some((quest.progress.asked_at(id)?, quest))
    }

    fn on_answer(
        &mut self,
        now: Moment,
        asked_at: Moment,
        mut quest: Box<Quest>,
        result: Result<Answer, BackendError>,
    ) {
        if self.tenure_of(quest.owner).is_some() {
            return self.on_overtaken(now, asked_at, quest.owner, result);
        }
        quest.progress = Progress::Due(now);
        if result.is_ok() {
            (quest.basis, quest.trouble) = (asked_at, None);
        }
        match result {
            Ok(Answer::Granted { lease, valid_for, wanted }) => {
                let grant = Grant { lease, basis: asked_at, valid_for, wanted };
                quest.stale_answers += u32::from(grant.is_stale(now));
                self.on_grant(now, quest, grant);
            }
            Ok(Answer::Queued { position, remaining, valid_for, holder, drawn }) => {
                let wake = self.queue_pace(&holder, remaining, position);
                let again_at = (asked_at + valid_for / 3).min(now + wake).max(now + pace::SOONEST);
                quest.answered(Place::Queued, holder, drawn);
                self.refuse_answered(&quest);
                self.wait(now, quest, again_at);
            }
            Ok(Answer::Busy { remaining, holder, drawn }) => {
                quest.answered(Place::Outside, holder, drawn);
                self.refuse_answered(&quest);
                let poll = self.dice.spread(pace::poll(quest.tries)).max(pace::SOONEST);
                let wake = remaining.map_or(poll, |remaining| poll.min(pace::after_expiry(remaining, 1)));
                // The store kept nothing of the claim. The next one has another owner, so leftovers of this one at the
                // nodes of a quorum cannot affect it.
                if quest.certainty == Certainty::Answered {
                    quest = self.with_next_owner(now, *quest);
                }
                self.wait(now, quest, now + wake);
            }
            Err(error) if error.kind() == ErrorKind::OtherKind => {
                self.on_ask_error(now, quest, error.with_name(&self.name));
            }
            Err(error) => self.on_ask_error(now, quest, error),
        }
    }

    /// Nobody wants what the quest asked for: what the store keeps of it is released.
    fn on_useless_answer(&mut self, now: Moment, mut quest: Quest, result: &Result<Answer, BackendError>) {
        match result {
            Ok(Answer::Granted { .. } | Answer::Queued { .. }) => quest.place = Place::Queued,
            Err(error) if error.effect() == Effect::Unknown => quest.certainty = Certainty::Unknown,
            Ok(Answer::Busy { .. }) | Err(_) => {}
        }
        self.leave_queue(now, &quest);
    }

    /// How long until a queued waiter asks again, if nothing is heard from the store.
    fn queue_pace(&mut self, holder: &Holder, remaining: Option<Duration>, position: u32) -> Duration {
        let told = self.policy.store.waiting == Waiting::QueueWithPush && *holder != Holder::Foreign;
        let quiet = if told { Duration::MAX } else { self.dice.jittered(pace::silent(position)) };
        remaining.map_or(quiet, |remaining| quiet.min(pace::after_expiry(remaining, position)))
    }

    /// Waits after a negative answer. What the store reported meanwhile may be newer than that answer. So the next claim goes
    /// out soon, and a grant counts if it certainly came later.
    fn wait(&mut self, now: Moment, mut quest: Box<Quest>, again_at: Moment) {
        let hint = std::mem::replace(&mut quest.hint, Hint::Nothing);
        let again_at = match hint {
            Hint::Nothing => again_at,
            Hint::MayBeFree | Hint::Granted(_) => again_at.min(now + pace::SOONEST),
        };
        quest.progress = Progress::Due(again_at);
        quest.stale_answers = 0;
        quest.tries = quest.tries.saturating_add(1);
        self.quests.push(quest);
        if let Hint::Granted(pushed) = hint {
            self.on_transfer(now, *pushed);
        }
    }

    pub(super) fn on_ask_error(&mut self, now: Moment, mut quest: Box<Quest>, error: BackendError) {
        if error.kind().is_transient() {
            self.fail_impatient(now, quest.turn, &error);
        }
        let again = error.kind().is_transient() && self.queueing(&quest) == Queueing::Wanted;
        if !again {
            self.refuse_served(quest.turn, error.clone().into());
        }
        if error.effect() == Effect::Unknown {
            quest.certainty = Certainty::Unknown;
        }
        // Where the store has a queue, asking again means the same as before, so the owner is kept and nothing is owed. Elsewhere
        // the claim is given up, and the next one has another owner.
        if again && self.policy.store.waiting != Waiting::Poll {
            return self.retry(now, quest, error);
        }
        self.leave_queue(now, &quest);
        if again {
            let next = self.with_next_owner(now, *quest);
            self.retry(now, next, error);
        }
    }

    /// Continues under an owner that the store has never seen, at the same pace.
    pub(super) fn with_next_owner(&mut self, now: Moment, quest: Quest) -> Box<Quest> {
        let first = self.line.terms().filter(|_| quest.turn.is_none());
        let Quest { terms, fairness, turn, tries, hint, holder, drawn, .. } = quest;
        let next = Quest::new(self.owners.draw(), first.unwrap_or(terms), turn, now);
        Box::new(Quest { fairness, tries, hint, holder, drawn, ..next })
    }

    pub(super) fn retry(&mut self, now: Moment, mut quest: Box<Quest>, error: BackendError) {
        quest.progress = Progress::Due(now + self.dice.jittered(pace::retry(quest.tries)));
        quest.trouble = Some(error);
        quest.tries = quest.tries.saturating_add(1);
        self.quests.push(quest);
    }

    pub(super) fn on_event(&mut self, now: Moment, event: Event) {
        match event {
            Event::Granted { lease, .. } if lease.name != self.name => {}
            Event::Freed { name } | Event::Wanted { name } | Event::Revoked { name } if name != self.name => {}
            Event::Granted { lease, valid_for, wanted } => {
                self.on_transfer(now, Grant { lease, basis: now, valid_for, wanted });
            }
            Event::Wanted { .. } => self.on_wanted(now),
            Event::Revoked { .. } | Event::RecheckHolds => self.on_revoked(),
            Event::LatchChanged { .. } => {}
            Event::Freed { .. } | Event::RecheckAll => self.quests.iter_mut().for_each(|quest| quest.may_be_free(now)),
        }
    }
}
