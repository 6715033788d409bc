//! AcquireCall for a lock, up to the proof that it is held.

use std::marker::PhantomData;

use lock_core::station::{Input, Join, Outcome, TurnId};
use lock_core::{AcquireError, Busy, LockName, Mode, Note, Patience, Refusal, Terms, Ticket, TryAcquireError};

use crate::cancel::{CancelToken, Watch};
use crate::kinds::Exclusive;
use crate::options::LockOptions;
use crate::site::{Driver, Locked, Site};
use crate::stations::Stations;
use crate::sync::Arc;
use crate::traced::Acquisition;
use crate::turn::{Held, Turn};
use crate::waiters::{TurnResult, Waiters};

/// One call that asks for a lock.
pub struct AcquireCall<'a, D: Driver, M = Exclusive> {
    stations: &'a Arc<Stations<D>>,
    site: &'a Arc<Site<D>>,
    name: &'a LockName,
    terms: Terms,
    options: &'a LockOptions,
    note: &'a Note,
    patience: Patience,
    marker: PhantomData<fn() -> M>,
    acquisition: Acquisition,
    /// The ticket to adopt, if it does not want a new lease.
    ticket: Option<Box<Ticket>>,
}

impl<'a, D: Driver, M> AcquireCall<'a, D, M> {
    /// Asks for a lock with valid options. The wait that they set begins now.
    pub(crate) fn new(
        stations: &'a Arc<Stations<D>>,
        site: &'a Arc<Site<D>>,
        name: &'a LockName,
        mode: Mode,
        options: &'a LockOptions,
        note: &'a Note,
    ) -> Self {
        let patience = options.patience(|| stations.context().clock.now());
        let store = &stations.context().policy.store;
        let acquisition = Acquisition::begin(name, store.backend);
        let (terms, marker) = (Terms { mode, ttl: store.shortened(options.ttl) }, PhantomData);
        Self { stations, site, name, terms, options, note, patience, marker, acquisition, ticket: None }
    }

    /// Asks for the lease of a ticket that suits the lock, instead of a new one.
    pub(crate) fn adopting(mut self, ticket: &Ticket) -> Self {
        self.terms.mode = ticket.mode();
        Self { ticket: Some(Box::new(ticket.clone())), ..self }
    }

    /// Accepts the first answer of the store, whatever wait was set.
    #[must_use]
    pub fn without_waiting(mut self) -> Self {
        self.patience = Patience::Never;
        self
    }

