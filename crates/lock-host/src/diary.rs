//! What observers are told about one lock, derived from the inputs and outputs of its station.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::station::{Action, ActionId, ByTurn, Input, Output, Reply, Request, Station, TurnId};
use lock_core::{Answer, BackendError, FencingToken, Hold, LossReason, Moment, Owner, Refusal, Released, Renewed};

use crate::observer::Occurrence;
use crate::outcome::Outcome;
use crate::sync::Arc;
use crate::traced::Acquisition;
use crate::watch::News;

/// A waiter that has waited for this long is reported, and again each time that this has doubled. Chosen: waits that
/// are part of normal operation are shorter.
const LONG: Duration = Duration::from_secs(10);

/// A renewal is due at a third of the validity. It is late after this part more, when less than half is left.
const LATE_PART: u32 = 6;

/// What observers are told about one lock.
///
/// Its methods are not inlined, so that a client without observers pays only for a test.
pub(crate) struct Diary {
    news: Arc<News>,
    now: Moment,
    /// The call that joins next.
    joins: Option<Acquisition>,
    waits: Waits,
    /// Those who hold, the first one first.
    holds: ByTurn<Holding>,
    renewal: Option<Due>,
    /// The answer of the present input, if it came late.
    late: Option<Late>,
    unreleased: Vec<Unreleased>,
}

/// The waiters, and when each has waited for long.
#[derive(Default)]
struct Waits {
    by_turn: ByTurn<Wait>,
    long_at: BTreeSet<(Moment, TurnId)>,
    /// Their first known position in the store's queue.
    position: Option<u32>,
}

struct Wait {
    since: Moment,
    /// When that is reported next, counted from `since`.
    long: Duration,
    call: Option<Acquisition>,
}

struct Holding {
    hold: Arc<Hold>,
    since: Moment,
}

/// When the next renewal of a lease is due.
struct Due {
    owner: Owner,
    at: Moment,
}

struct Late {
    by: Duration,
    remaining: Duration,
}

/// A release that was not confirmed.
struct Unreleased {
    owner: Owner,
    token: FencingToken,
    held: Duration,
    /// The request that repeats it.
    request: Option<ActionId>,
}

impl Waits {
    fn begin(&mut self, turn: TurnId, now: Moment, call: Option<Acquisition>) {
        self.by_turn.insert(turn, Wait { since: now, long: LONG, call });
        self.long_at.insert((now + LONG, turn));
    }

    /// The store has queued those who wait. Its answer may come when they are gone.
    fn queued(&mut self, position: u32) {
        if !self.by_turn.is_empty() {
            self.position.get_or_insert(position);
        }
    }

    /// The wait that ends. The position goes with the last waiter.
    fn end(&mut self, turn: TurnId) -> Option<Wait> {
        let wait = self.by_turn.remove(turn)?;
        self.long_at.remove(&(wait.since + wait.long, turn));
        if self.by_turn.is_empty() {
            // An emptied set would keep its memory.
            (self.long_at, self.position) = (BTreeSet::new(), None);
        }
        Some(wait)
    }

    /// How long a waiter that has waited for long has waited, and its call, once for each report.
    fn take_long(&mut self, now: Moment) -> Option<(Duration, Option<Acquisition>)> {
        let (_, turn) = self.long_at.first().copied().filter(|(at, _)| *at <= now)?;
        self.long_at.pop_first();
        let wait = self.by_turn.get_mut(turn)?;
        let waited = now.since(wait.since);
        while wait.long <= waited {
            wait.long = wait.long.saturating_mul(2);
        }
        self.long_at.insert((wait.since + wait.long, turn));
        Some((waited, wait.call.clone()))
    }
}

impl Diary {
    pub(crate) fn new(news: Arc<News>) -> Self {
        Self {
            news,
            now: Moment::ORIGIN,
            joins: None,
            waits: Waits::default(),
            holds: ByTurn::default(),
            renewal: None,
            late: None,
            unreleased: Vec::new(),
        }
    }

