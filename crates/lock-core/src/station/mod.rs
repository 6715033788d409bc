//! The machine: all that a client decides about one lock.
//!
//! A [`Station`] holds the local waiters of one lock and the lease they share, and decides everything about it:
//! when to ask, whom to admit, when to pass the lease on to the next local waiter, when a hold is lost, what has to be
//! released. It does no I/O and reads no clock. A facade feeds it [`Input`]s with the present moment, carries out the
//! [`Output`]s that they lead to, and ticks it at [`Station::next_wake`].
//!
//! Its state is a product: *held leases* with the turns under them, and *attempts* to get one. An attempt has a purpose: it is for
//! the front waiter or for one waiter, it adopts the lease of a ticket, or it replaces a lease that is held.
//!
//! ```text
//! attempt   join               busy, queued, error
//! ─────────────▶ Asking ─────────────────────────▶ Waiting
//!                  │  ▲            again              │
//!                  │  └───────────────────────────────┤
//!          granted │                                  │ handed over by the store
//!                  ▼                                  ▼
//! held lease   Held ──┐ turn ends, the next waiter fits
//!                │  ▲───┘
//!                ▼
//!                turn ends and nobody fits, or the hold is lost: released
//! ```
//!
//! The rules that it keeps, and asserts:
//! - A turn is admitted only while its lease is valid. An exclusive lease has one turn at a time, a shared one has readers. At
//!   a semaphore, each turn has a lease.
//! - A reader joins a shared lease only if the store has said, since it came or a moment ago, that nobody waits.
//! - Validity counts from when the request was handed out. Expiry wins over anything that arrives at the same moment.
//! - An outcome that is not known keeps its owner where the store has a queue. Elsewhere it is followed by a release, and the
//!   next claim, of another owner, waits for the answer to that.
//! - At most four releases of leases that are passed on are owed; with four owed nothing new is asked. Private leases have a bound of
//!   their own.
//! - No waiter is admitted before the store has granted the lock.
//! - Where entries end with a session, a release is owed until it is answered or the session has ended. If that takes longer than a lease
//!   lasts, the backend ends the session. Answers to requests of that session no longer count.
//! - A grant that nobody wants any more is released at once. So is a claim without an answer, after a moment.
//! - A replacement of unknown outcome keeps both owners. Neither is released before the turn has ended, then both are.
//! - A lease is passed on among local waiters, or private to one turn: permits, and leases that were adopted under another owner.
//! - Waiters are served in the order in which they came. One with other terms ends the chain of local turns and is not passed.
//!   At a semaphore each waiter asks for itself, in that order.

mod asking;
mod attempt;
mod by_turn;
mod event;
mod few;
mod floor;
mod grants;
mod held_lease;
mod holding;
mod io;
mod joining;
mod level;
mod observed;
mod outcome;
mod owners;
mod progress;
mod queries;
mod reading;
mod refusing;
mod releases;
mod releasing;
mod renewing;
mod replacing;
mod reporting;
mod semaphore;
mod session;
mod turns;
mod wait_queue;
mod waiter;

#[cfg(test)]
mod tests;

use std::mem;
use std::sync::Arc;

use attempt::{Attempt, LeaseUse};
pub use by_turn::ByTurn;
pub use event::Event;
use few::Few;
pub use floor::Floor;
use floor::Floors;
use held_lease::HeldLease;
pub use io::{
    Action, ActionId, ForWhom, Input, Join, Leaving, LongWaits, OnUnavailable, Output, Patience, Reply, Request, TurnId,
};
pub use level::Level;
use observed::Observed;
pub use outcome::Outcome;
pub use owners::Owners;
use progress::Progress;
use releases::PendingReleases;
use wait_queue::{Need, WaitQueue};

use crate::policy::Dice;
use crate::{AcquireError, LockName, Moment, NameKind, Owner, Policy, Terms};

/// All that a client knows of one lock: its local waiters, and the lease they share; or of one semaphore. See the module's text.
#[derive(Debug)]
pub struct Station {
    name: LockName,
    kind: NameKind,
    policy: Arc<Policy>,
    dice: Dice,
    owners: Arc<Owners>,
    closed: bool,
    broken: bool,
    /// `None` if nobody observes.
    observed: Option<Box<Observed>>,
    waiters: WaitQueue,
    leases: Few<HeldLease>,
    attempts: Few<Attempt>,
    /// The waiters that adopt a detached lease. They wait for no others. Boxed, because most stations never have any.
    adopters: Option<Box<WaitQueue>>,
    releases: PendingReleases,
    /// When the first request failed since the store has last answered one.
    failing_since: Option<Moment>,
    floor: Floors,
    /// The owner of the last claim for a waiter in the queue, until its release is answered.
    last_asked: Option<Owner>,
    /// The waiter that was refused last, whose thread may still be there.
    last_refused: Option<TurnId>,
    last_action: u64,
    last_now: Moment,
    /// The outputs of the present input.
    outbox: Vec<Output>,
}

