//! The local waiters of a station, first come, first served.

use std::collections::{BTreeMap, BTreeSet};

use super::io::{Join, TurnId};
use crate::{Moment, Patience, Queueing, Terms, Width};

/// A waiter in line.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) join: Join,
    pub(super) since: Moment,
    /// The number of the answer after which it is rejected.
    last_answer: Option<u64>,
}

/// The line, in the order of the turns. Joining and leaving it costs next to nothing however long it is.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Boxed, because most lines are of one, and there may be many.
    waiters: BTreeMap<TurnId, Box<Waiter>>,
    /// The waiters that accept the first answer, and do not wait.
    impatient: BTreeSet<TurnId>,
    /// When the waits of the others end, if they have an end.
    deadlines: BTreeSet<(Moment, TurnId)>,
    /// How many claims the store has answered without a grant.
    answers: u64,
    /// The last answers of the waiters whose attempts are limited.
    last_answers: BTreeSet<(u64, TurnId)>,
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
        self.waiters.insert(turn, Box::new(Waiter { join, since: now, last_answer }));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// All waiters, the first one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiter> {
        self.waiters.values().map(AsRef::as_ref)
    }

    /// The front waiter, if it wants these terms. Nobody passes it.
    pub(super) fn front_with(&self, terms: Terms) -> Option<&Waiter> {
        self.iter().next().filter(|waiter| waiter.join.terms == terms)
    }

    /// Takes the front waiter, if it can hold under a lease of these terms.
    pub(super) fn admit(&mut self, terms: Terms) -> Option<Waiter> {
        let turn = self.front_with(terms)?.join.turn;
        self.leave(turn)
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

    /// Whether any waiter could use a place in the store's queue.
    pub(super) fn queueing(&self) -> Queueing {
        if self.impatient.len() < self.waiters.len() { Queueing::Wanted } else { Queueing::Unwanted }
    }

    /// Takes out the waiters that do not wait.
    pub(super) fn take_impatient(&mut self) -> BTreeSet<TurnId> {
        let turns = std::mem::take(&mut self.impatient);
        turns.iter().for_each(|turn| _ = self.leave(*turn));
        turns
    }

    /// Takes out the waiters whose wait is over, in the order in which their waits end.
    pub(super) fn take_overdue(&mut self, now: Moment) -> Vec<Waiter> {
        let mut overdue = Vec::new();
        while let Some((_, turn)) = self.deadlines.first().copied().filter(|(end, _)| *end <= now) {
            overdue.extend(self.leave(turn));
        }
        overdue
    }

    /// The store has answered a claim without a grant. Takes out the waiters for which this was the last answer.
    pub(super) fn take_exhausted(&mut self) -> Vec<Waiter> {
        self.answers += 1;
        let mut exhausted = Vec::new();
        while let Some((_, turn)) = self.last_answers.first().copied().filter(|(last, _)| *last <= self.answers) {
            exhausted.extend(self.leave(turn));
        }
        exhausted
    }

    pub(super) fn take_all(&mut self) -> impl Iterator<Item = TurnId> + use<> {
        std::mem::take(self).waiters.into_keys()
    }

    /// The end of the first wait that ends.
    pub(super) fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.first().map(|(end, _)| *end)
    }

    /// Takes a waiter out, if it is in line.
    pub(super) fn leave(&mut self, turn: TurnId) -> Option<Waiter> {
        let waiter = *self.waiters.remove(&turn)?;
        match waiter.join.patience {
            Patience::Never => _ = self.impatient.remove(&turn),
            Patience::Until(end) => _ = self.deadlines.remove(&(end, turn)),
            Patience::Forever => {}
        }
        if let Some(last) = waiter.last_answer {
            self.last_answers.remove(&(last, turn));
        }
        Some(waiter)
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
        assert_eq!(line.take_impatient(), [TurnId(2)].into());
        assert_eq!(line.take_impatient(), [].into());
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
    fn the_line_keeps_the_order_of_the_turns() {
        let mut line = line(&[Patience::Forever; 3]);
        let late = line.leave(TurnId(2)).unwrap();
        line.join(at(1), late.join);
        assert_eq!(turns(line.iter()), [1, 2, 3], "it drew its turn before the third");
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
