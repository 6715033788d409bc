//! The local waiters of a station, first come, first served.

use std::collections::{BTreeSet, VecDeque};

use super::io::{Join, TurnId};
use crate::{Moment, Patience, Queueing, Terms, Width};

/// A waiter in line.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) join: Join,
    pub(super) since: Moment,
    /// The answer that is the last one for it.
    last_answer: Option<u64>,
}

/// The line, in the order of the turns. Joining and leaving it costs next to nothing however long it is.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// A waiter that leaves from the middle leaves a gap; there are never more gaps than waiters, and none at either end.
    slots: VecDeque<Slot>,
    gaps: usize,
    /// Those who would not wait at all.
    impatient: BTreeSet<TurnId>,
    /// When the waits of the others end, if they do.
    deadlines: BTreeSet<(Moment, TurnId)>,
    /// How often the store has answered a claim, and granted nothing.
    answers: u64,
    /// The last answers of those who wait for so many only.
    last_answers: BTreeSet<(u64, TurnId)>,
}

/// A place in the line, and who stands there.
#[derive(Debug)]
struct Slot {
    turn: TurnId,
    waiter: Option<Waiter>,
}

impl Line {
    pub(super) fn join(&mut self, now: Moment, join: Join) {
        let turn = join.turn;
        match join.patience {
            Patience::Never => _ = self.impatient.insert(turn),
            Patience::Until(end) => _ = self.deadlines.insert((end, turn)),
            Patience::Forever => {}
        }
        let last_answer = join.attempts.map(|attempts| self.answers + u64::from(attempts.get()));
        self.last_answers.extend(last_answer.map(|last| (last, turn)));
        // Most lines are of one, and every station has one.
        if self.slots.capacity() == 0 {
            self.slots.reserve_exact(1);
        }
        // Turns are drawn before they join, so one may have been overtaken by the next.
        let at = self.slots.partition_point(|slot| slot.turn < turn);
        self.slots.insert(at, Slot { turn, waiter: Some(Waiter { join, since: now, last_answer }) });
    }

    pub(super) fn leave(&mut self, turn: TurnId) -> Option<Waiter> {
        self.take(turn)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// All waiters, the first one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiter> {
        self.slots.iter().filter_map(|slot| slot.waiter.as_ref())
    }

    /// The front waiter, if it wants these terms. Nobody passes it.
    pub(super) fn front_with(&self, terms: Terms) -> Option<&Waiter> {
        self.iter().next().filter(|waiter| waiter.join.terms == terms)
    }

    /// Takes the front waiter, if it can hold under a lease of these terms.
    pub(super) fn admit(&mut self, terms: Terms) -> Option<Waiter> {
        let turn = self.front_with(terms)?.join.turn;
        self.take(turn)
    }

    /// What the front waiter wants.
    pub(super) fn terms(&self) -> Option<Terms> {
        self.iter().next().map(|waiter| waiter.join.terms)
    }

    /// How many tokens the waiters could use under one lease of this ttl that is passed on `chain` times.
    pub(super) fn width(&self, terms: Terms, chain: u32) -> Width {
        let turns = usize::try_from(chain).unwrap_or(usize::MAX).saturating_add(1);
        let fitting = self.iter().take_while(|waiter| waiter.join.terms == terms);
        Width::for_waiters(fitting.take(turns).count())
    }

    /// Whether a place in the store's queue would help anybody.
    pub(super) fn queueing(&self) -> Queueing {
        let waiters = self.slots.len() - self.gaps;
        if self.impatient.len() < waiters { Queueing::Wanted } else { Queueing::Unwanted }
    }

    /// Takes out those who would not wait at all.
    pub(super) fn take_impatient(&mut self) -> Vec<Waiter> {
        let turns = std::mem::take(&mut self.impatient);
        turns.into_iter().filter_map(|turn| self.take(turn)).collect()
    }

    /// Takes out those whose wait is over, the first to end first.
    pub(super) fn take_overdue(&mut self, now: Moment) -> Vec<Waiter> {
        let mut overdue = Vec::new();
        while let Some((_, turn)) = self.deadlines.first().copied().filter(|(end, _)| *end <= now) {
            overdue.extend(self.take(turn));
        }
        overdue
    }

    /// The store has answered a claim, and granted nothing. Takes out those for whom it was the last answer.
    pub(super) fn take_exhausted(&mut self) -> Vec<Waiter> {
        self.answers += 1;
        let mut exhausted = Vec::new();
        while let Some((_, turn)) = self.last_answers.first().copied().filter(|(last, _)| *last <= self.answers) {
            exhausted.extend(self.take(turn));
        }
        exhausted
    }

    pub(super) fn take_all(&mut self) -> Vec<Waiter> {
        std::mem::take(self).slots.into_iter().filter_map(|slot| slot.waiter).collect()
    }

