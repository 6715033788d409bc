//! Reading: many turns under one shared lease, and what those in line behind it ask of the store.
//!
//! A reader joins the living lease if the store has said that nobody waits elsewhere: since the reader came, or a moment ago.
//! If the last word is older, one renewal refreshes it for all. If somebody waits, readers wait like everybody else: the
//! station asks the store for them, beside the lease that it holds. A writer here does the same, so that it has its place in
//! the store's queue, and no reader passes it but one that is barging: that joins the living lease although others wait.

use super::Station;
use super::io::Output;
use super::quest::{Grant, Quest};
use super::tenure::Tenure;
use crate::{Mode, Moment, Patience};

/// What the front waiter beside a shared lease needs.
enum Need {
    /// Nothing, or the end of a replacement that is under way.
    Nothing,
    /// To begin under the lease.
    Turn,
    /// A newer word of the store about others that wait.
    Word,
    /// A lease of its own.
    Lease,
}

impl Station {
    /// Readers in line join the shared lease. The first waiter that cannot join asks the store.
    pub(super) fn advance_readers(&mut self, now: Moment) {
        self.join_barging(now);
        let need = loop {
            match self.need(now) {
                Need::Turn => self.join_first(now),
                need @ Need::Word => break need,
                need @ (Need::Nothing | Need::Lease) if !self.line.has_impatient() => break need,
                // Another waiter may be the first one then.
                Need::Nothing | Need::Lease => self.refuse_impatient(self.known_holder()),
            }
        };
        self.go_on_asking(now);
        match need {
            Need::Word => self.ask_for_word(now),
            Need::Lease if self.quests.is_empty() => self.ask_first(now),
            Need::Nothing | Need::Turn | Need::Lease => {}
        }
    }

    /// Has the lease renewed, unless that is under way: the answer says whether others wait.
    fn ask_for_word(&mut self, now: Moment) {
        let Some(tenure) = self.tenures.iter_mut().find(|tenure| !tenure.adopted) else { return };
        if tenure.word_asked_at.is_none() {
            tenure.word_asked_at = Some(now);
            self.outbox.push(Output::Renew(tenure.lease.owner));
        }
    }

    fn need(&self, now: Moment) -> Need {
        let (Some(tenure), Some(front)) = (self.common(), self.line.front()) else { return Need::Nothing };
        let asks = || self.quests.iter().any(|quest| quest.terms.mode == Mode::Shared);
        match tenure.wanted_for(now, front.since) {
            // The lease may be exclusive by now, and another one here would prevent that.
            _ if tenure.replacement.is_some() => Need::Nothing,
            _ if front.join.terms.mode != Mode::Shared => Need::Lease,
            Some(false) => Need::Turn,
            Some(true) => Need::Lease,
            None if front.join.patience != Patience::Never && asks() => Need::Lease,
            None => Need::Word,
        }
    }

    /// The front reader begins under the lease.
    fn join_first(&mut self, now: Moment) {
        let Some(mut tenure) = self.tenures.take(|tenure| !tenure.adopted) else { return };
        if let Some(waiter) = self.line.admit(tenure.lease.terms) {
            let token = tenure.lease.tokens.low();
            self.admit(now, &mut tenure, waiter.join, token);
        }
        self.tenures.push(tenure);
    }

    /// The barging readers begin under the lease, wherever they are in line.
    fn join_barging(&mut self, now: Moment) {
        if self.line.barging().next().is_none() {
            return;
        }
        let is_free = |tenure: &Tenure| !tenure.adopted && tenure.replacement.is_none();
        let Some(mut tenure) = self.tenures.take(is_free) else { return };
        let token = tenure.lease.tokens.low();
        while let Some(waiter) = self.line.admit_barging_reader() {
            self.admit(now, &mut tenure, waiter.join, token);
        }
        self.tenures.push(tenure);
    }

    /// The readers in line up to the first writer begin under the lease.
    pub(super) fn join_all(&mut self, now: Moment, tenure: &mut Tenure) {
        let (terms, token) = (tenure.lease.terms, tenure.lease.tokens.low());
        while let Some(waiter) = self.line.admit(terms) {
            self.admit(now, tenure, waiter.join, token);
        }
    }

    /// Whether a granted lease has to go, as a shared one is held here. If the granted one is exclusive, the store no longer
    /// has that one.
    pub(super) fn meets_readers(&mut self, now: Moment, grant: &Grant) -> bool {
        self.lose_excluded(now, &grant.lease);
        self.common().is_some_and(Tenure::is_shared)
    }

    /// A shared lease was granted beside the one that is held here. Those in line had their place: they join the one that is
    /// held, and the new one is released.
    pub(super) fn on_second_lease(&mut self, now: Moment, quest: &Quest, grant: &Grant) {
        self.part(now, quest);
        let Some(mut tenure) = self.tenures.take(|tenure| !tenure.adopted) else { return };
        tenure.hear(grant.basis, grant.wanted);
        if tenure.replacement.is_none() && quest.shares_its_grant(grant.wanted) {
            self.join_all(now, &mut tenure);
        }
        self.tenures.push(tenure);
    }
}
