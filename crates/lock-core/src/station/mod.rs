//! The machine: this client's place at one lock.
//!
//! A [`Station`] holds the local waiters of one lock and the lease they share, and decides everything about it:
//! when to ask, whom to admit, when to pass the lease on to the next local waiter, when a hold is lost, what has to be
//! released. It does no I/O and reads no clock. A facade feeds it [`Input`]s with the present moment, carries out the
//! [`Output`]s, and ticks it at [`Station::next_wake`].
//!
//! ```text
//!          join                    granted                      turn ends, next local waiter
//!  Idle ─────────▶ Asking ────────────────────────▶ Held ──────────────────────────────────▶ Held
//!                  ▲    │ busy, queued, error        ▲  │ turn ends, nobody fit: release
//!            again │    ▼                            │  │ lost: expired, not held, max_hold
//!                  Waiting ──────────────────────────┘  ▼
//!                       handed over by the store       Idle        releases run beside, as pending_releases
//! ```
//!
//! The rules that it keeps, and asserts:
//! - A turn is admitted only while its lease is valid, and at most one turn at a time.
//! - Validity counts from when the request was handed out. Expiry wins over anything that arrives at the same moment.
//! - An outcome that is not known keeps its owner where the store has a queue. Elsewhere it is followed by a release, and the
//!   next claim, of another owner, waits for the answer to that.
//! - At most four releases are owed; with four owed nothing new is asked.
//! - Nobody is told that the lock is held before the store has said so.
//! - A grant that nobody wants any more is released at once.

mod asking;
mod floor;
mod held;
mod io;
mod line;
mod pending;
mod state;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

pub use floor::Floor;
use floor::Floors;
use io::refused;
pub use io::{Action, ActionId, Input, Join, Output, Reply, Request, TurnId};
use line::{Line, Waiter};
use pending::PendingReleases;
use state::{Attempt, State};

use crate::policy::Dice;
use crate::{
    AcquireError, BackendError, Certainty, Effect, ErrorKind, Holder, LockName, Moment, Operation, Patience, Policy,
    Refusal,
};

/// This client's place at one lock: its local waiters, and the lease they share. See the module's text.
#[derive(Debug)]
pub struct Station {
    name: LockName,
    policy: Policy,
    dice: Dice,
    line: Line,
    state: State,
    pending_releases: PendingReleases,
    floor: Floors,
    last_action: u64,
    last_now: Moment,
    outbox: VecDeque<Output>,
}

impl Station {
    /// A station for a lock; `seed` is any random number, for jitter.
    pub fn new(name: LockName, policy: Policy, seed: u64) -> Self {
        Self {
            name,
            policy,
            dice: Dice::new(seed),
            line: Line::default(),
            state: State::Idle,
            pending_releases: PendingReleases::default(),
            floor: Floors::default(),
            last_action: 0,
            last_now: Moment::ORIGIN,
            outbox: VecDeque::new(),
        }
    }

    /// The same, for a client that has other stations: where the tokens of all come from one counter, none that was handed out at any of
    /// them is granted again. So the station can be let go when it is idle, and nothing is forgotten.
    #[must_use]
    pub fn sharing(mut self, floor: &Floor) -> Self {
        self.floor.sharing(floor, self.policy.store.counter);
        self
    }

    /// Takes in what happened. A `now` before an earlier one counts as that one.
    pub fn handle_input(&mut self, now: Moment, input: Input) {
        let now = now.max(self.last_now);
        self.last_now = now;
        self.expire(now);
        self.refuse_overdue(now);
        match input {
            Input::Join(join) => self.on_join(now, join),
            Input::Leave(turn) => self.on_leave(now, turn),
            Input::Reply(id, Reply::Acquire(result)) => self.on_acquire_reply(now, id, result),
            Input::Reply(id, Reply::Release(result)) => self.on_release_reply(now, id, result),
            Input::Renewal { owner, asked_at, answer } => self.on_renewal(now, owner, asked_at, answer),
            Input::Event(event) => self.on_event(now, event),
            Input::Tick => {}
            Input::Close => self.on_close(now),
        }
        self.advance(now);
    }

    /// The next thing to do; call until it is `None` after each input.
    #[must_use]
    pub fn poll_output(&mut self) -> Option<Output> {
        let output = self.outbox.pop_front();
        if output.is_none() {
            // Most stations wait for something, and there may be many: they keep no room.
            self.outbox = VecDeque::new();
        }
        output
    }

    /// When to tick next, if nothing happens before.
    #[must_use]
    pub fn next_wake(&self) -> Option<Moment> {
        let state = match &self.state {
            State::Waiting(_, again_at) => Some(*again_at).filter(|_| !self.is_held_back()),
            State::Held(held) => Some(held.turn_until()),
            State::Idle | State::Asking(..) | State::Closed => None,
        };
        [state, self.line.next_deadline(), self.pending_releases.next_due()].into_iter().flatten().min()
    }

