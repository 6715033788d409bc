//! Twins that are wrong about the limit of a semaphore.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use lock_core::limit::{Act, Request, Usage};
use lock_core::{Answer, BackendError, BlockingBackend, Claim, Holder, Lease, Limit, Slots};

use super::cover::{Breakage, WITHIN, regrant};
use super::twins;

twins! {
    one_that_never_sets_a_limit: NeverSets,
        caught by [
            "limits::a_raised_limit_serves_those_who_wait",
            "limits::a_limit_that_was_replaced_stands_for_the_one_in_force", "limits::a_deployment_changes_the_limit",
            "limits::a_place_that_a_limit_took_away_is_taken_anew"
        ],
        spared by ["limits::a_lock_has_no_limit"];
    one_that_takes_permits_away: TakesAway,
        caught by ["limits::a_lowered_limit_takes_nothing_away", "limits::a_lease_goes_on_under_another_limit"],
        spared by ["limits::a_raised_limit_serves_those_who_wait"];
    one_that_gives_the_next_slots: GivesTheNextSlots,
        caught by ["limits::slots_stay_below_the_limit_in_force"],
        spared by ["limits::permits_are_counted"];
    one_that_forgets_the_limit_that_the_caller_knew: ForgetsTheKnown,
        caught by [
            "limits::a_limit_that_was_replaced_stands_for_the_one_in_force",
            "limits::a_limit_that_was_set_outlives_the_holders"
        ],
        spared by ["limits::a_raised_limit_serves_those_who_wait"];
    one_that_knows_a_limit_while_it_is_used: OnlyWhileUsed,
        caught by ["limits::a_limit_that_was_set_outlives_the_holders"],
        spared by ["limits::a_lowered_limit_takes_nothing_away"];
    one_that_remembers_seven_earlier_limits: RemembersSeven,
        caught by ["limits::the_eight_latest_limits_that_were_replaced_are_known"],
        spared by ["limits::a_limit_that_was_replaced_stands_for_the_one_in_force"];
    one_that_lets_the_impossible_wait: LetsTheImpossibleWait,
        caught by [
            "limits::a_claim_above_the_limit_is_refused_and_blocks_nobody",
            "limits::a_waiter_that_can_never_be_served_gets_an_error"
        ],
        spared by ["limits::a_lowered_limit_takes_nothing_away"];
    one_that_sets_a_limit_once: SetsOnce,
        caught by ["limits::a_limit_can_be_set_again"],
        spared by ["limits::a_raised_limit_serves_those_who_wait"];
    one_that_changes_locks: ChangesLocks,
        caught by ["limits::a_lock_has_no_limit"],
        spared by ["limits::permits_are_counted"];
    one_that_serves_every_look: ServesEveryLook,
        caught by ["tickets::permits_are_not_adopted_under_another_limit"],
        spared by ["limits::a_deployment_changes_the_limit"];
    one_that_counts_one_more: CountsOneMore,
        caught by ["limits::permits_are_counted", "limits::wrong_limits_are_invalid"],
        spared by ["limits::a_lock_has_no_limit"];
}

fn ask(store: &dyn BlockingBackend, request: &Request) -> Result<Usage, BackendError> {
    store.limit(request, WITHIN)
}

fn look(store: &dyn BlockingBackend, request: &Request) -> Result<Usage, BackendError> {
    ask(store, &Request { act: Act::Look, ..request.clone() })
}

/// The answer to a request that was not carried out.
fn only_said(store: &dyn BlockingBackend, request: &Request) -> Result<Usage, BackendError> {
    match request.act {
        Act::Set(limit) => Ok(Usage { limit, used: look(store, request).map_or(0, |usage| usage.used) }),
        Act::Look => ask(store, request),
    }
}

/// Serves a claim that knows an earlier limit than the seven latest like one that knows none of them.
#[derive(Default)]
struct RemembersSeven(Mutex<Vec<Limit>>);

