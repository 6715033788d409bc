//! What is checked, and when.

use std::time::Duration;

use lock_core::{Answer, Fairness, Moment};

use super::invariants;
use super::model::{Model, Order};
use super::stores::One;
use super::words::{Ask, Outcome, Say};
use crate::fault::Fault;
use crate::invariants::{Holding, Rule};
use crate::world::World;

/// How old the store's word that nobody waits may be for a reader to join a lease: 20 ms on any clock.
const WANTED_FRESH_FOR: Duration = Duration::from_millis(21);

impl<M: Model> World<One<M>> {
    /// Follows who waits at the store, and who is served.
    pub(super) fn watch_queue(&mut self, now: Moment, ask: &Ask, outcome: &Outcome) {
        if M::ORDER == Order::OfThoseWhoListen {
            return;
        }
        let arrivals = &mut self.stores.arrivals;
        let (mut replaced, mut barging) = (None, None);
        match (ask, &outcome.say) {
            (Ask::Acquire(claim, _), Say::Acquire(Ok(Answer::Granted { .. }))) => {
                replaced = claim.replaces.map(|_| claim.owner);
                barging = Some(claim.owner).filter(|_| claim.fairness == Fairness::Barging);
            }
            (Ask::Acquire(claim, _), Say::Acquire(Ok(Answer::Queued { valid_for, .. }))) => {
                arrivals.queued(now, &claim.name, claim.owner, now + *valid_for);
            }
            (Ask::Acquire(claim, _), Say::Acquire(Ok(Answer::Busy { .. }))) => {
                arrivals.left(&claim.name, claim.owner);
            }
            (Ask::Release(request), Say::Release(Ok(_))) => arrivals.left(&request.name, request.owner),
            _ => {}
        }
        let mut granted: Vec<_> = outcome.granted.iter().collect();
        // In the order in which they were granted.
        granted.sort_by_key(|lease| lease.tokens);
        for lease in granted {
            let (owner, passed) = (lease.owner, arrivals.granted(now, lease).filter(|_| replaced != Some(lease.owner)));
            match passed {
                Some(_) if barging == Some(owner) => self.env.fired(Fault::Barged),
                Some(first) => {
                    let what = format!("{owner:?} was served, and {first:?} has waited for longer at {}", lease.name);
                    self.env.watch.report(Rule::Overtaken, Err(what));
                }
                None => {}
            }
        }
    }

    pub(super) fn check_idle(&mut self) {
        let mut known = None;
        let (env, one) = (&mut self.env, &self.stores);
        for process in self.processes.values_mut() {
            let now = process.clock.read(env.now);
            for site in process.sites.iter_mut().filter(|site| site.station.is_idle() && !site.ledger.is_empty()) {
                let (stored, in_flight) = known.get_or_insert_with(|| (one.server.owners(), one.claims_in_flight(env)));
                let result = invariants::cancelled(&env.watch, site, stored, in_flight, now);
                env.watch.report(Rule::Cancelled, result);
            }
        }
    }

    /// A reader joins only if nobody has waited at the store since it came, or a moment ago.
    pub(super) fn check_joined(&mut self) {
        let One { clock, arrivals, .. } = &mut self.stores;
        let (now, at) = (self.env.now, clock.read(self.env.now));
        for (name, since) in self.env.watch.take_joined() {
            let waited_for = arrivals.waited_since(at, &name).map(|since| now.since(clock.when(since)));
            let may_wait_for = now.since(since).max(WANTED_FRESH_FOR);
            if let Some(waited_for) = waited_for.filter(|time| *time > may_wait_for) {
                let what =
                    format!("a reader that came at {since:?} joined at {name}, where others wait for {waited_for:?}");
                self.env.watch.report(Rule::Overtaken, Err(what));
            }
        }
    }

    pub(super) fn check_holdings(&mut self) {
        let (now, one, watch) = (self.env.now, &self.stores, &mut self.env.watch);
        let holdings: Vec<Holding<'_>> = self.processes.values().flat_map(|process| process.holdings(now)).collect();
        let outsider = one.outsider.as_ref().filter(|outsider| now < outsider.until);
        if let Err((rule, what)) = invariants::together(watch, &holdings, outsider) {
            watch.report(rule, Err(what));
        }
        let kept = invariants::store_keeps(watch, &holdings, &one.server, one.clock, now);
        watch.report(Rule::StoreKeeps, kept);
        if !M::READS_THE_PAST {
            let revoked = holdings.iter().try_for_each(|holding| watch.ends_when_revoked(holding));
            watch.report(Rule::StoreKeeps, revoked);
        }
    }

    /// What must hold long after all is well.
    pub(crate) fn check_quiet(&mut self) {
        let One { server, clock, .. } = &mut self.stores;
        let left = server.left_over(clock.read(self.env.now), &self.names);
        let result = left.map_or(Ok(()), |what| Err(format!("the store still holds {what}")));
        self.env.watch.report(Rule::Outliving, result);
    }
}