impl Station {
    /// A station for a name that is used as this kind. `owners` draws the owners of its leases.
    pub fn new(name: LockName, kind: NameKind, policy: impl Into<Arc<Policy>>, owners: impl Into<Arc<Owners>>) -> Self {
        let owners = owners.into();
        Self {
            name,
            kind,
            policy: policy.into(),
            dice: Dice::new(owners.seed()),
            owners,
            closed: false,
            broken: false,
            observed: None,
            waiters: WaitQueue::default(),
            leases: Few::default(),
            attempts: Few::default(),
            adopters: None,
            releases: PendingReleases::default(),
            failing_since: None,
            floor: Floors::default(),
            last_asked: None,
            last_refused: None,
            last_action: 0,
            last_now: Moment::ORIGIN,
            outbox: Vec::new(),
        }
    }

    /// The same for a client that has other stations. If the tokens of all locks come from one counter, no token that any of
    /// them has handed out is accepted again, so an idle station can be dropped and nothing is forgotten.
    #[must_use]
    pub fn sharing(mut self, floor: &Floor) -> Self {
        self.floor.sharing(floor, self.policy.store.counter);
        self
    }

    /// The lock.
    #[must_use]
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// Processes an input. Returns what is to be done, in this order. A `now` that is before an earlier one counts as the earlier
    /// one.
    #[must_use = "the facade has to carry out the outputs"]
    pub fn handle_input(&mut self, now: Moment, input: Input) -> Vec<Output> {
        let now = now.max(self.last_now);
        self.last_now = now;
        self.expire(now);
        self.refuse_overdue(now);
        match input {
            Input::Join(join) => self.on_join(now, join),
            Input::Adopt { join, ticket } => self.on_adopt(now, join, &ticket),
            Input::Detach(turn) => self.on_detach(turn),
            Input::Leave(leaving) => {
                if let Some(waiter) = self.take_waiter(leaving.turn) {
                    self.report_not_acquired(&waiter, || Outcome::Dropped);
                }
                self.end_turn(now, leaving);
            }
            Input::Replace { turn, terms } => self.on_replace(now, turn, terms),
            Input::Cancel(turn) => self.on_cancel(turn),
            Input::Reply(id, Reply::Acquire(result)) => self.on_acquire_reply(now, id, result),
            Input::Reply(id, Reply::Release(result)) => self.on_release_reply(now, id, result),
            Input::Renewal { owner, asked_at, answer } => self.on_renewal(now, owner, asked_at, answer),
            Input::Event(event) => self.on_event(now, event),
            Input::Tick => {}
            Input::Close => self.on_close(now),
            Input::Break => {
                self.broken = true;
                self.on_close(now);
            }
        }
        self.advance(now);
        mem::take(&mut self.outbox)
    }

    /// Drops all turns, whose holds are lost by that. For a station that has panicked, whatever its state is.
    pub fn break_off(&mut self) {
        self.broken = true;
        self.leases = Few::default();
        self.report_broken();
    }

    /// Whether a defect has ended it. It must get no further input.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    fn on_close(&mut self, now: Moment) {
        self.refuse_all(&AcquireError::Closed);
        self.lose_all(now, &crate::LossReason::Closed);
        self.give_up_all(now, Attempt::is_for_waiter);
        self.closed = true;
    }

    /// Does what follows from the time and the state, whatever the input was.
    fn advance(&mut self, now: Moment) {
        self.refuse_overdue(now);
        self.repeat_releases(now);
        self.give_up_abandoned(now);
        self.serve(now);
        // A waiter that was served may leave an attempt behind, and the next one then asks for itself.
        if self.give_up_abandoned(now) {
            self.serve(now);
        }
        if self.is_idle() {
            self.last_asked = None;
        }
        self.report_waits(now);
        debug_assert!(self.next_wake().is_none_or(|wake| wake > now), "nothing is left undone");
        debug_assert!(self.releases.are_few(&self.policy), "debt is bounded");
        debug_assert!(self.adopters_ask(), "adopters ask");
    }

    /// Serves the waiters here: they join what is held, or ask the store. At a lock the front waiter asks for all, and at a semaphore
    /// each for itself.
    fn serve(&mut self, now: Moment) {
        let need = match self.common() {
            Some(held) if held.is_shared() => self.advance_readers(now),
            Some(held) => {
                let holder = held.as_holder();
                self.refuse_impatient(holder);
                Need::Nothing
            }
            None => Need::Lease,
        };
        self.give_up_unwanted(now);
        self.ask_due(now);
        match (need, self.kind) {
            (Need::Refresh, _) => self.refresh_wanted(now),
            (Need::Lease, NameKind::Lock | NameKind::ReadWriteLock) => self.ask_first(now),
            (Need::Lease, NameKind::Semaphore) => self.ask_each(now),
            (Need::Nothing | Need::Turn, _) => {}
        }
    }

    /// Hands out a request about a lease of these terms.
    fn run(&mut self, now: Moment, request: Request, terms: Terms, for_whom: ForWhom) -> Progress {
        self.last_action += 1;
        let (id, within) = (ActionId(self.last_action), self.policy.within(terms.ttl));
        self.outbox.push(Output::Run(Action { id, request, within, for_whom }));
        Progress::InFlight(id, now)
    }

    fn take_common(&mut self) -> Option<Box<HeldLease>> {
        self.leases.take(|held| held.usage == LeaseUse::PassedOn)
    }

    fn held_of(&mut self, owner: Owner) -> Option<&mut HeldLease> {
        self.leases.iter_mut().find(|held| held.lease.owner == owner)
    }
}