    /// Whether nothing is going on: nobody waits or holds, and nothing is under way. Only the floor would be forgotten, where it is
    /// not shared.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle | State::Closed) && self.line.is_empty() && self.pending_releases.is_empty()
    }

    fn on_join(&mut self, now: Moment, join: Join) {
        if matches!(self.state, State::Closed) {
            self.outbox.push_back(refused(join.turn, AcquireError::Closed));
            return;
        }
        if let Err(error) = self.policy.store.check_mode(join.terms.mode) {
            self.outbox.push_back(refused(join.turn, error.into()));
            return;
        }
        // This waiter waits for one answer only, and what is known may be old by now. A claim that is under way already
        // is its answer.
        if let (Patience::Never, State::Waiting(_, again_at)) = (join.patience, &mut self.state) {
            *again_at = now;
        }
        if self.is_held_back() {
            self.pending_releases.hasten_before_claims(now, &self.policy);
        }
        self.line.join(now, join);
    }

    fn on_leave(&mut self, now: Moment, turn: TurnId) {
        self.line.leave(turn);
        if matches!(&self.state, State::Held(held) if held.turn == turn) {
            self.end_turn(now);
        }
    }

    fn on_close(&mut self, now: Moment) {
        self.refuse_all(&AcquireError::Closed);
        self.lose(now, crate::LossReason::Closed);
        self.give_up_attempt(now);
        self.state = State::Closed;
    }

    /// What follows from the passing of time and from the state, whatever happened.
    fn advance(&mut self, now: Moment) {
        self.refuse_overdue(now);
        self.repeat_releases(now);
        match &self.state {
            State::Idle => self.ask_first(now),
            State::Waiting(attempt, again_at) => {
                if self.line.first_with(attempt.terms).is_none() {
                    self.give_up_attempt(now);
                    self.ask_first(now);
                } else if *again_at <= now && !self.is_held_back() {
                    self.ask_again(now);
                }
            }
            State::Held(held) => {
                let holder = held.as_holder();
                self.refuse_impatient(Some(&holder));
            }
            State::Asking(..) | State::Closed => {}
        }
        debug_assert!(self.next_wake().is_none_or(|wake| wake > now), "nothing is left undone");
        debug_assert!(self.pending_releases.0.len() <= self.policy.owed_max, "debt is bounded");
    }

    fn refuse_overdue(&mut self, now: Moment) {
        for waiter in self.line.take_overdue(now) {
            self.refuse_late(now, &waiter);
        }
    }

    fn refuse_late(&mut self, now: Moment, waiter: &Waiter) {
        let waited = whole_millis(now.since(waiter.since));
        let error = match (self.trouble(), self.known_holder()) {
            (Some(trouble), _) => AcquireError::Backend(trouble.clone()),
            (None, holder @ Some(_)) => AcquireError::TimedOut { name: self.name.clone(), waited, holder },
            (None, None) => AcquireError::Backend(no_answer(waited)),
        };
        self.outbox.push_back(refused(waiter.join.turn, error));
    }

    fn refuse_impatient(&mut self, holder: Option<&Holder>) {
        for waiter in self.line.take_impatient() {
            let refusal = Refusal::Busy { holder: holder.cloned() };
            self.outbox.push_back(Output::Refuse { turn: waiter.join.turn, refusal });
        }
    }

    fn refuse_all(&mut self, error: &AcquireError) {
        for waiter in self.line.take_all() {
            self.outbox.push_back(refused(waiter.join.turn, error.clone()));
        }
    }

    /// Why the store does not grant the lock to those who wait for it, if that is so: the error of the latest request.
    #[must_use]
    pub fn trouble(&self) -> Option<&BackendError> {
        match &self.state {
            State::Asking(attempt, _) | State::Waiting(attempt, _) if attempt.trouble.is_some() => {
                attempt.trouble.as_ref()
            }
            State::Asking(attempt, _) | State::Waiting(attempt, _) if attempt.holder.is_some() => None,
            State::Idle | State::Asking(..) | State::Waiting(..) => self.pending_releases.trouble(),
            State::Held(_) | State::Closed => None,
        }
    }

    fn known_holder(&self) -> Option<Holder> {
        match &self.state {
            State::Asking(attempt, _) | State::Waiting(attempt, _) => attempt.holder.clone(),
            State::Held(held) => Some(held.as_holder()),
            State::Idle | State::Closed => None,
        }
    }

    fn run(&mut self, request: Request, within: Duration) -> ActionId {
        self.last_action += 1;
        let id = ActionId(self.last_action);
        self.outbox.push_back(Output::Run(Action { id, request, within }));
        id
    }

    /// Ends the attempt, if there is one, leaving nothing of it at the store.
    fn give_up_attempt(&mut self, now: Moment) {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Asking(attempt, _) => self.part(now, &attempt, Certainty::Unknown),
            State::Waiting(attempt, _) => self.leave_queue(now, &attempt),
            other @ (State::Idle | State::Held(_) | State::Closed) => self.state = other,
        }
    }

    fn leave_queue(&mut self, now: Moment, attempt: &Attempt) {
        if attempt.place == state::Place::Queued || attempt.certainty == Certainty::Unknown {
            self.part(now, attempt, attempt.certainty);
        }
    }
}

/// The wait is over, and the store has said nothing of the lock.
fn no_answer(waited: Duration) -> BackendError {
    let message = format!("no answer within {}", humantime::format_duration(waited));
    BackendError::new("client", Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, message)
        .with_remedy("wait for longer, or check that the store answers")
}

fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
