//! One waiter and holder of a worker, and what it records: the same for both facades.

use std::process;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leasehold::backend::{Ability, Capabilities};
use leasehold::{AcquireError, BackendError, Ticket};

use crate::ask::Ask;
use crate::cast::{Mistake, Role, Wish, limit};
use crate::dice::{Dice, Waiting};
use crate::history::{Ending, Leaving, Log, What, now};
use crate::hold::Hold;
use crate::part::{Orders, Part};
use crate::register::Desk;

/// How long a worker rests after an answer that was not a turn.
pub(crate) const REST: Duration = Duration::from_millis(20);
/// How long a worker that cannot connect waits before it tries again.
pub(crate) const RECONNECT: Duration = Duration::from_millis(100);

/// How long a hold that its own check gave up may wait for the signal.
pub(crate) const TOLD_WITHIN: Duration = Duration::from_secs(5);

/// One waiter and holder of a worker.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) wish: Wish,
    pub(crate) ttl: Duration,
    pub(crate) orders: Orders,
    number: usize,
    mistake: Mistake,
    /// What it held in its first turn.
    first: OnceLock<Hold>,
    register: Arc<Desk>,
    log: Arc<Log>,
}

impl Seat {
    /// All seats of a worker, each with its choices.
    pub(crate) fn all(part: &Part) -> Vec<(Self, Dice)> {
        let (log, orders) = (Arc::new(Log::open(&part.history).unwrap()), Orders::of_input());
        let register = Arc::new(Desk::connect(&part.register));
        let &Part { ttl, mistake, .. } = part;
        let seat = |(number, wish): (usize, &Wish)| {
            let (log, register, dice) = (Arc::clone(&log), Arc::clone(&register), Dice::of(part, &orders, number));
            let (orders, first) = (orders.clone(), OnceLock::new());
            (Self { wish: *wish, ttl, orders, number, mistake, first, register, log }, dice)
        };
        part.cast.wishes().iter().enumerate().map(seat).collect()
    }

    /// The name of its lock at the store.
    pub(crate) fn name(&self) -> String {
        if self.mistake == Mistake::Apart {
            return format!("{}@{}", self.wish.lock, process::id());
        }
        self.wish.lock.to_owned()
    }

    /// Records that it has a guard, as far as the check of the guard says so.
    pub(crate) fn has(&self, hold: Hold, holds: impl FnOnce() -> bool) -> Option<Hold> {
        let at = now();
        if !holds() {
            return None;
        }
        let hold = match self.mistake {
            Mistake::OldTokens => self.first.get_or_init(|| hold).clone(),
            Mistake::WrongSlots => hold.beyond(limit(self.wish.lock)),
            Mistake::None
            | Mistake::Apart
            | Mistake::Believes
            | Mistake::Pushes
            | Mistake::Deaf
            | Mistake::Unfenced => hold,
        };
        self.say_of(at, What::Has(hold.clone()));
        Some(hold)
    }

    /// Records that the guard still holds, as far as its check says so.
    pub(crate) fn still(&self, holds: impl FnOnce() -> bool) -> bool {
        let at = now();
        let holds = self.mistake == Mistake::Believes || holds();
        if holds {
            self.say_of(at, What::Still);
        }
        holds
    }

    /// Whether it stops at the signal of its loss.
    pub(crate) fn heeds_loss(&self) -> bool {
        !matches!(self.mistake, Mistake::Believes | Mistake::Deaf)
    }

    /// Reads at the beginning of a turn. Returns what is to be written at its end.
    pub(crate) fn read(&self, hold: &Hold) -> Vec<Ask> {
        let read = |(resource, token): (String, u64)| {
            let ask = Ask { resource, token, base: None };
            self.ask(&ask).map(|number| Ask { base: Some(number), ..ask })
        };
        hold.resources(self.wish.lock).into_iter().filter_map(read).collect()
    }

    /// Writes back what was read.
    pub(crate) fn write(&self, drafts: &[Ask]) {
        drafts.iter().for_each(|draft| _ = self.ask(draft));
    }

    /// Records what it asks before the register can hear it, and the answer.
    fn ask(&self, ask: &Ask) -> Option<u64> {
        self.say(What::Asks(ask.clone()));
        let token = if self.mistake == Mistake::Unfenced { u64::MAX } else { ask.token };
        let answer = self.register.number(&Ask { token, ..ask.clone() });
        self.say(What::Answered(answer));
        answer
    }

    /// Leaves a ticket for those who want the same.
    pub(crate) fn leave(&self, ticket: &Ticket) {
        self.say(What::Ended(Ending::Detached));
        self.register.leave(&self.purpose(), &ticket.expose());
    }

    /// Takes a ticket that somebody who wanted the same has left.
    pub(crate) fn take(&self) -> Option<Ticket> {
        self.register.take(&self.purpose()).map(|ticket| ticket.parse().unwrap())
    }

    fn purpose(&self) -> String {
        let kind = match self.wish.role {
            Role::Write => "write",
            Role::Read => "read",
            Role::Permits(_) => "permits",
        };
        format!("{}/{kind}", self.name())
    }

    /// Records a loss, and whether its signal arrived.
    pub(crate) fn lost(&self, was_told: bool) {
        let was_told = was_told && self.mistake != Mistake::Deaf;
        self.say(What::Ended(if was_told { Ending::Lost } else { Ending::Untold }));
    }

    pub(crate) fn say(&self, what: What) {
        self.say_of(now(), what);
    }

    /// Records an event at a time that was read before the guard was asked.
    fn say_of(&self, at: u64, what: What) {
        self.log.say(at, self.number, self.wish.lock, what);
    }
}

/// Whether a seat passes waiters that have no use for what is free: if it wants to, and the store can do it.
pub(crate) fn barges(waiting: Waiting, store: &Capabilities) -> bool {
    matches!(waiting, Waiting::Barging) && store.check_ability(Ability::Barge).is_ok()
}

/// What an error while waiting is to the history.
pub(crate) fn leaving(error: &AcquireError) -> Leaving {
    let passes = |failed: &BackendError| failed.kind().is_transient();
    if matches!(error, AcquireError::TimedOut { .. }) {
        Leaving::TimedOut
    } else if matches!(error, AcquireError::TicketOver { .. }) {
        Leaving::TicketOver
    } else if matches!(error, AcquireError::Backend(failed) if passes(failed)) {
        Leaving::Unavailable
    } else {
        Leaving::Refused(error.to_string())
    }
}
