//! Twins that are wrong about time and about tokens.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lock_conformance::{Facade, Harness};
use lock_core::{Answer, BackendError, BlockingBackend, Claim, Lease, Renewed, Terms, TokenRange, Ttl};

use super::cover::{Breakage, Stores, WITHIN, regrant};
use super::twins;

twins! {
    one_that_keeps_leases_for_less_than_it_says: KeepsAQuarter,
        caught by [
            "time::an_unrenewed_lease_ends", "time::a_loss_is_noticed_before_the_store_lets_go",
            "ownership::asking_again_re_arms_the_ttl"
        ],
        spared by ["exclusion::a_second_owner_is_refused", "time::no_grant_is_longer_than_asked"];
    one_whose_leases_never_end: NeverEnds,
        caught by [
            "time::an_unrenewed_lease_ends", "time::a_late_renewal_is_refused", "fencing::tokens_rise_over_expiry",
            "truth::what_is_over_is_not_shown"
        ],
        spared by ["exclusion::a_second_owner_is_refused"];
    one_that_grants_for_longer_than_asked: GrantsForLonger,
        caught by ["time::no_grant_is_longer_than_asked"],
        spared by ["exclusion::a_second_owner_is_refused"];
    one_whose_renewals_do_nothing: RenewsNothing,
        caught by ["time::a_renewal_counts_from_now", "time::renewal_outlives_the_ttl"],
        spared by ["time::an_unrenewed_lease_ends"];
    one_whose_tokens_repeat: TokensRepeat,
        caught by [
            "fencing::tokens_rise_over_releases", "fencing::tokens_rise_over_expiry",
            "fencing::tokens_rise_for_each_name_whoever_asks", "fencing::a_width_draws_so_many_tokens"
        ],
        spared by ["waiting::without_a_wish_no_place_is_kept"];
    one_that_obeys_low_floors: ObeysFloors,
        caught by ["fencing::a_floor_never_lowers_tokens"],
        spared by ["fencing::tokens_rise_over_releases"];
    one_that_restarts_with_nothing_and_does_not_see_it: StartsAnew,
        caught by [
            "fencing::tokens_rise_over_a_restart_with_data", "fencing::tokens_rise_over_a_restart_without_data",
            "failure::holds_survive_a_restart_with_data"
        ],
        spared by ["fencing::tokens_rise_over_releases", "fencing::a_store_that_forgot_is_not_believed"];
}

/// Asks the store for another ttl than its clients asked for, who do not learn of it.
fn with_ttl(store: &dyn BlockingBackend, claim: &Claim, ttl: Ttl) -> Result<Answer, BackendError> {
    let answer = store.acquire(&Claim { terms: Terms::exclusive(ttl), ..claim.clone() }, WITHIN)?;
    Ok(regrant(answer, |lease, _| (Lease { terms: claim.terms, ..lease }, claim.terms.ttl.get())))
}

/// Keeps leases for a quarter of the time that it says.
#[derive(Default)]
struct KeepsAQuarter;

impl Breakage for KeepsAQuarter {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        with_ttl(store, claim, Ttl::new(claim.terms.ttl.get() / 4).unwrap_or(Ttl::MIN))
    }
}

/// Leases never end.
#[derive(Default)]
struct NeverEnds;

impl Breakage for NeverEnds {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        with_ttl(store, claim, Ttl::MAX)
    }
}

/// Promises a second more than was asked for.
#[derive(Default)]
struct GrantsForLonger;

impl Breakage for GrantsForLonger {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        Ok(regrant(answer, |lease, valid_for| (lease, valid_for + Duration::from_secs(1))))
    }
}

/// Says that it moved the end of a lease, and did not.
#[derive(Default)]
pub(super) struct RenewsNothing;

impl Breakage for RenewsNothing {
    fn renew(&self, _store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        Ok(leases.iter().map(|lease| Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted: false }).collect())
    }
}

/// Every grant has the same tokens.
#[derive(Default)]
struct TokensRepeat;

impl Breakage for TokensRepeat {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let tokens = TokenRange::above(6, claim.width).unwrap();
        Ok(regrant(store.acquire(claim, WITHIN)?, |lease, valid_for| (Lease { tokens, ..lease }, valid_for)))
    }
}

/// Grants the tokens after the floor of a claim, even if higher ones were granted before.
#[derive(Default)]
struct ObeysFloors;

impl Breakage for ObeysFloors {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        Ok(regrant(answer, |lease, valid_for| match claim.floor {
            Some(floor) => (Lease { tokens: TokenRange::above(floor.get(), claim.width).unwrap(), ..lease }, valid_for),
            None => (lease, valid_for),
        }))
    }
}

/// Comes back from a restart with nothing, whether or not it had data.
#[derive(Default)]
struct StartsAnew;

impl Breakage for StartsAnew {
    fn reach(stores: &Stores, _colour: Facade) -> Arc<dyn BlockingBackend> {
        if stores.events.restarted.load(Ordering::SeqCst) {
            stores.other.blocking_backend()
        } else {
            stores.memory.blocking_backend()
        }
    }
}
