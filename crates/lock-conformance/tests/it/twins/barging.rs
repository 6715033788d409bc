//! Twins that are wrong about who passes whom.

use lock_core::{Answer, BackendError, BlockingBackend, Claim, Fairness};

use super::cover::{Breakage, WITHIN};
use super::modes::{Overtakes, forced};
use super::twins;

twins! {
    one_that_makes_barging_claims_wait: AllAreFair,
        caught by [
            "barging::a_reader_passes_a_writer_that_waits", "barging::a_small_request_passes_a_large_one",
            "barging::a_claim_that_does_not_fit_takes_its_place", "barging::the_option_lets_readers_pass",
            "barging::the_option_lets_small_requests_pass"
        ],
        spared by ["barging::those_who_fit_are_served_first", "sharing::a_waiting_writer_is_not_overtaken"];
    one_that_lets_fair_claims_overtake: Overtakes,
        caught by ["barging::a_reader_passes_a_writer_that_waits", "barging::a_small_request_passes_a_large_one"],
        spared by ["barging::those_who_fit_are_served_first"];
    one_that_grants_whatever_is_barging: GrantsAllBarging,
        caught by [
            "barging::a_small_request_passes_a_large_one", "barging::a_claim_that_does_not_fit_takes_its_place",
            "barging::those_who_fit_are_served_first"
        ],
        spared by ["barging::a_reader_passes_a_writer_that_waits"];
}

#[derive(Default)]
struct AllAreFair;

impl Breakage for AllAreFair {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        store.acquire(&Claim { fairness: Fairness::Fair, ..claim.clone() }, WITHIN)
    }
}

/// Whether it fits or not.
#[derive(Default)]
struct GrantsAllBarging;

impl Breakage for GrantsAllBarging {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        match claim.fairness {
            Fairness::Barging if !matches!(answer, Answer::Granted { .. }) => forced(store, claim),
            Fairness::Barging | Fairness::Fair => Ok(answer),
        }
    }
}
