//! A station's outputs and state as short lines of text, for the tables and the scenarios.

use std::sync::LazyLock;

use super::super::attempt::{Attempt, Hint, LeaseUse, Place, Purpose};
use super::super::held_lease::HeldLease;
use super::super::owners::Owners;
use super::super::progress::Progress;
use super::super::turns::Turn;
use super::super::{Action, Output, Request, Station, TurnId};
use super::rig::{SECRET, detached};
use crate::{
    AcquireError, Admission, BackendError, Certainty, Fairness, Holder, LossReason, Mode, Moment, NameKind, Owner,
    Queueing, Refusal, Released, TokenRange, Ttl, Width,
};

/// `o1` for the first owner that a station draws, `o2` for the next; `t` for that of a ticket.
pub(super) fn owner(owner: Owner) -> String {
    static DRAWN: LazyLock<Vec<Owner>> = LazyLock::new(|| {
        let owners = Owners::new(SECRET);
        _ = owners.seed();
        (0..100).map(|_| owners.draw()).collect()
    });
    if owner == detached() {
        return "t".to_owned();
    }
    let index = DRAWN.iter().position(|drawn| *drawn == owner).expect("a station here drew it");
    format!("o{}", index + 1)
}

pub(super) fn output(now: Moment, output: &Output) -> String {
    match output {
        Output::Admit { turn, hold } => {
            let (token, left) = (hold.token(), after(now, hold.valid_until()));
            format!("admit {}: token {token}, valid for {left}", turn.0)
        }
        Output::Refuse { turn, refusal } => format!("refuse {}: {}", turn.0, refused(refusal)),
        Output::Replaced { turn, result: Ok(hold) } => {
            let (token, left) = (hold.token(), after(now, hold.valid_until()));
            format!("replaced {}: token {token}, valid for {left}", turn.0)
        }
        Output::Replaced { turn, result: Err(refusal) } => format!("replaced {}: {}", turn.0, refused(refusal)),
        Output::Lose { turn, reason } => format!("lose {}: {}", turn.0, loss(reason)),
        Output::Ended { turn, result: Ok(Released::Released) } => format!("ended {}: released", turn.0),
        Output::Ended { turn, result: Ok(Released::Left | Released::NotHeld) } => {
            format!("ended {}: lost before, not held", turn.0)
        }
        Output::Ended { turn, result: Err(error) } => format!("ended {}: {}", turn.0, failed(error)),
        Output::Detached(turn) => format!("detached {}", turn.0),
        Output::Run(action) => run(action),
        Output::StartRenewal { lease, admission: Admission { asked_at, valid_for, .. } } => {
            format!(
                "start renewal {}: {}ms, asked {} ago",
                owner(lease.owner),
                valid_for.as_millis(),
                after(*asked_at, now)
            )
        }
        Output::RenewNow(whose) => format!("renew {}", owner(*whose)),
        Output::StopRenewal(whose) => format!("stop renewal {}", owner(*whose)),
        Output::EndSession => "end the session".to_owned(),
    }
}

/// What is usual is left out: a ttl of 30 s, one token, a place in the queue, a second to answer, claims that were answered.
fn run(action: &Action) -> String {
    let (id, within) = (action.id.0, action.within.as_millis());
    let within = if within == 1000 { String::new() } else { format!(", within {within}ms") };
    match &action.request {
        Request::Acquire(claim) => {
            let ttl =
                if claim.terms.ttl == Ttl::DEFAULT { String::new() } else { format!(", ttl {}", claim.terms.ttl) };
            let width =
                if claim.width == Width::ONE { String::new() } else { format!(", width {}", claim.width.get()) };
            let floor = claim.floor.map_or_else(String::new, |floor| format!(", above {floor}"));
            let place = if claim.queueing == Queueing::Wanted { "" } else { ", no place" };
            let fairness = if claim.fairness == Fairness::Fair { "" } else { ", barging" };
            let old = claim.replaces.map_or_else(String::new, |old| format!(" in place of {}", owner(old)));
            let (whose, mode) = (owner(claim.owner), mode(claim.terms.mode));
            format!("run #{id}: acquire {whose}{old}{mode}{ttl}{width}{floor}{place}{fairness}{within}")
        }
        Request::Release(request) => {
            let keep = request.keep.map_or_else(String::new, |keep| format!(", keep for {}ms", keep.as_millis()));
            let (whose, certainty) = (owner(request.owner), certainty(request.certainty));
            format!("run #{id}: release {whose}{certainty}{keep}{within}")
        }
    }
}

fn mode(mode: Mode) -> String {
    match mode {
        Mode::Exclusive => String::new(),
        Mode::Shared => ", shared".to_owned(),
        Mode::Permits { count, limit, .. } => format!(", {count} of {limit} permits"),
    }
}

fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Answered => "",
        Certainty::Unknown => ", claim may be in flight",
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
        Refusal::Error(AcquireError::TicketOver { .. }) => "the ticket is over".to_owned(),
        Refusal::Error(AcquireError::Backend(error)) => failed(error),
        Refusal::Error(AcquireError::Closed) => "closed".to_owned(),
        Refusal::Error(AcquireError::Cancelled) => "cancelled".to_owned(),
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
        LossReason::Revoked { .. } => "revoked",
        LossReason::NotHeld => "not held",
        LossReason::MaxHold => "max_hold",
        LossReason::Closed => "closed",
    }
}

/// The station's state: its leases, its attempts, the waiters in the queue, and the releases in flight.
pub(super) fn state(now: Moment, station: &Station) -> String {
    let leases = station.leases.iter().map(|held| holding(now, station, held));
    let attempts = || station.attempts.iter();
    let asks = attempts().filter(|attempt| attempt.may_queue()).map(|attempt| asking(now, attempt));
    let adopts = attempts().filter_map(|attempt| adopting(now, attempt));
    let parts: Vec<_> = leases.chain(asks).chain(adopts).collect();
    let mut text = match (parts.is_empty(), station.closed) {
        (false, _) => parts.join("; "),
        (true, false) => "Idle".to_owned(),
        (true, true) => "Closed".to_owned(),
    };
    for (index, waiter) in station.waiters.iter().enumerate() {
        let joint = if index == 0 { "; queue: " } else { ", " };
        text.push_str(&format!("{joint}{}", waiter.join.turn.0));
    }
    for pending in station.releases.0.iter() {
        let progress = match pending.progress {
            Progress::InFlight(id, _) => format!("#{}", id.0),
            Progress::Due(at) => format!("again in {}", after(now, at)),
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

fn asking(now: Moment, attempt: &Attempt) -> String {
    let place = match attempt.place {
        Place::Outside => "outside",
        Place::Queued => "in the queue",
    };
    let whose = attempt.turn().map_or_else(String::new, |turn| format!(" for {}", turn.0));
    let place = format!("{place}{whose} as {}{}", owner(attempt.owner), unanswered(attempt.certainty));
    match attempt.progress {
        Progress::InFlight(id, _) => format!("Asking {place}, claim #{}{}", id.0, hint(&attempt.hint)),
        Progress::Due(at) => format!("Waiting {place}, again in {}", after(now, at)),
    }
}

fn holding(now: Moment, station: &Station, held: &HeldLease) -> String {
    let unanswered = unanswered(held.certainty);
    let error = if held.last_error.is_some() { ", last renewal failed" } else { "" };
    let wanted = match (held.wanted, held.is_shared()) {
        (false, false) => String::new(),
        (true, false) => ", wanted".to_owned(),
        (false, true) => format!(", not wanted {} ago", after(held.wanted_as_of, now)),
        (true, true) => format!(", wanted {} ago", after(held.wanted_as_of, now)),
    };
    let asked = if held.refresh_asked_at.is_some() { ", a renewal asked for" } else { "" };
    let turn = |(id, turn): (TurnId, &Turn)| {
        let (token, left) = (turn.hold.token(), after(now, turn.hold.valid_until()));
        let slots = match held.lease.slots.get() {
            [] => String::new(),
            _ => format!(", slots {}", held.lease.slots),
        };
        format!("{} as {}, token {token}{slots}, for {left}", id.0, owner(held.lease.owner))
    };
    let turns: Vec<_> = held.turns.iter().map(turn).collect();
    let replacement = station.replacement_of(held.lease.owner).map_or_else(String::new, |new| replacing(now, new));
    let verb = if held.is_shared() { "Read" } else { "Held" };
    let is_adopted = held.usage == LeaseUse::Private && station.kind == NameKind::Lock;
    let adopted = if is_adopted { ", adopted," } else { "" };
    format!("{verb}{adopted} by {}{wanted}{asked}{unanswered}{error}{replacement}", turns.join(" and "))
}

fn replacing(now: Moment, new: &Attempt) -> String {
    let Purpose::Replace(replace) = &new.purpose else { return String::new() };
    let progress = match new.progress {
        Progress::InFlight(id, _) => format!("claim #{}", id.0),
        Progress::Due(at) => format!("again in {}", after(now, at)),
    };
    let unanswered = if replace.unanswered_until.is_some() { ", a claim unanswered" } else { "" };
    let old = if replace.old_is_gone.is_some() { ", the old one not held" } else { "" };
    format!("; replacing it as {}, {progress}{unanswered}{old}", owner(new.owner))
}

fn adopting(now: Moment, attempt: &Attempt) -> Option<String> {
    let Purpose::Adopt { turn, .. } = attempt.purpose else { return None };
    let whose = format!("Adopting for {} as {}", turn.0, owner(attempt.owner));
    Some(match attempt.progress {
        Progress::InFlight(id, _) => format!("{whose}, claim #{}", id.0),
        Progress::Due(at) => format!("{whose}{}, again in {}", unanswered(attempt.certainty()), after(now, at)),
    })
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
