//! Twins that answer otherwise than the rules.

use std::thread;
use std::time::Duration;

use lock_core::{
    Answer, BackendError, BlockingBackend, Claim, Fairness, Fenced, Holder, Lease, NameKind, Note, Queueing,
    ReleaseRequest, Released, Renewed,
};

use super::cover::{Breakage, WITHIN};
use super::holding::DrawsAnew;
use super::twins;

twins! {
    one_that_draws_new_tokens: DrawsAnew,
        caught by ["rules::requests_are_answered_as_the_rules_say"],
        spared by ["exclusion::a_second_owner_is_refused"];
    one_that_looks_before_it_takes: LooksBeforeItTakes,
        caught by [
            "rules::overlapping_requests_are_answered_as_a_sequence_of_them",
            "rules::pairs_are_answered_as_one_after_the_other"
        ],
        spared by ["rules::requests_are_answered_as_the_rules_say"];
    one_that_renews_what_it_saw: RenewsWhatItSaw,
        caught by ["rules::pairs_are_answered_as_one_after_the_other"],
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

/// Looks whether the lease is held, and then renews it, even if it has been released meanwhile.
#[derive(Default)]
struct RenewsWhatItSaw;

impl Breakage for RenewsWhatItSaw {
    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        let is_held = |lease: &Lease| Ok(store.fence(lease, WITHIN)? == Fenced::Acknowledged);
        let were_held: Vec<bool> = leases.iter().map(is_held).collect::<Result<_, BackendError>>()?;
        thread::sleep(Duration::from_millis(2));
        let mut answers = store.renew(leases, WITHIN)?;
        for ((lease, was_held), answer) in leases.iter().zip(were_held).zip(&mut answers) {
            if was_held && *answer == Renewed::NotHeld {
                let Lease { name, owner, terms, tokens, .. } = lease.clone();
                let (note, width) = (Note::from_wire("1@twin"), tokens.width());
                let (queueing, fairness) = (Queueing::Unwanted, Fairness::Barging);
                let claim = Claim {
                    name,
                    owner,
                    terms,
                    width,
                    floor: None,
                    note,
                    queueing,
                    replaces: None,
                    fairness,
                    kind: NameKind::Lock,
                };
                store.acquire(&claim, WITHIN)?;
                *answer = Renewed::Renewed { valid_for: terms.ttl.get(), wanted: false };
            }
        }
        Ok(answers)
    }

    /// Later than a renewal looks, and sooner than it acts.
    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        thread::sleep(Duration::from_micros(300));
        store.release(request, WITHIN)
    }
}
