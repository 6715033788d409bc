//! The local waiters of a station, first come, first served.

use std::collections::BTreeSet;
use std::time::Duration;

use super::by_turn::ByTurn;
use super::io::{Join, TurnId};
use super::waiter::{WaitEnd, Waiter};
use crate::{Mode, Moment, Queueing, Terms, Width};

/// The need of the front waiter.
pub(super) enum Need {
    /// Nothing, or the end of a replacement that is in flight.
    Nothing,
    /// To begin under the lease.
    Turn,
    /// A newer answer of the store about waiters elsewhere.
    Refresh,
    /// A lease of its own.
    Lease,
}

/// The waiters in the order of their turns. Joining and leaving costs next to nothing however many there are.
#[derive(Debug, Default)]
pub(super) struct WaitQueue {
    /// Boxed, because most queues have one waiter or none, and there may be many queues.
    waiters: ByTurn<Box<Waiter>>,
    /// Finds waiters without a look at the others, from the second one on.
    index: Option<Box<Index>>,
    /// How many claims the store has answered without a grant.
    answers: u64,
}

/// An index of the waiters, by what concerns them.
#[derive(Debug, Default)]
struct Index {
    /// The ends of the waits.
    ends: BTreeSet<(WaitEnd, TurnId)>,
    /// When each long wait is to be reported.
    long: BTreeSet<(Moment, TurnId)>,
    /// The waiters that may be served before earlier ones.
    barging: BTreeSet<TurnId>,
}

impl Index {
    fn add(&mut self, waiter: &Waiter) {
        self.ends.extend(waiter.ends());
        self.long.extend(waiter.long());
        self.barging.extend(waiter.barging());
    }

    fn remove(&mut self, waiter: &Waiter) {
        waiter.ends().for_each(|end| _ = self.ends.remove(&end));
        waiter.long().into_iter().for_each(|long| _ = self.long.remove(&long));
        waiter.barging().into_iter().for_each(|turn| _ = self.barging.remove(&turn));
    }
}

impl WaitQueue {
    pub(super) fn join(&mut self, now: Moment, join: Join) {
        let last_answer = join.max_requests.map(|max_requests| self.answers + u64::from(max_requests.get()));
        let waiter = Box::new(Waiter { last_answer, ..Waiter::new(now, join) });
        if !self.is_empty() {
            let index = self.index.get_or_insert_with(|| {
                let mut index = Box::<Index>::default();
                self.waiters.iter().for_each(|(_, waiter)| index.add(waiter));
                index
            });
            index.add(&waiter);
        }
        self.waiters.insert(waiter.join.turn, waiter);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// All waiters, the first one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiter> {
        self.waiters.iter().map(|(_, waiter)| waiter.as_ref())
    }

    /// The front waiter. Only barging waiters pass it.
    pub(super) fn front(&self) -> Option<&Waiter> {
        self.waiters.first().map(AsRef::as_ref)
    }

    /// The front waiter, if it can hold under a lease of these terms.
    pub(super) fn front_with(&self, terms: Terms) -> Option<&Waiter> {
        self.front().filter(|waiter| fits(terms, waiter.join.terms))
    }

    /// Takes the front waiter, if it can hold under a lease of these terms.
    pub(super) fn admit(&mut self, terms: Terms) -> Option<Waiter> {
        let turn = self.front_with(terms)?.join.turn;
        self.leave(turn)
    }

    /// Takes the first barging waiter that can share a lease.
    pub(super) fn admit_barging_reader(&mut self) -> Option<Waiter> {
        let turn = self.barging().find(|waiter| waiter.join.terms.mode == Mode::Shared)?.join.turn;
        self.leave(turn)
    }

    /// The barging waiters, in order.
    pub(super) fn barging(&self) -> impl Iterator<Item = &Waiter> {
        let many = self.index.iter().flat_map(|index| &index.barging).filter_map(|turn| self.get(*turn));
        self.only().into_iter().filter(|waiter| waiter.barging().is_some()).chain(many)
    }

    /// The terms of the front waiter.
    pub(super) fn terms(&self) -> Option<Terms> {
        self.front().map(|waiter| waiter.join.terms)
    }

