//! The local waiters of a station, first come, first served.

use std::collections::VecDeque;

use super::io::{Join, TurnId};
use crate::{Moment, Owner, Patience, Queueing, Ttl, Width};

/// A waiter in line.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) join: Join,
    pub(super) since: Moment,
}

/// The line.
#[derive(Debug, Default)]
pub(super) struct Line(pub(super) VecDeque<Waiter>);

impl Line {
    pub(super) fn join(&mut self, now: Moment, join: Join) {
        self.0.push_back(Waiter { join, since: now });
    }

    pub(super) fn leave(&mut self, turn: TurnId) {
        self.0.retain(|waiter| waiter.join.turn != turn);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn first_with(&self, ttl: Ttl) -> Option<&Waiter> {
        self.0.iter().find(|waiter| waiter.join.ttl == ttl)
    }

    /// Takes the first waiter that can hold under a lease of this ttl.
    pub(super) fn admit(&mut self, ttl: Ttl) -> Option<Waiter> {
        let index = self.0.iter().position(|waiter| waiter.join.ttl == ttl)?;
        self.0.remove(index)
    }

    /// Takes the owner for a new lease from the front waiter, which keeps its successor for another try.
    pub(super) fn next_owner(&mut self) -> Option<(Owner, Ttl)> {
        let front = self.0.front_mut()?;
        let owner = front.join.owner;
        front.join.owner = owner.successor();
        Some((owner, front.join.ttl))
    }

    /// How many tokens the waiters could use under one lease of this ttl that is passed on `chain` times.
    pub(super) fn width(&self, ttl: Ttl, chain: u32) -> Width {
        let fitting = self.0.iter().filter(|waiter| waiter.join.ttl == ttl).count();
        let turns = usize::try_from(chain).unwrap_or(usize::MAX).saturating_add(1);
        Width::for_waiters(fitting.min(turns))
    }

    /// Whether a place in the store's queue would help anybody.
    pub(super) fn queueing(&self) -> Queueing {
        let waits = |waiter: &Waiter| waiter.join.patience != Patience::Never;
        if self.0.iter().any(waits) { Queueing::Wanted } else { Queueing::Unwanted }
    }

    /// Takes out those who would not wait at all.
    pub(super) fn take_impatient(&mut self) -> Vec<Waiter> {
        self.take(|waiter| waiter.join.patience == Patience::Never)
    }

    /// Takes out those whose wait is over.
    pub(super) fn take_overdue(&mut self, now: Moment) -> Vec<Waiter> {
        self.take(|waiter| matches!(waiter.join.patience, Patience::Until(end) if end <= now))
    }

    pub(super) fn take_all(&mut self) -> Vec<Waiter> {
        self.0.drain(..).collect()
    }

    /// The end of the first wait that ends.
    pub(super) fn next_deadline(&self) -> Option<Moment> {
        let deadline = |waiter: &Waiter| match waiter.join.patience {
            Patience::Until(end) => Some(end),
            Patience::Never | Patience::Forever => None,
        };
        self.0.iter().filter_map(deadline).min()
    }

    fn take(&mut self, which: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        let (taken, kept) = self.0.drain(..).partition(which);
        self.0 = kept;
        Vec::from(taken)
    }
}
