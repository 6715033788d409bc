//! Requests: by a function that answers common ones alone, or by a window of the rules.

use std::time::Duration;

use lock_core::latch::{self, Act, LatchState};
use lock_core::{
    Answer, BackendError, Certainty, Claim, Effect, ErrorKind, FencingToken, Holder, Invalid, Lease, Mode, Moment,
    Note, Owner, Queueing, ReleaseRequest, Released, Renewed, TokenRange,
};
use lock_rules::window::{self, Commit, Committed, LatchCommit, LatchWindow, Request, Step, Window, WindowStore};
use lock_rules::{Hold, PLACE_MAX, place_for};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::error::{self, BACKEND, damaged};
use crate::latches::{LatchArguments, LoadedLatch};
use crate::pool::Lent;
use crate::wire::{Bell, CommitArguments, Load, Loaded, ModeRow, micros, to_owner};

/// How long an expired lease counts as held while a transaction is fenced by it. Its waiters ask again then.
const FENCED_FOR: Duration = Duration::from_millis(100);
/// How long a request waits for such a transaction before it looks again: first, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// The store, as the rules over windows see it.
pub(crate) struct Postgres;

impl WindowStore for Postgres {
    const BACKEND: &'static str = BACKEND;
    type Client = Bell;
}

/// One request over one connection.
pub(crate) struct Session<'a> {
    connection: Lent<'a>,
    /// When its time is over.
    deadline: Instant,
    /// The server's clock when a window was loaded.
    now: Moment,
}

/// The answer of `claim`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Claimed {
    /// The first token.
    Granted { granted: u64 },
    /// What the holder has, how long it lasts in microseconds, and the position of a waiter.
    Behind { low: u64, high: u64, note: String, remaining: u64, drawn: u64, position: u32 },
}

#[derive(Serialize)]
struct ClaimArguments<'a> {
    name: &'a str,
    owner: String,
    #[serde(flatten)]
    mode: ModeRow,
    ttl: u64,
    place: u64,
    width: u64,
    floor: Option<u64>,
    note: &'a str,
    queue: bool,
    #[serde(flatten)]
    bell: &'a Bell,
    counted: u32,
    within: u128,
}

#[derive(Serialize)]
struct ReleaseArguments<'a> {
    name: &'a str,
    owner: String,
    place_max: u64,
    within: u128,
}

#[derive(Serialize)]
struct RenewArguments<'a> {
    leases: Vec<LeaseArguments<'a>>,
    within: u128,
}

#[derive(Serialize)]
struct LeaseArguments<'a> {
    name: &'a str,
    owner: String,
    low: u64,
    high: u64,
    ttl: u64,
}

