//! The requests: load, decide, commit, and again after a conflict.

use lock_core::inspect::Revoked;
use lock_core::latch::{self, LatchState};
use lock_core::limit::{Act, Request, Usage};
use lock_core::{
    Answer, Certainty, Claim, Fenced, FencingToken, Lease, LockName, Note, ReleaseRequest, Released, Renewed,
};

use super::decision::{Decision, Missing, Presence};
use super::latches::LatchDecision;
use super::{Committed, Needs, WindowStore};
use crate::latch::Change;
use crate::refusal::Undone;

/// A request that goes on until it is answered. Its caller sets the time limit, by dropping it.
async fn decide<S: WindowStore, T>(
    store: &S,
    name: &LockName,
    (mut needs, presence): (Needs, Presence),
    request: impl Fn(&mut Decision<S>) -> Result<T, Undone<Missing>>,
) -> Result<T, Undone<S::Error>> {
    loop {
        let window = store.load(name, needs.clone()).await?;
        if let Some(sweep) = window.sweep() {
            store.commit(name, sweep).await?;
            continue;
        }
        let mut decision = Decision::new(window, presence);
        let answer = match request(&mut decision) {
            Ok(answer) => answer,
            Err(Undone::Refused(refusal)) => return Err(Undone::Refused(refusal)),
            Err(Undone::Failed(Missing(wider))) => {
                needs = wider;
                continue;
            }
        };
        let Some(commit) = decision.commit() else { return Ok(answer) };
        if store.commit(name, commit).await? == Committed::Written {
            return Ok(answer);
        }
    }
}

/// As [`acquire`](crate::acquire) has it.
///
/// # Errors
/// Those of [`acquire`](crate::acquire), and of the store.
///
/// # Cancel safety
/// A dropped call may have taken effect.
pub async fn acquire<S: WindowStore>(store: &S, client: S::Client, claim: &Claim) -> Result<Answer, Undone<S::Error>> {
    let needs = (Needs::of_claim(claim), Presence::Unsure);
    decide(store, &claim.name, needs, |rows| crate::acquire(rows, client.clone(), claim)).await
}

/// As [`renew`](crate::renew) has it, for one lease.
///
/// # Errors
/// Those of the store.
///
/// # Cancel safety
/// A dropped call may have taken effect.
pub async fn renew<S: WindowStore>(store: &S, lease: &Lease) -> Result<Renewed, Undone<S::Error>> {
    let needs = (Needs::of_lease(lease), Presence::Known);
    decide(store, &lease.name, needs, |rows| Ok(crate::renew(rows, lease)?)).await
}

/// As [`release`](crate::release) has it.
///
/// # Errors
/// Those of [`release`](crate::release), and of the store.
///
/// # Cancel safety
/// A dropped call may have taken effect.
pub async fn release<S: WindowStore>(store: &S, request: &ReleaseRequest) -> Result<Released, Undone<S::Error>> {
    let presence = match request.certainty {
        Certainty::Answered => Presence::Known,
        Certainty::Unknown => Presence::Unsure,
    };
    let needs = (Needs::of_release(request), presence);
    decide(store, &request.name, needs, |rows| crate::release(rows, request)).await
}

/// As [`fence`](crate::fence) has it.
///
/// # Errors
/// Those of the store.
///
/// # Cancel safety
/// Changes nothing.
pub async fn fence<S: WindowStore>(store: &S, lease: &Lease) -> Result<Fenced, Undone<S::Error>> {
    let needs = (Needs::of_lease(lease), Presence::Known);
    decide(store, &lease.name, needs, |rows| Ok(crate::fence(rows, lease)?)).await
}

/// As [`limit`](crate::limit) has it.
///
/// # Errors
/// Those of [`limit`](crate::limit), and of the store.
///
/// # Cancel safety
/// A dropped call may have taken effect.
pub async fn limit<S: WindowStore>(store: &S, request: &Request) -> Result<Usage, Undone<S::Error>> {
    let above = match request.act {
        Act::Look => None,
        Act::Set(limit) => Some(limit.get()),
    };
    let needs = Needs { above, places: 2, ..Needs::default() };
    decide(store, &request.name, (needs, Presence::Known), |rows| crate::limit(rows, request)).await
}

/// As [`revoke`](crate::revoke) has it.
///
/// # Errors
/// Those of the store.
///
/// # Cancel safety
/// A dropped call may have taken effect.
pub async fn revoke<S: WindowStore>(
    store: &S,
    name: &LockName,
    token: FencingToken,
    by: &Note,
) -> Result<Revoked, Undone<S::Error>> {
    let needs = Needs { token: Some(token), places: 2, ..Needs::default() };
    decide(store, name, (needs, Presence::Known), |rows| Ok(crate::revoke(rows, name, token, by)?)).await
}

/// As [`ask_latch`](crate::ask_latch) has it.
///
/// # Errors
/// Those of the store.
///
/// # Cancel safety
/// A dropped call may have taken effect.
pub async fn ask_latch<S: WindowStore>(
    store: &S,
    request: &latch::Request,
) -> Result<(Option<LatchState>, Change), S::Error> {
    let arrival = match &request.act {
        latch::Act::Arrive { id, .. } => Some(id),
        latch::Act::Make { .. } | latch::Act::Expect { .. } | latch::Act::Reset { .. } | latch::Act::Look { .. } => {
            None
        }
    };
    loop {
        let window = store.load_latch(&request.name, arrival).await?;
        let mut decision = LatchDecision { window, commit: None };
        let Ok(answer) = crate::ask_latch(&mut decision, request);
        let Some(commit) = decision.commit else { return Ok(answer) };
        if store.commit_latch(&request.name, commit).await? == Committed::Written {
            return Ok(answer);
        }
    }
}
