//! Semaphores: each waiter asks for a lease of its own, and each turn holds under one.

use super::Station;
use super::io::{Join, TurnId};
use super::line::Waiter;
use super::progress::Progress;
use super::quest::{Place, Quest};
use crate::policy::QUESTS_MAX;
use crate::{Fairness, Moment, NameKind, RequestOrder, Terms};

impl Station {
    /// Does what follows for the waiters.
    pub(super) fn serve(&mut self, now: Moment) {
        match self.kind {
            NameKind::Lock => self.serve_first(now),
            NameKind::Semaphore => self.serve_each(now),
        }
    }

    /// Does what follows from the time and the state, where each waiter asks for itself.
    pub(super) fn serve_each(&mut self, now: Moment) {
        while let Some(quest) = self
            .quests
            .take(|quest| quest.progress.due().is_some() && quest.turn.is_none_or(|turn| self.line.get(turn).is_none()))
        {
            self.leave_queue(now, &quest);
        }
        while let Some(quest) = self.next_due_quest(now) {
            self.ask(now, quest);
        }
        while let Some((turn, terms)) = self.next_to_ask() {
            let quest = Quest::new(self.owners.draw(), terms, Some(turn), now);
            self.ask(now, Box::new(quest));
        }
        self.refuse_behind_the_first();
        self.ask_replacements(now);
    }

    fn next_due_quest(&mut self, now: Moment) -> Option<Box<Quest>> {
        let is_due = |quest: &Quest| quest.progress.due().is_some_and(|at| at <= now);
        let due = self.quests.iter().filter(|quest| is_due(quest) && !self.has_to_wait(quest));
        let owner = due.min_by_key(|quest| quest.turn)?.owner;
        self.take_quest_of(owner)
    }

    /// The first waiter that has no quest, if it may have one, or else the first of those who pass others.
    fn next_to_ask(&self) -> Option<(TurnId, Terms)> {
        if self.quests.len() >= QUESTS_MAX {
            return None;
        }
        let has_none = |waiter: &&Waiter| self.quests.iter().all(|quest| quest.turn != Some(waiter.join.turn));
        let first = self.line.iter().find(has_none)?;
        let next = if self.would_overtake(first) { self.line.barging().find(has_none)? } else { first };
        let Join { turn, terms, .. } = next.join;
        let is_in_the_way = |quest: &Quest| !quest.terms.mode.suits(terms.mode) && self.waiter_of(quest).is_none();
        let has_to_wait =
            self.quests.iter().any(is_in_the_way) || self.is_release_due(self.quests.len(), Some(terms.mode));
        (!has_to_wait).then_some((turn, terms))
    }

    /// Whether a claim of this waiter might be served before one that came earlier and wants something else. If both want
    /// the same, that does not matter: the grant is for the first of them. One that is barging may overtake.
    pub(super) fn would_overtake(&self, Waiter { join, .. }: &Waiter) -> bool {
        let Join { turn, terms, fairness, .. } = *join;
        let ordered = self.policy.store.ordering == RequestOrder::InOrder;
        let is_behind = |quest: &Quest| match quest.progress {
            Progress::UnderWay(..) => ordered || quest.place == Place::Queued,
            Progress::Due(_) => quest.place == Place::Queued,
        };
        let came_first = |quest: &Quest| quest.turn.is_some_and(|first| first < turn && self.line.get(first).is_some());
        let is_other = |quest: &Quest| (quest.terms, quest.fairness) != (terms, fairness);
        fairness == Fairness::Fair
            && self.quests.iter().any(|quest| came_first(quest) && is_other(quest) && !is_behind(quest))
    }

    /// A grant is for the first in line that wants the same. That one leaves its own quest to the waiter that this was for.
    pub(super) fn exchange(&mut self, now: Moment, quest: &mut Quest) {
        let Some(turn) = quest.turn else { return };
        let came_before = self.line.iter().map(|waiter| &waiter.join).take_while(|join| join.turn < turn);
        let wanted = (quest.terms, quest.fairness);
        let mut wants_the_same = came_before.filter(|join| (join.terms, join.fairness) == wanted);
        let Some(first) = wants_the_same.next().map(|join| join.turn) else { return };
        quest.turn = Some(first);
        if let Some(other) = self.quests.iter_mut().find(|other| other.turn == Some(first)) {
            other.turn = Some(turn);
            // The waiter may be one that does not wait: it should have an answer soon.
            other.may_be_free(now);
        }
    }

    /// Rejects the waiters that do not wait and have not asked, if others wait at the store already.
    fn refuse_behind_the_first(&mut self) {
        if let Some(holder) = self.first_quest().and_then(|quest| quest.holder.clone()) {
            self.refuse_impatient(Some(holder));
        }
    }
}