    /// The next input is the join of this call.
    #[inline(never)]
    pub(crate) fn joins(&mut self, call: &Acquisition) {
        self.joins = Some(call.clone());
    }

    /// Records an input, before the station gets it.
    #[inline(never)]
    pub(crate) fn before(&mut self, now: Moment, input: &Input) {
        // A station that panicked is closed at no particular moment.
        self.now = now.max(self.now);
        match input {
            Input::Join(join) | Input::Adopt { join, .. } => self.waits.begin(join.turn, self.now, self.joins.take()),
            Input::Leave(leaving) => self.not_acquired(leaving.turn, || Outcome::Dropped),
            Input::Reply(_, Reply::Acquire(result)) => {
                self.store_said(result);
                if let Ok(Answer::Queued { position, .. }) = result {
                    self.waits.queued(*position);
                }
            }
            Input::Reply(id, Reply::Release(result)) => {
                self.store_said(result);
                if result.is_ok() {
                    self.confirmed(*id);
                }
            }
            Input::Renewal { owner, asked_at, answer } => {
                self.store_said(answer);
                if let Ok(Renewed::Renewed { valid_for, .. }) = answer {
                    self.renewed(*owner, *asked_at, *valid_for);
                }
            }
            Input::Cancel(_) | Input::Replace { .. } | Input::Detach(_) => {}
            Input::Event(_) | Input::Tick | Input::Close => {}
        }
    }

    /// Records an output.
    #[inline(never)]
    pub(crate) fn output(&mut self, output: &Output) {
        match output {
            Output::Admit { turn, hold } => self.admitted(*turn, hold),
            Output::Refuse { turn, refusal } => self.refused(*turn, refusal),
            Output::Replaced { turn, result } => self.replaced(*turn, result),
            Output::Lose { turn, reason } => self.lost(*turn, reason),
            Output::Ended { turn, result } => self.ended(*turn, result),
            Output::Detached(turn) => self.detached(*turn),
            Output::Run(action) => self.repeated(action),
            Output::Keep { lease, asked_at, valid_for } => {
                // A lease that was handed over may be due at once, which is not late yet.
                self.renewal = Some(Due { owner: lease.owner, at: (*asked_at + *valid_for / 3).max(self.now) });
            }
            // It comes early: the renewal that is due later is not late.
            Output::Renew(_) => {}
            Output::Forget(owner) => _ = self.renewal.take_if(|due| due.owner == *owner),
        }
    }

    /// Records the state of the station after an input. Returns when there is something to report although nothing happens.
    #[inline(never)]
    pub(crate) fn after(&mut self, station: &Station) -> Option<Moment> {
        if let Some(Late { by, remaining }) = self.late.take()
            && let Some(Holding { hold, .. }) = self.holds.first()
        {
            let (lock, token) = (self.news.lock(), hold.token());
            self.news.push(Occurrence::RenewedLate { lock, token, late: by, remaining });
        }
        while let Some((waited, call)) = self.waits.take_long(self.now) {
            let (lock, holder, error) = (self.news.lock(), station.known_holder(), station.trouble().cloned());
            self.news.push_in(call, Occurrence::WaitingLong { lock, waited, holder, error });
        }
        // The station gives up a release when its lease has certainly expired.
        self.unreleased.retain(|unreleased| station.knows(unreleased.owner));
        self.waits.long_at.first().map(|(at, _)| *at)
    }

    /// A waiter is refused.
    pub(crate) fn refused(&mut self, turn: TurnId, refusal: &Refusal) {
        self.not_acquired(turn, || Outcome::from(refusal));
    }

    /// A holder has lost its hold.
    pub(crate) fn lost(&mut self, turn: TurnId, reason: &LossReason) {
        let Some(Holding { hold, since }) = self.holds.remove(turn) else { return };
        let (lock, token, held) = (self.news.lock(), hold.token(), self.now.since(since));
        self.news.push(Occurrence::Lost { lock, token, held, reason: reason.clone() });
    }

