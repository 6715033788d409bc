//! What a station says and where it stands, as short lines of text: for the table and the scenarios.

use super::super::pending::Progress;
use super::super::state::{Attempt, Held, Hint, Place, State};
use super::super::{Action, Output, Request, Station};
use crate::{
    AcquireError, BackendError, Certainty, Ended, Holder, LossReason, Moment, Owner, Queueing, Refusal, TokenRange,
};

/// `o1` for the owner that the waiter of turn 1 brought along, `o1'` for its successor.
pub(super) fn owner(owner: Owner) -> String {
    let wire = owner.to_wire();
    let base = Owner::from_random([u8::from_str_radix(&wire[..2], 16).unwrap(); 16]);
    let number = |owner: Owner| u128::from_str_radix(&owner.to_wire(), 16).unwrap();
    let successions = usize::try_from(number(owner) - number(base)).unwrap();
    format!("o{}{}", u8::from_str_radix(&wire[..2], 16).unwrap(), "'".repeat(successions))
}

pub(super) fn output(now: Moment, output: &Output) -> String {
    match output {
        Output::Admit { turn, hold } => {
            let (token, left) = (hold.token(), after(now, hold.valid_until()));
            format!("admit {}: token {token}, valid for {left}", turn.0)
        }
        Output::Refuse { turn, refusal } => format!("refuse {}: {}", turn.0, refused(refusal)),
        Output::Lose { turn, reason } => format!("lose {}: {}", turn.0, loss(reason)),
        Output::Ended { turn, result: Ok(Ended::Released) } => format!("ended {}: released", turn.0),
        Output::Ended { turn, result: Ok(Ended::AlreadyLost(reason)) } => {
            format!("ended {}: lost before, {}", turn.0, loss(reason))
        }
        Output::Ended { turn, result: Err(error) } => format!("ended {}: {}", turn.0, failed(error)),
        Output::Run(action) => run(action),
        Output::Keep { lease, asked_at, valid_for } => {
            format!("keep {}: {}ms, asked {} ago", owner(lease.owner), valid_for.as_millis(), after(*asked_at, now))
        }
        Output::Forget(whose) => format!("forget {}", owner(*whose)),
    }
}

fn run(action: &Action) -> String {
    let (id, within) = (action.id.0, action.within.as_millis());
    match &action.request {
        Request::Acquire(claim) => {
            let queueing = match claim.queueing {
                Queueing::Wanted => "place wanted",
                Queueing::Unwanted => "no place",
            };
            let floor = claim.floor.map_or_else(String::new, |floor| format!(", above {floor}"));
            let (whose, ttl, width) = (owner(claim.owner), claim.terms.ttl, claim.width.get());
            format!("run #{id}: acquire {whose}, ttl {ttl}, width {width}{floor}, {queueing}, within {within}ms")
        }
        Request::Release(request) => {
            format!("run #{id}: release {}, {}, within {within}ms", owner(request.owner), certainty(request.certainty))
        }
    }
}

fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Answered => "all answered",
        Certainty::Unknown => "claim may be under way",
    }
}

fn refused(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Busy { holder } => format!("busy, {}", holder_text(holder.as_ref())),
        Refusal::Error(AcquireError::TimedOut { waited, holder, .. }) => {
            format!("timed out after {}ms, {}", waited.as_millis(), holder_text(holder.as_ref()))
        }
        Refusal::Error(AcquireError::Forgotten { token, floor, .. }) => {
            format!("the store forgot, token {token} after {floor}")
        }
        Refusal::Error(AcquireError::Backend(error)) => failed(error),
        Refusal::Error(AcquireError::Closed) => "closed".to_owned(),
        Refusal::Error(AcquireError::Invalid(invalid)) => invalid.to_string(),
    }
}

fn holder_text(holder: Option<&Holder>) -> String {
    match holder {
        Some(Holder::Leasehold { tokens, .. }) => format!("held under {}", range(*tokens)),
        Some(Holder::Foreign) => "held by something foreign".to_owned(),
        None => "holder not known".to_owned(),
    }
}

fn range(tokens: TokenRange) -> String {
    if tokens.low() == tokens.high() { format!("token {tokens}") } else { format!("tokens {tokens}") }
}

fn failed(error: &BackendError) -> String {
    format!("error {:?}, effect {:?}", error.kind(), error.effect())
}

fn loss(reason: &LossReason) -> &'static str {
    match reason {
        LossReason::Expired(None) => "expired",
        LossReason::Expired(Some(_)) => "expired, renewal failed",
        LossReason::NotHeld => "not held",
        LossReason::MaxHold => "max_hold",
        LossReason::Closed => "closed",
    }
}

/// Where the station stands: the state, who waits in line, which releases are under way.
pub(super) fn state(now: Moment, station: &Station) -> String {
    let mut text = match &station.state {
        State::Idle => "Idle".to_owned(),
        State::Asking(asker, asked) => format!("Asking {}, claim #{}{}", attempt(asker), asked.id.0, hint(&asked.hint)),
        State::Waiting(asker, again_at) => format!("Waiting {}, again in {}", attempt(asker), after(now, *again_at)),
        State::Held(held) => holding(now, held),
        State::Closed => "Closed".to_owned(),
    };
    for (index, waiter) in station.line.iter().enumerate() {
        let joint = if index == 0 { "; line: " } else { ", " };
        text.push_str(&format!("{joint}{}", waiter.join.turn.0));
    }
    for pending in &station.pending_releases.0 {
        let progress = match pending.progress {
            Progress::UnderWay(id) => format!("#{}", id.0),
            Progress::AgainAt(at) => format!("again in {}", after(now, at)),
        };
        text.push_str(&format!("; releasing {}, {progress}", owner(pending.request.owner)));
    }
    text
}

fn hint(hint: &Hint) -> &'static str {
    match hint {
        Hint::Nothing => "",
        Hint::MayBeFree => ", may be free meanwhile",
        Hint::Granted(_) => ", granted meanwhile or before",
    }
}

fn attempt(attempt: &Attempt) -> String {
    let answer = match attempt.place {
        Place::Outside => "outside",
        Place::Queued => "in the queue",
    };
    format!("{answer} as {}{}", owner(attempt.owner), unanswered(attempt.certainty))
}

fn holding(now: Moment, held: &Held) -> String {
    let asked = held.asked.as_ref().map_or_else(String::new, |asked| format!(", claim #{} under way", asked.id.0));
    let unanswered = unanswered(held.certainty);
    let error = if held.last_error.is_some() { ", last renewal failed" } else { "" };
    let (turn, whose, left) = (held.turn.0, owner(held.lease.owner), after(now, held.turn_until()));
    format!("Held by {turn} as {whose}, token {}, for {left}{asked}{unanswered}{error}", held.hold.token())
}

fn unanswered(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Answered => "",
        Certainty::Unknown => ", a claim unanswered",
    }
}

fn after(now: Moment, then: Moment) -> String {
    format!("{}ms", then.since(now).as_millis())
}
