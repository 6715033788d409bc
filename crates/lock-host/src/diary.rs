//! What observers are told about one lock, derived from the inputs and outputs of its station.

use std::time::Duration;

use lock_core::station::{Action, ActionId, ByTurn, Input, Output, Reply, Request, Station, TurnId};
use lock_core::{
    Admission, Answer, BackendError, FencingToken, Hold, LossReason, Mode, Moment, Owner, Refusal, Released, Renewed,
};

use crate::event::Event;
use crate::news::News;
use crate::options::LongWaits;
use crate::outcome::Outcome;
use crate::sync::Arc;
use crate::traced::Acquisition;

#[path = "diary/waits.rs"]
mod waits;

use waits::{Ended, Waits};

/// A renewal is due at a third of the validity. It is late after this part more, when less than half is left.
const LATE_PART: u32 = 6;

/// What observers are told about one lock.
///
/// Its methods are not inlined, so that a client without observers pays only for a test.
pub(crate) struct Diary {
    news: Arc<News>,
    now: Moment,
    /// The call that joins next.
    joins: Option<(Acquisition, LongWaits)>,
    waits: Waits,
    /// Those who hold, the first one first.
    holds: ByTurn<Holding>,
    renewal: Option<Due>,
    /// The answer of the present input, if it came late.
    late: Option<Late>,
    unreleased: Vec<Unreleased>,
    /// Whether a defect ends the station.
    breaks: bool,
}

struct Holding {
    hold: Arc<Hold>,
    since: Moment,
}

