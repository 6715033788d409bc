//! The local waiters of a station, first come, first served.

use std::collections::{BTreeSet, VecDeque};

use super::io::{Join, TurnId};
use crate::{Moment, Owner, Patience, Queueing, Ttl, Width};

/// A waiter in line.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) join: Join,
    pub(super) since: Moment,
}

/// The line. What every input asks of it costs the same however long it is.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) waiters: VecDeque<Waiter>,
    /// How many of them would not wait at all.
    impatient: usize,
    /// When the waits of the others end, if they do.
    deadlines: BTreeSet<(Moment, TurnId)>,
}

impl Line {
    pub(super) fn join(&mut self, now: Moment, join: Join) {
        match join.patience {
            Patience::Never => self.impatient += 1,
            Patience::Until(end) => _ = self.deadlines.insert((end, join.turn)),
            Patience::Forever => {}
        }
        // Most lines are of one, and every station has one.
        if self.waiters.capacity() == 0 {
            self.waiters.reserve_exact(1);
        }
        self.waiters.push_back(Waiter { join, since: now });
    }

    pub(super) fn leave(&mut self, turn: TurnId) {
        _ = self.take_first(|waiter| waiter.join.turn == turn);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    pub(super) fn first_with(&self, ttl: Ttl) -> Option<&Waiter> {
        self.waiters.iter().find(|waiter| waiter.join.ttl == ttl)
    }

    /// Takes the first waiter that can hold under a lease of this ttl.
    pub(super) fn admit(&mut self, ttl: Ttl) -> Option<Waiter> {
        self.take_first(|waiter| waiter.join.ttl == ttl)
    }

    /// Takes the owner for a new lease from the front waiter, which keeps its successor for another try.
    pub(super) fn next_owner(&mut self) -> Option<(Owner, Ttl)> {
        let front = self.waiters.front_mut()?;
        let owner = front.join.owner;
        front.join.owner = owner.successor();
        Some((owner, front.join.ttl))
    }

    /// How many tokens the waiters could use under one lease of this ttl that is passed on `chain` times.
    pub(super) fn width(&self, ttl: Ttl, chain: u32) -> Width {
        let turns = usize::try_from(chain).unwrap_or(usize::MAX).saturating_add(1);
        let fitting = self.waiters.iter().filter(|waiter| waiter.join.ttl == ttl);
        Width::for_waiters(fitting.take(turns).count())
    }

    /// Whether a place in the store's queue would help anybody.
    pub(super) fn queueing(&self) -> Queueing {
        if self.impatient < self.waiters.len() { Queueing::Wanted } else { Queueing::Unwanted }
    }

    /// Takes out those who would not wait at all.
    pub(super) fn take_impatient(&mut self) -> Vec<Waiter> {
        if self.impatient == 0 {
            return Vec::new();
        }
        self.take(|waiter| waiter.join.patience == Patience::Never)
    }

    /// Takes out those whose wait is over.
    pub(super) fn take_overdue(&mut self, now: Moment) -> Vec<Waiter> {
        if self.next_deadline().is_none_or(|end| now < end) {
            return Vec::new();
        }
        self.take(|waiter| matches!(waiter.join.patience, Patience::Until(end) if end <= now))
    }

    pub(super) fn take_all(&mut self) -> Vec<Waiter> {
        std::mem::take(self).waiters.into()
    }

    /// The end of the first wait that ends.
    pub(super) fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.first().map(|(end, _)| *end)
    }

    fn take(&mut self, which: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        let (taken, kept): (VecDeque<_>, _) = self.waiters.drain(..).partition(which);
        self.waiters = kept;
        taken.iter().for_each(|waiter| self.uncount(waiter));
        taken.into()
    }

    fn take_first(&mut self, which: impl Fn(&Waiter) -> bool) -> Option<Waiter> {
        let index = self.waiters.iter().position(which)?;
        let taken = self.waiters.remove(index)?;
        if self.waiters.is_empty() {
            self.waiters = VecDeque::new();
        }
        self.uncount(&taken);
        Some(taken)
    }

    fn uncount(&mut self, taken: &Waiter) {
        match taken.join.patience {
            Patience::Never => self.impatient -= 1,
            Patience::Until(end) => _ = self.deadlines.remove(&(end, taken.join.turn)),
            Patience::Forever => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Note;

    fn at(nanos: u64) -> Moment {
        Moment::from_nanos(nanos)
    }

    fn line(patiences: &[Patience]) -> Line {
        let mut line = Line::default();
        for (turn, patience) in (1..).zip(patiences) {
            let (owner, note) = (Owner::from_random([turn; 16]), Note::from_wire("1@test"));
            let (turn, ttl, patience) = (TurnId(u64::from(turn)), Ttl::DEFAULT, *patience);
            line.join(at(0), Join { turn, owner, ttl, patience, max_hold: None, note });
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
        assert_eq!(turns(&line.waiters), [1, 4]);
    }

    #[test]
    fn what_is_counted_follows_whoever_leaves_or_is_admitted() {
        let mut line = line(&[Patience::Until(at(5)), Patience::Never, Patience::Until(at(5))]);
        assert_eq!(line.admit(Ttl::DEFAULT).map(|waiter| waiter.join.turn), Some(TurnId(1)));
        assert_eq!(line.next_deadline(), Some(at(5)), "two had the same");
        line.leave(TurnId(3));
        assert_eq!((line.next_deadline(), line.queueing()), (None, Queueing::Unwanted));
        line.leave(TurnId(2));
        line.leave(TurnId(2));
        assert_eq!((line.impatient, line.is_empty()), (0, true));
    }

    #[test]
    fn nobody_is_moved_where_nobody_is_concerned() {
        let mut line = line(&[Patience::Until(at(5)), Patience::Forever]);
        let place = |line: &Line| std::ptr::from_ref(&line.waiters[0]);
        let before = place(&line);
        line.take_overdue(at(4));
        line.take_impatient();
        line.leave(TurnId(2));
        assert_eq!(place(&line), before);
    }
}