    /// The end of the first wait that ends.
    pub(super) fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.first().map(|(end, _)| *end)
    }

    fn take(&mut self, turn: TurnId) -> Option<Waiter> {
        let index = self.slots.binary_search_by_key(&turn, |slot| slot.turn).ok()?;
        let waiter = self.slots.get_mut(index)?.waiter.take()?;
        match waiter.join.patience {
            Patience::Never => _ = self.impatient.remove(&turn),
            Patience::Until(end) => _ = self.deadlines.remove(&(end, turn)),
            Patience::Forever => {}
        }
        if let Some(last) = waiter.last_answer {
            self.last_answers.remove(&(last, turn));
        }
        self.gaps += 1;
        self.close_gaps();
        Some(waiter)
    }

    fn close_gaps(&mut self) {
        let is_gap = |slot: &Slot| slot.waiter.is_none();
        while self.slots.front().is_some_and(is_gap) {
            self.slots.pop_front();
            self.gaps -= 1;
        }
        while self.slots.back().is_some_and(is_gap) {
            self.slots.pop_back();
            self.gaps -= 1;
        }
        if self.gaps > self.slots.len() / 2 {
            self.slots.retain(|slot| slot.waiter.is_some());
            self.gaps = 0;
        }
        if self.slots.is_empty() {
            self.slots = VecDeque::new();
        }
    }
}
#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::{Note, Ttl};

    const TERMS: Terms = Terms::exclusive(Ttl::DEFAULT);

    fn at(nanos: u64) -> Moment {
        Moment::from_nanos(nanos)
    }

    fn line(patiences: &[Patience]) -> Line {
        let mut line = Line::default();
        for (turn, patience) in (1..).zip(patiences) {
            let note = Note::from_wire("1@test");
            let (turn, terms, patience) = (TurnId(turn), TERMS, *patience);
            line.join(at(0), Join { turn, terms, patience, attempts: None, max_hold: None, note });
        }
        line
    }

    fn turns<'a>(waiters: impl IntoIterator<Item = &'a Waiter>) -> Vec<u64> {
        waiters.into_iter().map(|waiter| waiter.join.turn.0).collect()
    }

    #[test]
    fn the_overdue_and_the_impatient_leave_and_the_others_keep_their_order() {
        let patiences = [Patience::Until(at(5)), Patience::Never, Patience::Until(at(3)), Patience::Forever];
        let mut line = line(&patiences);
        assert_eq!(line.next_deadline(), Some(at(3)));
        assert_eq!(turns(&line.take_overdue(at(2))), [0; 0]);
        assert_eq!(turns(&line.take_overdue(at(3))), [3]);
        assert_eq!(line.next_deadline(), Some(at(5)));
        assert_eq!(turns(&line.take_impatient()), [2]);
        assert_eq!(turns(&line.take_impatient()), [0; 0]);
        assert_eq!(turns(line.iter()), [1, 4]);
    }

    #[test]
    fn what_is_counted_follows_whoever_leaves_or_is_admitted() {
        let mut line = line(&[Patience::Until(at(5)), Patience::Never, Patience::Until(at(5))]);
        assert_eq!(line.admit(TERMS).map(|waiter| waiter.join.turn), Some(TurnId(1)));
        assert_eq!(line.next_deadline(), Some(at(5)), "two had the same");
        line.leave(TurnId(3));
        assert_eq!((line.next_deadline(), line.queueing()), (None, Queueing::Unwanted));
        line.leave(TurnId(2));
        line.leave(TurnId(2));
        assert!(line.impatient.is_empty() && line.is_empty());
    }

    #[test]
    fn attempts_are_counted_from_the_join() {
        let mut line = line(&[Patience::Forever; 2]);
        let join = |line: &mut Line, turn, attempts| {
            let join = line.iter().next().unwrap().join.clone();
            line.join(at(1), Join { turn: TurnId(turn), attempts: NonZeroU32::new(attempts), ..join });
        };
        join(&mut line, 3, 2);
        assert_eq!(turns(&line.take_exhausted()), [0; 0]);
        join(&mut line, 4, 1);
        join(&mut line, 5, 2);
        line.leave(TurnId(5));
        assert_eq!(turns(&line.take_exhausted()), [3, 4]);
        assert_eq!(turns(line.iter()), [1, 2]);
        assert!(line.last_answers.is_empty());
    }

    #[test]
    fn nobody_is_moved_where_nobody_is_concerned() {
        let mut line = line(&[Patience::Until(at(5)), Patience::Forever]);
        let place = |line: &Line| std::ptr::from_ref(&line.slots[0]);
        let before = place(&line);
        line.take_overdue(at(4));
        line.take_impatient();
        line.leave(TurnId(2));
        assert_eq!(place(&line), before);
    }

    #[test]
    fn the_line_keeps_the_order_of_the_turns() {
        let mut line = line(&[Patience::Forever; 3]);
        let late = line.take(TurnId(2)).unwrap();
        line.join(at(1), late.join);
        assert_eq!(turns(line.iter()), [1, 2, 3], "it drew its turn before the third");
    }

    /// Gaps in the middle are not skipped forever, and waiters are not moved for each gap.
    #[test]
    fn gaps_are_closed_when_there_are_more_of_them_than_waiters() {
        let mut line = line(&[Patience::Forever; 100]);
        for turn in 2..=99 {
            line.leave(TurnId(turn));
            assert!(line.gaps * 2 <= line.slots.len() && line.iter().count() + line.gaps == line.slots.len());
        }
        assert_eq!(turns(line.iter()), [1, 100]);
        line.leave(TurnId(100));
        line.leave(TurnId(1));
        assert!(line.is_empty() && line.slots.capacity() == 0);
    }

    /// A hundred thousand with a deadline each leave one by one; moving all the others each time would take minutes.
    #[test]
    fn many_waits_end_one_by_one() {
        const MANY: u64 = 100_000;
        let mut line = Line::default();
        let note = Note::from_wire("1@test");
        for turn in 0..MANY {
            // The last to come are the first to go.
            let patience = Patience::Until(at(1 + MANY - turn));
            let turn = TurnId(turn);
            line.join(at(0), Join { turn, terms: TERMS, patience, attempts: None, max_hold: None, note: note.clone() });
        }
        for left in (0..MANY).rev() {
            let Some(end) = line.next_deadline() else { panic!("{left} have no deadline") };
            assert_eq!(line.take_overdue(end).len(), 1);
            assert_eq!(line.is_empty(), left == 0);
        }
    }
}
