//! Twins that answer otherwise than the rules.

use std::thread;
use std::time::Duration;

use lock_core::{Answer, BackendError, BlockingBackend, Claim, Holder};

use super::cover::{Breakage, WITHIN};
use super::holding::DrawsAnew;
use super::twins;

twins! {
    one_that_draws_new_tokens: DrawsAnew,
        caught by ["rules::requests_are_answered_as_the_rules_say"],
        spared by ["exclusion::a_second_owner_is_refused"];
    one_that_looks_before_it_takes: LooksBeforeItTakes,
        caught by ["rules::overlapping_requests_are_answered_as_a_sequence_of_them"],
        spared by ["rules::requests_are_answered_as_the_rules_say"];
}

/// Looks whether the lock is free, and then takes it, even if another client has taken it meanwhile.
#[derive(Default)]
struct LooksBeforeItTakes;

impl Breakage for LooksBeforeItTakes {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let was_free = store.holder(&claim.name, WITHIN)?.is_none();
        if was_free {
            thread::sleep(Duration::from_millis(1));
            if let Some(Holder::Leasehold { tokens, .. }) = store.holder(&claim.name, WITHIN)?.map(|entry| entry.holder)
            {
                store.revoke(&claim.name, tokens.low(), &claim.note, WITHIN)?;
            }
        }
        store.acquire(claim, WITHIN)
    }
}
