//! Requests that one function of the server answers alone: claims for exclusive locks, their releases, waiters that leave, and renewals.

use std::time::Duration;

use lock_core::{
    Answer, BackendError, Certainty, Claim, FencingToken, Holder, Invalid, Lease, Mode, Note, Queueing, ReleaseRequest,
    Released, Renewed, TokenRange,
};
use lock_rules::window;
use lock_rules::{PLACE_MAX, place_for};
use serde::{Deserialize, Serialize};

use crate::database::{Database, damaged};
use crate::session::Session;
use crate::wire::{Bell, ModeRow, micros};

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

/// The answer of `release`.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ReleasedRow {
    Released,
    Left,
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

impl<D: Database> Session<D> {
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
        answer.map(|answer| answer_of(claim, answer).map_err(damaged::<D>)).transpose()
    }

    /// Ends a hold or a place.
    pub(crate) async fn release(&mut self, key: &str, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let is_common =
            request.certainty == Certainty::Answered && request.keep.is_none() && request.terms.mode == Mode::Exclusive;
        if is_common {
            let (owner, within) = (request.owner.to_wire(), self.within().as_millis());
            let arguments = ReleaseArguments { name: key, owner, place_max: micros(PLACE_MAX), within };
            match self.call("release_1", &arguments).await? {
                Some(ReleasedRow::Released) => return Ok(Released::Released),
                Some(ReleasedRow::Left) => return Ok(Released::Left),
                None => {}
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