    /// How many tokens the waiters could use under one lease of these terms that is passed on `chain` times. Readers share one.
    pub(super) fn width(&self, terms: Terms, chain: u32) -> Width {
        let chain = if terms.mode == Mode::Shared { 0 } else { chain };
        let turns = usize::try_from(chain).unwrap_or(usize::MAX).saturating_add(1);
        let fitting = self.iter().take_while(|waiter| waiter.join.terms == terms);
        Width::for_waiters(fitting.take(turns).count())
    }

    /// Whether any waiter could use a place in the store's queue.
    pub(super) fn queueing(&self) -> Queueing {
        let wanted = self.iter().any(|waiter| waiter.queueing() == Queueing::Wanted);
        if wanted { Queueing::Wanted } else { Queueing::Unwanted }
    }

    /// Whether there is a waiter that does not wait.
    pub(super) fn has_impatient(&self) -> bool {
        self.first_end(WaitEnd::Impatience).is_some_and(|(end, _)| end == WaitEnd::Impatience)
    }

    /// A waiter in the queue.
    pub(super) fn get(&self, turn: TurnId) -> Option<&Waiter> {
        self.waiters.get(turn).map(AsRef::as_ref)
    }

    /// Removes the waiters that match, of those that do not wait.
    pub(super) fn take_impatient(&mut self, is_it: impl Fn(TurnId) -> bool) -> Vec<Waiter> {
        self.take_with(WaitEnd::Impatience, |waiter| is_it(waiter.join.turn))
    }

    /// Removes the waiters that match, of those that give up while the store is unreachable.
    pub(super) fn take_failing(&mut self, is_it: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        self.take_with(WaitEnd::Outage, is_it)
    }

    fn take_with(&mut self, end: WaitEnd, is_it: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        let ending = self.ends_from(end).take_while(|(other, _)| *other == end);
        let waiters = ending.filter_map(|(_, turn)| self.get(turn));
        let turns: Vec<_> = waiters.filter(|waiter| is_it(waiter)).map(|waiter| waiter.join.turn).collect();
        turns.into_iter().filter_map(|turn| self.leave(turn)).collect()
    }

    /// Takes out the waiters whose wait is over, in the order in which their waits end.
    pub(super) fn take_overdue(&mut self, now: Moment) -> Vec<Waiter> {
        self.take_ending(WaitEnd::Deadline(Moment::ORIGIN), WaitEnd::Deadline(now))
    }

    /// The store has answered a claim without a grant. Takes out the waiters for which this was the last answer.
    pub(super) fn take_exhausted(&mut self) -> Vec<Waiter> {
        self.answers += 1;
        self.take_ending(WaitEnd::Answer(0), WaitEnd::Answer(self.answers))
    }

    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Waiter> + use<> {
        let mut queue = std::mem::take(self);
        std::iter::from_fn(move || queue.leave(queue.front()?.join.turn))
    }

    /// The end of the first wait that ends.
    pub(super) fn next_deadline(&self) -> Option<Moment> {
        match self.first_end(WaitEnd::Deadline(Moment::ORIGIN))? {
            (WaitEnd::Deadline(end), _) => Some(end),
            (WaitEnd::Impatience | WaitEnd::Answer(_) | WaitEnd::Outage, _) => None,
        }
    }

    /// When the next long wait is to be reported.
    pub(super) fn next_long(&self) -> Option<Moment> {
        self.first_long().map(|(at, _)| at)
    }

    /// The next waiter that has waited for long, and how long, once for each report.
    pub(super) fn take_long(&mut self, now: Moment) -> Option<(TurnId, Duration)> {
        let (_, turn) = self.first_long().filter(|(at, _)| *at <= now)?;
        let mut waiter = self.waiters.remove(turn)?;
        self.index.iter_mut().for_each(|index| index.remove(&waiter));
        let waited = now.since(waiter.since);
        while waiter.long_at() <= now {
            waiter.reports = waiter.reports.saturating_add(1);
        }
        self.index.iter_mut().for_each(|index| index.add(&waiter));
        self.waiters.insert(turn, waiter);
        Some((turn, waited))
    }

    /// Takes a waiter out, if it is in the queue.
    pub(super) fn leave(&mut self, turn: TurnId) -> Option<Waiter> {
        let waiter = self.waiters.remove(turn)?;
        if self.waiters.is_empty() {
            self.index = None;
        }
        self.index.iter_mut().for_each(|index| index.remove(&waiter));
        Some(*waiter)
    }