impl<'a> LeaseArguments<'a> {
    fn of((key, lease): &'a (String, &Lease)) -> Self {
        Self {
            name: key,
            owner: lease.owner.to_wire(),
            low: lease.tokens.low().get(),
            high: lease.tokens.high().get(),
            ttl: micros(lease.terms.ttl.get()),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RenewedRow {
    Renewed { wanted: bool },
    Ended { revoked_by: Option<String> },
}

/// The answer of `commit`.
#[derive(Deserialize)]
#[serde(untagged)]
enum CommitAnswer {
    Done(Done),
    Fenced(Vec<String>),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Done {
    Written,
    Conflict,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    within: u128,
}

impl<'a> Session<'a> {
    pub(crate) fn new(connection: Lent<'a>, deadline: Instant) -> Self {
        Self { connection, deadline, now: Moment::ORIGIN }
    }

    /// The server's clock when the last window was loaded.
    pub(crate) const fn now(&self) -> Moment {
        self.now
    }

    /// What is left of the request's time: how long it may wait for locks of rows.
    fn within(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
    }

    /// Calls a function of the schema; `None` for NULL.
    pub(crate) async fn call<T: DeserializeOwned>(
        &mut self,
        function: &str,
        arguments: &(impl Serialize + Sync),
    ) -> Result<Option<T>, BackendError> {
        self.connection.call(function, arguments).await
    }

    /// Answers a claim.
    pub(crate) async fn acquire(&mut self, key: &str, claim: &Claim, bell: &Bell) -> Result<Answer, BackendError> {
        let is_common = claim.replaces.is_none() && claim.terms.mode.limit().is_none();
        if is_common && let Some(answer) = self.claim(key, claim, bell).await? {
            return Ok(answer);
        }
        self.run(key, claim.floor, window::acquire(bell.clone(), claim)).await
    }

    async fn claim(&mut self, key: &str, claim: &Claim, bell: &Bell) -> Result<Option<Answer>, BackendError> {
        let arguments = ClaimArguments {
            name: key,
            owner: claim.owner.to_wire(),
            mode: claim.terms.mode.into(),
            ttl: micros(claim.terms.ttl.get()),
            place: micros(place_for(claim.terms.ttl)),
            width: claim.width.get(),
            floor: claim.floor.map(FencingToken::get),
            note: claim.note.to_wire(),
            queue: claim.queueing == Queueing::Wanted,
            bell,
            counted: lock_rules::COUNTED_MAX,
            within: self.within().as_millis(),
        };
        let answer = self.call("claim_1", &arguments).await?;
        answer.map(|answer| answer_of(claim, answer).map_err(damaged)).transpose()
    }

    /// Ends a hold or a place.
    pub(crate) async fn release(&mut self, key: &str, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let is_common =
            request.certainty == Certainty::Answered && request.keep.is_none() && request.terms.mode == Mode::Exclusive;
        if is_common {
            let (owner, within) = (request.owner.to_wire(), self.within().as_millis());
            let arguments = ReleaseArguments { name: key, owner, place_max: micros(PLACE_MAX), within };
            if self.call("release_1", &arguments).await? == Some(true) {
                return Ok(Released::Released);
            }
        }
        self.run(key, None, window::release(request)).await
    }

    /// Renews leases, each with its key.
    pub(crate) async fn renew(&mut self, leases: &[(String, &Lease)]) -> Result<Vec<Renewed>, BackendError> {
        let rows = leases.iter().map(LeaseArguments::of).collect();
        let arguments = RenewArguments { leases: rows, within: self.within().as_millis() };
        let rows: Option<Vec<RenewedRow>> = self.call("renew_1", &arguments).await?;
        let answer = |(row, (_, lease)): (RenewedRow, &(String, &Lease))| match row {
            RenewedRow::Renewed { wanted } => Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted },
            RenewedRow::Ended { revoked_by: Some(by) } => Renewed::Revoked { by: Note::from_wire(&by) },
            RenewedRow::Ended { revoked_by: None } => Renewed::NotHeld,
        };
        Ok(rows.unwrap_or_default().into_iter().zip(leases).map(answer).collect())
    }

    /// Runs a request of the rules until it is answered. Tokens are drawn above the floor.
    pub(crate) async fn run<T>(
        &mut self,
        key: &str,
        floor: Option<FencingToken>,
        mut request: Request<'_, Postgres, T>,
    ) -> Result<T, BackendError> {
        let (mut step, mut fenced, mut pause) = (request.begin(), Vec::new(), PAUSE_MIN);
        loop {
            step = match step {
                Step::Load(needs) => {
                    let mut window = self.load(key, needs).await?;
                    window.last_token = window.last_token.max(floor.map_or(0, FencingToken::get));
                    count_as_held(&mut window, &fenced);
                    request.loaded(window)
                }
                Step::Commit(commit) => match self.commit(key, commit).await? {
                    CommitAnswer::Done(Done::Written) => request.committed(Committed::Written),
                    CommitAnswer::Done(Done::Conflict) => request.committed(Committed::Conflict),
                    CommitAnswer::Fenced(owners) => {
                        fenced =
                            owners.iter().map(|owner| to_owner(owner)).collect::<Result<_, _>>().map_err(damaged)?;
                        self.pause(&mut pause).await?;
                        request.committed(Committed::Conflict)
                    }
                },
                Step::Done(answer) => return answer,
            };
        }
    }

    /// Waits a little for a transaction that is fenced by a lease; an error if there is no time left.
    async fn pause(&self, pause: &mut Duration) -> Result<(), BackendError> {
        if self.within() < *pause * 2 {
            let message = "a transaction that is fenced by this lease is still open";
            let remedy = "commit the transaction before the lock is released";
            return Err(error::new(ErrorKind::Unavailable, Effect::None, message).with_remedy(remedy));
        }
        sleep(*pause).await;
        *pause = (*pause * 2).min(PAUSE_MAX);
        Ok(())
    }

    pub(crate) async fn load(&mut self, key: &str, needs: window::Needs) -> Result<Window<Bell>, BackendError> {
        loop {
            if let Some(loaded) = self.call::<Loaded>("load_1", &Load::new(key, &needs)).await? {
                let window = loaded.window(needs).map_err(damaged)?;
                self.now = window.now;
                return Ok(window);
            }
            let arguments = Named { name: key, within: self.within().as_millis() };
            self.call::<bool>("make_1", &arguments).await?;
        }
    }

    async fn commit(&mut self, key: &str, commit: Commit<Bell>) -> Result<CommitAnswer, BackendError> {
        let arguments = CommitArguments::new(key, self.within(), commit);
        let answer = self.call("commit_1", &arguments).await?;
        answer.ok_or_else(|| {
            error::new(ErrorKind::Protocol, Effect::Unknown, "the server did not say what became of a commit")
        })
    }

    /// Carries out a request about a latch.
    pub(crate) async fn latch(
        &mut self,
        key: &str,
        request: &latch::Request,
    ) -> Result<Option<LatchState>, BackendError> {
        loop {
            let window = self.load_latch(key, request).await?;
            let ((state, _), commit) = window::ask_latch(window, request);
            let Some(commit) = commit else { return Ok(state) };
            if self.commit_latch(key, commit).await? {
                return Ok(state);
            }
        }
    }

    async fn load_latch(&mut self, key: &str, request: &latch::Request) -> Result<LatchWindow, BackendError> {
        let id = match &request.act {
            Act::Arrive { id, .. } => Some(id.as_str()),
            Act::Make { .. } | Act::Expect { .. } | Act::Reset { .. } | Act::Look { .. } => None,
        };
        let loaded = self.call::<LoadedLatch>("load_latch_1", &LoadedLatch::arguments(key, id)).await?;
        let missing = || error::new(ErrorKind::Protocol, Effect::None, "the server did not show the latch");
        loaded.ok_or_else(missing)?.window().map_err(damaged)
    }

    async fn commit_latch(&mut self, key: &str, commit: LatchCommit) -> Result<bool, BackendError> {
        let arguments = LatchArguments::new(key, self.within(), commit);
        Ok(self.call("commit_latch_1", &arguments).await? == Some(true))
    }
}

fn answer_of(claim: &Claim, answer: Claimed) -> Result<Answer, Invalid> {
    Ok(match answer {
        Claimed::Granted { granted } => {
            let tokens = TokenRange::above(granted.saturating_sub(1), claim.width)?;
            Answer::Granted { lease: claim.lease(tokens), valid_for: claim.terms.ttl.get(), wanted: false }
        }
        Claimed::Behind { low, high, note, remaining, drawn, position } => {
            let tokens = TokenRange::new(FencingToken::new(low)?, FencingToken::new(high)?)?;
            let holder = Holder::Leasehold { tokens, note: Note::from_wire(&note) };
            let (remaining, drawn) = (Some(Duration::from_micros(remaining)), FencingToken::new(drawn).ok());
            let valid_for = place_for(claim.terms.ttl);
            match claim.queueing {
                Queueing::Wanted => Answer::Queued { position, remaining, valid_for, holder, drawn },
                Queueing::Unwanted => Answer::Busy { remaining, holder, drawn },
            }
        }
    })
}

/// An expired lease that a transaction is fenced by is held for a little longer.
fn count_as_held(window: &mut Window<Bell>, fenced: &[Owner]) {
    let (held, expired): (Vec<Hold>, _) =
        std::mem::take(&mut window.expired).into_iter().partition(|hold| fenced.contains(&hold.owner));
    window.expired = expired;
    for hold in held {
        let until = window.now + FENCED_FOR;
        window.first_ends.push((until, hold.mode.count()));
        window.last.push(Hold { until, ..hold });
    }
    window.first_ends.sort_unstable();
    window.last.sort_unstable_by_key(|hold| std::cmp::Reverse((hold.until, hold.owner)));
    window.last.truncate(2);
}