impl Holding {
    /// Whether nobody else can hold the lock meanwhile.
    fn is_alone(&self) -> bool {
        self.hold.lease().terms.mode == Mode::Exclusive
    }
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
    since: Moment,
    /// The request that repeats it.
    request: Option<ActionId>,
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
            breaks: false,
        }
    }

    /// The next input is the join of this call.
    #[inline(never)]
    pub(crate) fn joins(&mut self, call: &Acquisition, long_waits: LongWaits) {
        self.joins = Some((call.clone(), long_waits));
    }

    /// A defect ends the station: what is held is lost.
    pub(crate) fn breaks(&mut self) {
        self.breaks = true;
    }

    /// Records an input, before the station gets it.
    #[inline(never)]
    pub(crate) fn before(&mut self, now: Moment, input: &Input) {
        // A station that panicked is closed at no particular moment.
        self.now = now.max(self.now);
        match input {
            Input::Join(join) | Input::Adopt { join, .. } => self.joined(join.turn),
            Input::Leave(leaving) => self.left(leaving.turn),
            Input::Reply(_, Reply::Acquire(result)) => {
                self.store_said(result);
                match result {
                    Ok(Answer::Queued { position, .. }) => self.waits.queued(self.now, *position),
                    Ok(Answer::Busy { .. }) => self.waits.taken(self.now),
                    Ok(Answer::Granted { .. }) | Err(_) => {}
                }
            }
            Input::Reply(id, Reply::Release(result)) => {
                self.store_said(result);
                if result.is_ok() {
                    self.confirmed(*id);
                }
            }
            Input::Renewal { owner, asked_at, answer } => match answer {
                Ok(Renewed::Unsure(error)) | Err(error) => self.news.store_said(self.now, Some(error)),
                Ok(Renewed::NotHeld | Renewed::Revoked { .. }) => self.news.store_said(self.now, None),
                Ok(Renewed::Renewed { valid_for, .. }) => {
                    self.news.store_said(self.now, None);
                    self.renewed(*owner, *asked_at, *valid_for);
                }
            },
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
            Output::Lose { turn, reason: LossReason::Closed } => self.closed(*turn),
            Output::Lose { turn, reason } => self.lost(*turn, reason),
            Output::Ended { turn, result } => self.ended(*turn, result),
            Output::Detached(turn) => self.detached(*turn),
            Output::Run(action) => self.repeated(action),
            Output::StartRenewal { lease, admission: Admission { asked_at, valid_for, .. } } => {
                // A lease that was handed over may be due at once, which is not late yet.
                self.renewal = Some(Due { owner: lease.owner, at: (*asked_at + *valid_for / 3).max(self.now) });
            }
            // It comes early: the renewal that is due later is not late.
            Output::RenewNow(_) | Output::EndSession => {}
            Output::StopRenewal(owner) => _ = self.renewal.take_if(|due| due.owner == *owner),
        }
    }

    /// Records the state of the station after an input. Returns when there is something to report although nothing happens.
    #[inline(never)]
    pub(crate) fn after(&mut self, station: &Station) -> Option<Moment> {
        if let Some(Late { by, remaining }) = self.late.take()
            && let Some(Holding { hold, .. }) = self.holds.first()
        {
            let (lock, token) = (self.news.lock(), hold.token());
            self.news.push(Event::RenewedLate { lock, token, late: by, remaining });
        }
        while let Some((waited, call)) = self.waits.take_long(self.now) {
            let (lock, holder, error) = (self.news.lock(), station.known_holder(), station.trouble().cloned());
            self.news.push_in(call, Event::WaitingLong { lock, waited, holder, error });
        }
        // The station gives up a release when its lease has certainly expired.
        for Unreleased { token, since, .. } in self.unreleased.extract_if(.., |it| !station.knows(it.owner)) {
            let (lock, pending) = (self.news.lock(), self.now.since(since));
            self.news.push(Event::ReleaseGivenUp { lock, token, pending });
        }
        self.waits.next_long()
    }

    /// A waiter is refused.
    pub(crate) fn refused(&mut self, turn: TurnId, refusal: &Refusal) {
        self.not_acquired(turn, || Outcome::from(refusal));
    }

    /// A holder has lost its hold.
    pub(crate) fn lost(&mut self, turn: TurnId, reason: &LossReason) {
        let Some(Holding { hold, since }) = self.holds.remove(turn) else { return };
        let (lock, token, held) = (self.news.lock(), hold.token(), self.now.since(since));
        self.news.push(Event::Lost { lock, token, held, reason: reason.clone() });
    }

    /// The user is done with a turn. A hold that it had to stop using early was lost, although it is released now.
    fn left(&mut self, turn: TurnId) {
        if self.holds.get(turn).is_some_and(|holding| holding.hold.has_stepped_down()) {
            return self.lost(turn, &LossReason::Expired(None));
        }
        self.not_acquired(turn, || Outcome::Dropped);
    }

    /// The program closes the client, which releases its leases; or the station breaks.
    fn closed(&mut self, turn: TurnId) {
        if self.breaks {
            return self.lost(turn, &LossReason::Closed);
        }
        let Some(Holding { hold, since }) = self.holds.remove(turn) else { return };
        let (lock, token, held) = (self.news.lock(), hold.token(), self.now.since(since));
        self.news.push(Event::Released { lock, token, held, pending: None });
    }

    fn store_said<T>(&self, result: &Result<T, BackendError>) {
        self.news.store_said(self.now, result.as_ref().err());
    }

    fn joined(&mut self, turn: TurnId) {
        let (call, long_waits) = self.joins.take().unzip();
        self.waits.begin(turn, self.now, call, long_waits.unwrap_or_default());
        if self.holds.first().is_some_and(Holding::is_alone) {
            self.waits.taken(self.now);
        }
    }

    fn admitted(&mut self, turn: TurnId, hold: &Arc<Hold>) {
        let position = self.waits.position.take();
        let Ended { waited, contended, call } = self.waits.end(turn, self.now).unwrap_or_default();
        let holding = Holding { hold: Arc::clone(hold), since: self.now };
        if holding.is_alone() {
            self.waits.taken(self.now);
        }
        self.holds.insert(turn, holding);
        let (lock, token) = (self.news.lock(), hold.token());
        self.news.push_in(call, Event::Acquired { lock, token, waited, contended, position });
    }

    /// A turn ends without the lock, if it still waits.
    fn not_acquired(&mut self, turn: TurnId, outcome: impl FnOnce() -> Outcome) {
        let Some(Ended { waited, contended, call }) = self.waits.end(turn, self.now) else { return };
        let (lock, outcome) = (self.news.lock(), outcome());
        self.news.push_in(call, Event::NotAcquired { lock, waited, contended, outcome });
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
            Ok(_) => self.news.push(Event::Released { lock, token, held, pending: None }),
            Err(error) => {
                let (error, owner, since) = (error.clone(), hold.lease().owner, self.now);
                self.news.push(Event::ReleasePending { lock, token, held, error });
                self.unreleased.push(Unreleased { owner, token, held, since, request: None });
            }
        }
    }

    fn detached(&mut self, turn: TurnId) {
        let Some(Holding { hold, since }) = self.holds.remove(turn) else { return };
        let (lock, token, held) = (self.news.lock(), hold.token(), self.now.since(since));
        self.news.push(Event::Detached { lock, token, held });
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
        let Unreleased { token, held, since, .. } = self.unreleased.swap_remove(index);
        let (lock, pending) = (self.news.lock(), Some(self.now.since(since)));
        self.news.push(Event::Released { lock, token, held, pending });
    }
}

#[cfg(test)]
#[path = "diary/tests.rs"]
mod tests;