    /// Removes the waiters whose wait ends in this range, both ends included.
    fn take_ending(&mut self, first: WaitEnd, last: WaitEnd) -> Vec<Waiter> {
        let mut taken = Vec::new();
        while let Some((_, turn)) = self.first_end(first).filter(|(end, _)| *end <= last) {
            taken.extend(self.leave(turn));
        }
        taken
    }

    fn first_long(&self) -> Option<(Moment, TurnId)> {
        let many = || self.index.as_ref()?.long.first().copied();
        self.only().and_then(Waiter::long).or_else(many)
    }

    fn first_end(&self, from: WaitEnd) -> Option<(WaitEnd, TurnId)> {
        self.front()?;
        self.ends_from(from).next()
    }

    /// The ends of waits, from this end on.
    fn ends_from(&self, from: WaitEnd) -> impl Iterator<Item = (WaitEnd, TurnId)> {
        let many = self.index.iter().flat_map(move |index| index.ends.range((from, TurnId(0))..).copied());
        // In the order of the ends, as there.
        let only = self.only().into_iter().flat_map(Waiter::ends).filter(move |(end, _)| *end >= from);
        only.chain(many)
    }

    /// The waiter, while there is no index.
    fn only(&self) -> Option<&Waiter> {
        self.front().filter(|_| self.index.is_none())
    }
}

