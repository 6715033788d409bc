//! Reading: many turns under one shared lease, and what the waiters behind it ask of the store.
//!
//! A reader joins the living lease if the store has said that nobody waits elsewhere: since the reader came, or a moment ago.
//! If its last answer is older, one renewal refreshes it for all. If somebody waits, readers wait like everybody else: the
//! station asks the store for them, beside the lease that it holds. A writer here does the same, so that it has its place in
//! the store's queue, and no reader passes it but one that is barging: that joins the living lease although others wait.

use super::Station;
use super::attempt::{Attempt, Grant, LeaseUse};
use super::held_lease::HeldLease;
use super::io::Output;
use super::wait_queue::Need;
use crate::{Mode, Moment, Patience};

impl Station {
    /// Readers in the queue join the shared lease. Returns what the front waiter that cannot join needs.
    pub(super) fn advance_readers(&mut self, now: Moment) -> Need {
        self.join_barging(now);
        loop {
            match self.need(now) {
                Need::Turn => self.join_first(now),
                need @ Need::Refresh => return need,
                need @ (Need::Nothing | Need::Lease) if !self.waiters.has_impatient() => return need,
                // Another waiter may be the first one then.
                Need::Nothing | Need::Lease => self.refuse_impatient(self.known_holder()),
            }
        }
    }

    /// Has the lease renewed, unless that is in flight: the answer says whether others wait.
    pub(super) fn refresh_wanted(&mut self, now: Moment) {
        let Some(held) = self.leases.iter_mut().find(|held| held.usage == LeaseUse::PassedOn) else { return };
        if held.refresh_asked_at.is_none() {
            held.refresh_asked_at = Some(now);
            self.outbox.push(Output::RenewNow(held.lease.owner));
        }
    }

    fn need(&self, now: Moment) -> Need {
        let (Some(held), Some(front)) = (self.common(), self.waiters.front()) else { return Need::Nothing };
        let asks = || self.front_attempt().is_some_and(|attempt| attempt.terms.mode == Mode::Shared);
        match held.wanted_for(now, front.since) {
            // The lease may be exclusive by now, and another one here would prevent that.
            _ if self.replacement_of(held.lease.owner).is_some() => Need::Nothing,
            _ if front.join.terms.mode != Mode::Shared => Need::Lease,
            Some(false) => Need::Turn,
            Some(true) => Need::Lease,
            None if front.join.patience != Patience::Never && asks() => Need::Lease,
            None => Need::Refresh,
        }
    }

    /// The front reader begins under the lease.
    fn join_first(&mut self, now: Moment) {
        let Some(mut held) = self.take_common() else { return };
        if let Some(waiter) = self.waiters.admit(held.lease.terms) {
            let token = held.lease.tokens.low();
            self.admit(now, &mut held, waiter, token);
        }
        self.leases.push(held);
    }

    /// The barging readers begin under the lease, wherever they are in the queue.
    fn join_barging(&mut self, now: Moment) {
        if self.waiters.barging().next().is_none() {
            return;
        }
        if self.common().is_some_and(|held| self.replacement_of(held.lease.owner).is_some()) {
            return;
        }
        let Some(mut held) = self.take_common() else { return };
        let token = held.lease.tokens.low();
        while let Some(waiter) = self.waiters.admit_barging_reader() {
            self.admit(now, &mut held, waiter, token);
        }
        self.leases.push(held);
    }

    /// The readers in the queue up to the first writer begin under the lease.
    pub(super) fn join_all(&mut self, now: Moment, held: &mut HeldLease) {
        let (terms, token) = (held.lease.terms, held.lease.tokens.low());
        while let Some(waiter) = self.waiters.admit(terms) {
            self.admit(now, held, waiter, token);
        }
    }

    /// Whether a granted lease has to go, as a shared one is held here. If the granted one is exclusive, the store no longer
    /// has that one.
    pub(super) fn meets_readers(&mut self, now: Moment, attempt: &Attempt, grant: &Grant) -> bool {
        self.lose_excluded(now, &grant.lease);
        attempt.usage() == LeaseUse::PassedOn && self.common().is_some_and(HeldLease::is_shared)
    }

    /// A shared lease was granted beside the one that is held here. The readers in the queue had their place: they join the one that is
    /// held, and the new one is released.
    pub(super) fn on_second_lease(&mut self, now: Moment, attempt: &Attempt, grant: &Grant) {
        self.release_attempt(now, attempt);
        let Some(mut held) = self.take_common() else { return };
        held.update_wanted(grant.counted_from, grant.wanted);
        let is_replaced = self.replacement_of(held.lease.owner).is_some();
        if !is_replaced && attempt.shares_its_grant(grant.wanted) {
            self.join_all(now, &mut held);
        }
        self.leases.push(held);
    }
}