impl Breakage for RemembersSeven {
    fn limit(&self, store: &dyn BlockingBackend, request: &Request) -> Result<Usage, BackendError> {
        self.0.lock().unwrap().push(request.known);
        ask(store, request)
    }

    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let known = self.0.lock().unwrap();
        let forgotten = known.len().checked_sub(8).is_some_and(|at| claim.terms.mode.limit() == Some(known[at]));
        let unheard_of = Limit::new(1_000_000).unwrap();
        let mode = if forgotten { claim.terms.mode.under(unheard_of) } else { claim.terms.mode };
        store.acquire(&claim.in_mode(mode), WITHIN)
    }
}

#[derive(Default)]
struct NeverSets;

impl Breakage for NeverSets {
    fn limit(&self, store: &dyn BlockingBackend, request: &Request) -> Result<Usage, BackendError> {
        look(store, request)?;
        only_said(store, request)
    }
}

/// Until no more than the limit are held.
#[derive(Default)]
struct TakesAway;

impl Breakage for TakesAway {
    fn limit(&self, store: &dyn BlockingBackend, request: &Request) -> Result<Usage, BackendError> {
        let usage = ask(store, request)?;
        while look(store, request)?.used > usage.limit.get() {
            let Holder::Leasehold { tokens, .. } = store.holder(&request.name, WITHIN)?.unwrap().holder else {
                panic!("a twin holds it")
            };
            store.revoke(&request.name, tokens.low(), &lock_host::note("").unwrap(), WITHIN)?;
        }
        Ok(usage)
    }
}

#[derive(Default)]
struct GivesTheNextSlots;

impl Breakage for GivesTheNextSlots {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let next = |lease: &Lease| Slots::new(lease.slots.get().iter().map(|slot| slot + 1));
        Ok(regrant(store.acquire(claim, WITHIN)?, |lease, valid_for| {
            (Lease { slots: next(&lease), ..lease }, valid_for)
        }))
    }
}

#[derive(Default)]
struct ForgetsTheKnown;

impl Breakage for ForgetsTheKnown {
    fn limit(&self, store: &dyn BlockingBackend, request: &Request) -> Result<Usage, BackendError> {
        let known = if let Act::Set(limit) = request.act { limit } else { request.known };
        ask(store, &Request { known, ..request.clone() })
    }
}

#[derive(Default)]
struct OnlyWhileUsed;

impl Breakage for OnlyWhileUsed {
    fn limit(&self, store: &dyn BlockingBackend, request: &Request) -> Result<Usage, BackendError> {
        if look(store, request).is_ok_and(|usage| usage.used == 0) {
            return only_said(store, request);
        }
        ask(store, request)
    }
}

#[derive(Default)]
struct LetsTheImpossibleWait;

impl Breakage for LetsTheImpossibleWait {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        match store.acquire(claim, WITHIN) {
            Err(error) if error.to_string().contains("asked for") => {
                Ok(Answer::Busy { remaining: None, holder: Holder::Foreign, drawn: None })
            }
            answer => answer,
        }
    }
}

#[derive(Default)]
struct SetsOnce(AtomicBool);

impl Breakage for SetsOnce {
    fn limit(&self, store: &dyn BlockingBackend, request: &Request) -> Result<Usage, BackendError> {
        if matches!(request.act, Act::Set(_)) && self.0.swap(true, Ordering::Relaxed) {
            return only_said(store, request);
        }
        ask(store, request)
    }
}

#[derive(Default)]
struct ChangesLocks;

impl Breakage for ChangesLocks {
    fn limit(&self, store: &dyn BlockingBackend, request: &Request) -> Result<Usage, BackendError> {
        ask(store, request).or_else(|error| only_said(store, request).map_err(|_| error))
    }
}

/// Whatever limit the caller knows.
#[derive(Default)]
struct ServesEveryLook;

impl Breakage for ServesEveryLook {
    fn limit(&self, store: &dyn BlockingBackend, request: &Request) -> Result<Usage, BackendError> {
        ask(store, request).or(Ok(Usage { limit: request.known, used: 0 }))
    }
}

#[derive(Default)]
struct CountsOneMore;

impl Breakage for CountsOneMore {
    fn limit(&self, store: &dyn BlockingBackend, request: &Request) -> Result<Usage, BackendError> {
        ask(store, request).map(|usage| Usage { used: usage.used + 1, ..usage })
    }
}