    fn store_said<T>(&self, result: &Result<T, BackendError>) {
        self.news.store_said(self.now, result.as_ref().err());
    }

    fn admitted(&mut self, turn: TurnId, hold: &Arc<Hold>) {
        let position = self.waits.position.take();
        let wait = self.waits.end(turn);
        let waited = wait.as_ref().map_or(Duration::ZERO, |wait| self.now.since(wait.since));
        self.holds.insert(turn, Holding { hold: Arc::clone(hold), since: self.now });
        let (lock, token) = (self.news.lock(), hold.token());
        self.news.push_in(wait.and_then(|wait| wait.call), Occurrence::Acquired { lock, token, waited, position });
    }

    /// A turn ends without the lock, if it still waits.
    fn not_acquired(&mut self, turn: TurnId, outcome: impl FnOnce() -> Outcome) {
        let Some(Wait { since, call, .. }) = self.waits.end(turn) else { return };
        let (lock, waited, outcome) = (self.news.lock(), self.now.since(since), outcome());
        self.news.push_in(call, Occurrence::NotAcquired { lock, waited, outcome });
    }

    /// A turn goes on under another lease, if its wish was granted.
    fn replaced(&mut self, turn: TurnId, result: &Result<Arc<Hold>, Refusal>) {
        if let (Ok(hold), Some(holding)) = (result, self.holds.get_mut(turn)) {
            holding.hold = Arc::clone(hold);
        }
    }

    fn renewed(&mut self, owner: Owner, asked_at: Moment, valid_for: Duration) {
        let Some(due) = self.renewal.as_mut().filter(|due| due.owner == owner) else { return };
        let by = self.now.since(due.at);
        due.at = asked_at + valid_for / 3;
        let until = self.holds.iter().map(|(_, holding)| holding.hold.valid_until()).min();
        if let Some(until) = until.filter(|_| by > valid_for / LATE_PART) {
            self.late = Some(Late { by, remaining: until.since(self.now) });
        }
    }

    fn ended(&mut self, turn: TurnId, result: &Result<Released, BackendError>) {
        if let Ok(Released::Left | Released::NotHeld) = result {
            return self.lost(turn, &LossReason::NotHeld);
        }
        let Some(Holding { hold, since }) = self.holds.remove(turn) else { return };
        let (lock, token, held) = (self.news.lock(), hold.token(), self.now.since(since));
        match result {
            Ok(_) => self.news.push(Occurrence::Released { lock, token, held }),
            Err(error) => {
                let error = error.clone();
                self.news.push(Occurrence::ReleasePending { lock, token, error });
                self.unreleased.push(Unreleased { owner: hold.lease().owner, token, held, request: None });
            }
        }
    }

    fn detached(&mut self, turn: TurnId) {
        let Some(Holding { hold, since }) = self.holds.remove(turn) else { return };
        let (lock, token, held) = (self.news.lock(), hold.token(), self.now.since(since));
        self.news.push(Occurrence::Detached { lock, token, held });
    }

    /// A release may repeat one that was not confirmed.
    fn repeated(&mut self, action: &Action) {
        let Request::Release(request) = &action.request else { return };
        if let Some(unreleased) = self.unreleased.iter_mut().find(|unreleased| unreleased.owner == request.owner) {
            unreleased.request = Some(action.id);
        }
    }

    fn confirmed(&mut self, id: ActionId) {
        let Some(index) = self.unreleased.iter().position(|unreleased| unreleased.request == Some(id)) else { return };
        let Unreleased { token, held, .. } = self.unreleased.swap_remove(index);
        self.news.push(Occurrence::Released { lock: self.news.lock(), token, held });
    }
}

#[cfg(test)]
#[path = "diary/tests.rs"]
mod tests;