    /// Goes on, unless the token that ends the wait is cancelled: then no request is sent.
    pub(crate) fn unless_cancelled(self) -> Result<Self, AcquireError> {
        if !self.options.cancel.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Ok(self);
        }
        self.acquisition.failed(&Outcome::Cancelled);
        self.site.not_joined(&self.acquisition, Outcome::Cancelled);
        Err(AcquireError::Cancelled)
    }

    /// The request of a turn.
    fn join_request(&self, turn: TurnId) -> Join {
        let LockOptions { long_waits, on_unavailable, max_requests, fairness, max_hold, .. } = *self.options;
        let (terms, patience, note) = (self.terms, self.patience, self.note.clone());
        Join { turn, terms, patience, long_waits, on_unavailable, max_requests, fairness, max_hold, note }
    }

    /// Joins the wait queue with a new turn. The token among the options cancels it until the watch is dropped. The site stays
    /// locked, so that the caller can run what the station asks for; it comes first, because a turn locks it when it is dropped.
    pub fn join(&self) -> (Locked<'a, D>, Turn<D>, Option<Watch>) {
        let mut inner = self.site.lock();
        let id = inner.next_turn();
        inner.waiters.turns().wait(id);
        self.site.joins(id, &self.acquisition);
        let join = self.join_request(id);
        let input = match self.ticket.as_deref() {
            Some(ticket) => Input::Adopt { join, ticket: ticket.clone() },
            None => Input::Join(join),
        };
        self.site.feed(&mut inner, input);
        let turn = Turn::new(Arc::clone(self.site), id);
        let Some(token) = &self.options.cancel else { return (inner, turn, None) };
        // A token that is cancelled already locks the site.
        drop(inner);
        let site = Arc::clone(self.site);
        let watch = token.watch(move || site.handle(Input::Cancel(id)));
        (self.site.lock(), turn, Some(watch))
    }

    /// The hold of a turn, by the station's result. `None` if the hold has already ended, for instance because this
    /// process was suspended; then join the wait queue again. A closed station refuses the new turn.
    pub fn held(&self, turn: Turn<D>, result: Option<TurnResult>) -> Option<Result<Held<D, M>, Refusal>> {
        let held = match result {
            Some(Ok(hold)) => Held::new(turn, hold, Arc::clone(self.stations)),
            Some(Err(refusal)) => return Some(Err(refusal)),
            None => return None,
        };
        held.check().ok()?;
        self.acquisition.succeeded(held.fencing_token());
        Some(Ok(held))
    }

    /// The result of a call that waits.
    ///
    /// # Errors
    /// The refusal.
    pub fn waited<G>(&self, result: Result<G, Refusal>) -> Result<G, AcquireError> {
        Ok(self.tried(result)?)
    }

    /// The result of a call that does not wait.
    ///
    /// # Errors
    /// The refusal.
    pub fn tried<G>(&self, result: Result<G, Refusal>) -> Result<G, TryAcquireError> {
        result.inspect_err(|refusal| self.refused(refusal)).map_err(|refusal| match refusal {
            Refusal::Busy { holder } => Busy { name: self.name.clone(), holder }.into(),
            Refusal::Error(error) => error.into(),
        })
    }

    fn refused(&self, refusal: &Refusal) {
        self.acquisition.failed(&Outcome::from(refusal));
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;
    use std::time::Duration;

    use lock_core::{Capabilities, Durability, Waiting};

    use super::*;
    use crate::clock::ManualClock;
    use crate::lock::Lock;
    use crate::recorder::{claim, grant, stations};

    #[test]
    fn a_hold_that_is_over_before_it_is_handed_out_is_given_up() {
        let clock = ManualClock::new();
        let capabilities = Capabilities::new("test", Waiting::Queue, Durability::Process);
        let stations = stations(capabilities, Arc::new(clock.clone()));
        for (name, pause) in [("a", Duration::ZERO), ("b", Duration::from_secs(60))] {
            let lock = Lock::new(&stations, name);
            let call = lock.ask().unwrap();
            let (_, turn, _) = call.join();
            grant(turn.site(), claim(turn.site()), 7);
            let Poll::Ready(Some(Ok(hold))) = turn.site().lock().waiters.turns.poll_result(turn.id()) else {
                panic!("it waits")
            };
            clock.advance(pause);
            assert_eq!(call.held(turn, Some(Ok(Arc::clone(&hold)))).is_some(), pause.is_zero());
            assert!(hold.is_given_up() || hold.lost().is_some(), "the turn is left");
        }
    }

    #[test]
    fn a_hold_that_is_lost_before_its_waiter_hears_of_it_is_waited_for_again() {
        let clock = ManualClock::new();
        let capabilities = Capabilities::new("test", Waiting::Queue, Durability::Process);
        let stations = stations(capabilities, Arc::new(clock.clone()));
        let lock = Lock::new(&stations, "a");
        let call = lock.ask().unwrap();
        let (_, turn, _) = call.join();
        grant(turn.site(), claim(turn.site()), 7);
        clock.advance(Duration::from_secs(60));
        turn.site().handle(Input::Tick);
        let Poll::Ready(result) = turn.site().lock().waiters.turns.poll_result(turn.id()) else { panic!("it waits") };
        assert!(result.is_none() && call.held(turn, result).is_none());

        call.site.close();
        let (_, turn, _) = call.join();
        let Poll::Ready(result) = turn.site().lock().waiters.turns.poll_result(turn.id()) else { panic!("it waits") };
        assert!(matches!(call.held(turn, result), Some(Err(Refusal::Error(AcquireError::Closed)))));
    }
}