/// Whether a waiter that wants these terms can hold under a lease of those: readers share a lease, whatever its ttl.
fn fits(lease: Terms, wanted: Terms) -> bool {
    lease == wanted || (lease.mode == Mode::Shared && wanted.mode == Mode::Shared)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::{Note, OnUnavailable, Patience, Ttl};

    const TERMS: Terms = Terms::exclusive(Ttl::DEFAULT);

    fn at(nanos: u64) -> Moment {
        Moment::from_nanos(nanos)
    }

    fn join(turn: u64, patience: Patience) -> Join {
        Join { patience, ..Join::new(TurnId(turn), Note::from_wire("1@test")) }
    }

    fn queue(patiences: &[Patience]) -> WaitQueue {
        let mut queue = WaitQueue::default();
        for (turn, patience) in (1..).zip(patiences) {
            queue.join(at(0), join(turn, *patience));
        }
        queue
    }

    fn until(end: Moment) -> Patience {
        Patience::Until { since: at(0), end }
    }

    fn turns<'a>(waiters: impl IntoIterator<Item = &'a Waiter>) -> Vec<u64> {
        waiters.into_iter().map(|waiter| waiter.join.turn.0).collect()
    }

    #[test]
    fn the_overdue_and_the_impatient_leave_and_the_others_keep_their_order() {
        let patiences = [until(at(5)), Patience::Never, until(at(3)), Patience::Forever];
        let mut queue = queue(&patiences);
        assert_eq!(queue.next_deadline(), Some(at(3)));
        assert_eq!(turns(&queue.take_overdue(at(2))), [0; 0]);
        assert_eq!(turns(&queue.take_overdue(at(3))), [3]);
        assert_eq!(queue.next_deadline(), Some(at(5)));
        assert_eq!(turns(&queue.take_impatient(|_| true)), [2]);
        assert_eq!(turns(&queue.take_impatient(|_| true)), [0; 0]);
        assert_eq!(turns(queue.iter()), [1, 4]);
    }

    #[test]
    fn a_wait_counts_from_its_beginning_and_not_from_the_join() {
        let mut queue = queue(&[until(at(5)), Patience::Forever]);
        let late = queue.leave(TurnId(1)).unwrap().join;
        queue.join(at(2), late);
        let waited: Vec<_> = queue.iter().map(|waiter| waiter.waited(at(5)).as_nanos()).collect();
        assert_eq!(waited, [5, 5]);
        let endless = queue.leave(TurnId(2)).unwrap().join;
        queue.join(at(2), endless);
        let waited: Vec<_> = queue.iter().map(|waiter| waiter.waited(at(5)).as_nanos()).collect();
        assert_eq!(waited, [5, 3], "a wait without an end has only its join");
    }

    #[test]
    fn what_is_counted_follows_whoever_leaves_or_is_admitted() {
        let mut queue = queue(&[until(at(5)), Patience::Never, until(at(5))]);
        assert_eq!(queue.admit(TERMS).map(|waiter| waiter.join.turn), Some(TurnId(1)));
        assert_eq!(queue.next_deadline(), Some(at(5)), "two had the same");
        queue.leave(TurnId(3));
        assert_eq!((queue.next_deadline(), queue.queueing()), (None, Queueing::Unwanted));
        queue.leave(TurnId(2));
        queue.leave(TurnId(2));
        assert!(queue.index.is_none() && queue.is_empty());
    }

    #[test]
    fn readers_of_any_ttl_share_a_lease_up_to_the_first_writer() {
        let mut queue = queue(&[Patience::Forever; 5]);
        let long = Ttl::new(Duration::from_secs(600)).unwrap();
        for (turn, ttl) in [(1, Ttl::DEFAULT), (2, long), (4, Ttl::DEFAULT)] {
            let reader = queue.leave(TurnId(turn)).unwrap().join;
            queue.join(at(0), Join { terms: Terms { mode: Mode::Shared, ttl }, ..reader });
        }
        let shared = Terms { mode: Mode::Shared, ttl: Ttl::DEFAULT };
        assert_eq!((queue.front_with(TERMS).is_some(), queue.width(shared, 16)), (false, Width::ONE));
        let readers: Vec<_> = std::iter::from_fn(|| queue.admit(shared)).collect();
        assert_eq!(turns(&readers), [1, 2]);
        assert_eq!((turns(queue.iter()), queue.width(TERMS, 16)), (vec![3, 4, 5], Width::ONE));
    }

    #[test]
    fn attempts_are_counted_from_the_join() {
        let mut queue = queue(&[Patience::Forever; 2]);
        let join = |queue: &mut WaitQueue, turn, max_requests| {
            let join = queue.iter().next().unwrap().join.clone();
            queue.join(at(1), Join { turn: TurnId(turn), max_requests: NonZeroU32::new(max_requests), ..join });
        };
        join(&mut queue, 3, 2);
        assert_eq!(turns(&queue.take_exhausted()), [0; 0]);
        join(&mut queue, 4, 1);
        join(&mut queue, 5, 2);
        queue.leave(TurnId(5));
        assert_eq!(turns(&queue.take_exhausted()), [3, 4]);
        assert_eq!(turns(queue.iter()), [1, 2]);
        assert_eq!(queue.ends_from(WaitEnd::Impatience).count(), 0);
    }

    #[test]
    fn those_who_give_up_while_the_store_is_away_leave_alone() {
        let mut queue = queue(&[Patience::Never, until(at(5)), Patience::Forever]);
        let failing = Join { on_unavailable: OnUnavailable::Fail, ..queue.leave(TurnId(2)).unwrap().join };
        queue.join(at(1), failing);
        assert_eq!(turns(&queue.take_failing(|waiter| waiter.since > at(1))), [0; 0]);
        assert_eq!(turns(&queue.take_failing(|_| true)), [2]);
        assert_eq!((turns(queue.iter()), queue.next_deadline()), (vec![1, 3], None));
    }

    #[test]
    fn the_queue_keeps_the_order_of_the_turns() {
        let mut queue = queue(&[Patience::Forever; 3]);
        let late = queue.leave(TurnId(2)).unwrap();
        queue.join(at(1), late.join);
        assert_eq!(turns(queue.iter()), [1, 2, 3], "it drew its turn before the third");
    }

    /// A hundred thousand with a deadline each leave one by one; moving all the others each time would take minutes.
    #[test]
    fn many_waits_end_one_by_one() {
        const MANY: u64 = 100_000;
        let mut queue = WaitQueue::default();
        for turn in 0..MANY {
            // The last to come are the first to go.
            queue.join(at(0), join(turn, until(at(1 + MANY - turn))));
        }
        for left in (0..MANY).rev() {
            let Some(end) = queue.next_deadline() else { panic!("{left} have no deadline") };
            assert_eq!(queue.take_overdue(end).len(), 1);
            assert_eq!(queue.is_empty(), left == 0);
        }
    }
}
