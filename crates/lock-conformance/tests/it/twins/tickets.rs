//! Twins that are wrong about leases that are detached and adopted.

use std::collections::BTreeMap;
use std::sync::Mutex;

use lock_core::{
    Answer, BackendError, BlockingBackend, Claim, ErrorKind, Lease, Owner, Renewed, Terms, TokenRange, Ttl, Width,
};

use super::cover::{Breakage, WITHIN, regrant};
use super::kinds::NobodyLoses;
use super::lasting::RenewsNothing;
use super::replacing::{InTwoSteps, OnlyOnce};
use super::twins;

twins! {
    one_that_lets_two_adopt_a_ticket: AdoptsTwice,
        caught by ["tickets::a_ticket_is_adopted_once"],
        spared by ["tickets::a_ticket_that_is_not_adopted_ends_with_its_ttl"];
    one_that_grants_a_free_lock_to_those_who_adopt: GrantsWhatIsFree,
        caught by ["tickets::a_ticket_of_a_released_lock_is_over"],
        spared by ["tickets::those_who_wait_keep_their_places"];
    one_that_adopts_in_two_steps: InTwoSteps,
        caught by [
            "tickets::those_who_wait_keep_their_places", "tickets::a_reader_goes_on_beside_others",
            "tickets::permits_go_on_with_their_slots"
        ],
        spared by ["tickets::a_detached_lock_goes_on_under_a_higher_token"];
    one_that_draws_no_token_for_an_adoption: DrawsNothing,
        caught by ["tickets::a_detached_lock_goes_on_under_a_higher_token"],
        spared by ["tickets::a_lost_lock_is_not_detached"];
    one_that_keeps_what_was_renewed: RenewsForLong,
        caught by ["tickets::a_ticket_that_is_not_adopted_ends_with_its_ttl"],
        spared by ["tickets::a_ticket_is_adopted_once"];
    one_whose_renewals_do_nothing: RenewsNothing,
        caught by ["tickets::an_adopted_lease_is_renewed"],
        spared by ["tickets::a_ticket_is_adopted_once"];
    one_that_takes_all_leases_for_held: NobodyLoses,
        caught by ["tickets::a_lost_lock_is_not_detached"],
        spared by ["tickets::a_ticket_is_adopted_once"];
    one_that_replaces_once: OnlyOnce,
        caught by ["tickets::an_adoption_survives_lost_answers"],
        spared by ["tickets::a_ticket_is_adopted_once"];
}

/// Takes the last one who had the ticket for the one who made it.
#[derive(Default)]
struct AdoptsTwice;

/// Who has each lease now, whichever client asks.
static ADOPTED: Mutex<BTreeMap<Owner, Owner>> = Mutex::new(BTreeMap::new());

impl Breakage for AdoptsTwice {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let Some(old) = claim.replaces else { return store.acquire(claim, WITHIN) };
        let present = ADOPTED.lock().unwrap().insert(old, claim.owner).filter(|owner| *owner != claim.owner);
        store.acquire(&Claim { replaces: Some(present.unwrap_or(old)), ..claim.clone() }, WITHIN)
    }
}

#[derive(Default)]
struct GrantsWhatIsFree;

impl Breakage for GrantsWhatIsFree {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        match store.acquire(claim, WITHIN) {
            Err(error) if error.kind() == ErrorKind::NotHeld => {
                store.acquire(&Claim { replaces: None, ..claim.clone() }, WITHIN)
            }
            answer => answer,
        }
    }
}

#[derive(Default)]
struct DrawsNothing;

impl Breakage for DrawsNothing {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        let tokens = TokenRange::above(0, Width::ONE).unwrap();
        Ok(match claim.replaces {
            Some(_) => regrant(answer, |lease, valid_for| (Lease { tokens, ..lease }, valid_for)),
            None => answer,
        })
    }
}

/// Renews for longer than it says.
#[derive(Default)]
struct RenewsForLong;

impl Breakage for RenewsForLong {
    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        let long = |lease: &Lease| Lease { terms: Terms { ttl: Ttl::MAX, ..lease.terms }, ..lease.clone() };
        store.renew(&leases.iter().map(long).collect::<Vec<_>>(), WITHIN)?;
        Ok(leases.iter().map(|lease| Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted: false }).collect())
    }
}
