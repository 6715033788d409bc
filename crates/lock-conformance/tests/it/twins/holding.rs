//! Twins that are wrong about who holds what: exclusion and ownership.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use lock_core::{
    Answer, BackendError, BlockingBackend, Certainty, Claim, Fairness, Fenced, Holder, Lease, NameKind, Queueing,
    ReleaseRequest, Released, Renewed, Terms, TokenRange, Ttl, Width,
};

use super::cover::{Breakage, WITHIN, regrant};
use super::twins;

twins! {
    one_that_grants_to_everybody: GrantsToEverybody,
        caught by [
            "exclusion::a_second_owner_is_refused", "exclusion::racing_claims_have_one_winner",
            "exclusion::racing_clients_never_hold_together", "waiting::a_try_is_answered_at_once"
        ],
        spared by ["fencing::tokens_rise_over_releases"];
    one_that_loses_a_refusal_among_many: LosesARefusal,
        caught by ["exclusion::requests_in_flight_together_have_their_own_answers"],
        spared by ["exclusion::a_second_owner_is_refused", "exclusion::names_are_independent"];
    one_that_loses_a_release_among_many: LosesARelease,
        caught by ["exclusion::requests_in_flight_together_have_their_own_answers"],
        spared by ["ownership::a_second_release_is_harmless", "exclusion::names_are_independent"];
    one_that_has_one_lock_for_all_names: Folds<AllNames>,
        caught by ["exclusion::names_are_independent"],
        spared by ["exclusion::a_second_owner_is_refused"];
    one_that_folds_case: Folds<Case>,
        caught by ["exclusion::names_are_compared_byte_by_byte"],
        spared by ["exclusion::names_are_independent"];
    one_that_cuts_names_at_a_colon: Folds<Colon>,
        caught by ["exclusion::names_that_look_like_keys_of_others_are_independent"],
        spared by ["exclusion::names_are_independent", "exclusion::names_are_compared_byte_by_byte"];
    one_that_releases_the_locks_of_strangers: ReleasesStrangers,
        caught by ["ownership::a_stranger_cannot_release", "ownership::a_second_release_is_harmless"],
        spared by ["exclusion::a_second_owner_is_refused", "time::an_unrenewed_lease_ends"];
    one_whose_releases_do_nothing: ReleasesNothing,
        caught by [
            "exclusion::names_are_independent", "waiting::a_release_wakes_a_waiter_long_before_the_ttl",
            "facades::the_other_facade_is_woken", "truth::what_was_given_up_first_is_free_first"
        ],
        spared by ["exclusion::a_second_owner_is_refused"];
    one_that_renews_for_strangers: RenewsForAnybody,
        caught by ["ownership::a_stranger_cannot_renew"],
        spared by ["ownership::a_stranger_cannot_release", "time::a_renewal_counts_from_now"];
    one_whose_renewals_create: RenewalCreates,
        caught by ["ownership::a_renewal_never_creates", "time::a_late_renewal_is_refused"],
        spared by ["ownership::a_stranger_cannot_release"];
    one_that_answers_in_another_order: AnswersBackwards,
        caught by ["ownership::renewals_are_answered_in_their_order"],
        spared by ["time::a_renewal_counts_from_now"];
    one_that_draws_new_tokens_for_the_same_owner: DrawsAnew,
        caught by ["ownership::the_same_owner_gets_the_same_tokens"],
        spared by ["ownership::a_stranger_cannot_release", "fencing::tokens_rise_over_releases"];
    one_that_forgets_the_ttl_of_who_asks_again: ReArmsNothing,
        caught by ["ownership::asking_again_re_arms_the_ttl"],
        spared by ["ownership::the_same_owner_gets_the_same_tokens", "time::an_unrenewed_lease_ends"];
    one_that_vouches_for_every_lease: AcknowledgesAll,
        caught by ["ownership::a_fence_knows_the_stored_grant"],
        spared by ["exclusion::a_second_owner_is_refused"];
}

/// Every claim gets the lock.
#[derive(Default)]
struct GrantsToEverybody;

impl Breakage for GrantsToEverybody {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        match store.acquire(claim, WITHIN)? {
            Answer::Busy { holder: Holder::Leasehold { tokens, .. }, .. }
            | Answer::Queued { holder: Holder::Leasehold { tokens, .. }, .. } => {
                let tokens = TokenRange::above(tokens.high().get() + 1, claim.width).unwrap();
                let lease = claim.lease(tokens);
                Ok(Answer::Granted { lease, valid_for: claim.terms.ttl.get(), wanted: false })
            }
            answer @ (Answer::Granted { .. } | Answer::Busy { .. } | Answer::Queued { .. }) => Ok(answer),
        }
    }
}

/// The fourth refusal is a grant.
#[derive(Default)]
struct LosesARefusal(AtomicU32);

impl Breakage for LosesARefusal {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        match store.acquire(claim, WITHIN)? {
            Answer::Busy { .. } if self.0.fetch_add(1, Ordering::SeqCst) == 3 => {
                GrantsToEverybody.acquire(store, claim)
            }
            answer @ (Answer::Granted { .. } | Answer::Busy { .. } | Answer::Queued { .. }) => Ok(answer),
        }
    }
}

/// The eighth release is answered, but not done.
#[derive(Default)]
struct LosesARelease(AtomicU32);

impl Breakage for LosesARelease {
    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            7 => Ok(Released::Released),
            _ => store.release(request, WITHIN),
        }
    }
}

/// What becomes of a name.
trait Fold: Default + Send + Sync + 'static {
    fn fold(name: &str) -> String;
}

/// Different names are one lock.
#[derive(Default)]
struct Folds<F>(PhantomData<F>);

impl<F: Fold> Breakage for Folds<F> {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let name = F::fold(claim.name.as_str()).parse().unwrap();
        let answer = store.acquire(&Claim { name, ..claim.clone() }, WITHIN)?;
        Ok(regrant(answer, |lease, valid_for| (Lease { name: claim.name.clone(), ..lease }, valid_for)))
    }

    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let name = F::fold(request.name.as_str()).parse().unwrap();
        store.release(&ReleaseRequest { name, ..request.clone() }, WITHIN)
    }

    fn fence(&self, store: &dyn BlockingBackend, lease: &Lease) -> Result<Fenced, BackendError> {
        let name = F::fold(lease.name.as_str()).parse().unwrap();
        store.fence(&Lease { name, ..lease.clone() }, WITHIN)
    }
}

#[derive(Default)]
struct AllNames;

impl Fold for AllNames {
    fn fold(_name: &str) -> String {
        "one".into()
    }
}

#[derive(Default)]
struct Case;

impl Fold for Case {
    fn fold(name: &str) -> String {
        name.to_lowercase()
    }
}

#[derive(Default)]
struct Colon;

impl Fold for Colon {
    fn fold(name: &str) -> String {
        match name.split_once(':') {
            Some((start, _)) if !start.is_empty() => start.to_owned(),
            Some(_) | None => name.to_owned(),
        }
    }
}

/// A release ends the current hold, whichever owner it names.
#[derive(Default)]
struct ReleasesStrangers;

impl Breakage for ReleasesStrangers {
    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let released = store.release(request, WITHIN)?;
        if let Some(Holder::Leasehold { tokens, .. }) = store.holder(&request.name, WITHIN)?.map(|entry| entry.holder) {
            store.revoke(&request.name, tokens.low(), &lock_host::note("").unwrap(), WITHIN)?;
        }
        Ok(released)
    }
}

/// Says that it released, and does not.
#[derive(Default)]
pub(super) struct ReleasesNothing;

impl Breakage for ReleasesNothing {
    fn release(&self, _store: &dyn BlockingBackend, _parting: &ReleaseRequest) -> Result<Released, BackendError> {
        Ok(Released::Released)
    }
}

/// Renews the current hold for any owner.
#[derive(Default)]
struct RenewsForAnybody;

impl Breakage for RenewsForAnybody {
    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        let renew_one = |lease: &Lease| match store.holder(&lease.name, WITHIN)? {
            Some(_) => {
                store.renew(std::slice::from_ref(lease), WITHIN)?;
                Ok(Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted: false })
            }
            None => Ok(Renewed::NotHeld),
        };
        leases.iter().map(renew_one).collect()
    }
}

/// A renewal of something that is not there makes it.
#[derive(Default)]
struct RenewalCreates;

impl Breakage for RenewalCreates {
    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        let make = |lease: &Lease| match store.acquire(&claim_of(lease), WITHIN)? {
            Answer::Granted { valid_for, .. } => Ok(Renewed::Renewed { valid_for, wanted: false }),
            Answer::Queued { .. } | Answer::Busy { .. } => Ok(Renewed::NotHeld),
        };
        leases.iter().map(make).collect()
    }
}

fn claim_of(lease: &Lease) -> Claim {
    let Lease { name, owner, terms, .. } = lease.clone();
    let note = lock_host::note("").unwrap();
    let (width, queueing) = (Width::ONE, Queueing::Unwanted);
    Claim {
        name,
        owner,
        terms,
        width,
        floor: None,
        note,
        queueing,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

/// Answers many renewals from the last to the first.
#[derive(Default)]
struct AnswersBackwards;

impl Breakage for AnswersBackwards {
    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        Ok(store.renew(leases, WITHIN)?.into_iter().rev().collect())
    }
}

/// An owner that asks again is treated as if it had not asked before.
#[derive(Default)]
pub(crate) struct DrawsAnew;

impl Breakage for DrawsAnew {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        store.release(&claim.release(Certainty::Answered), WITHIN)?;
        store.acquire(claim, WITHIN)
    }
}

/// An owner that asks again is answered that it holds, for as long as if it had asked for the first time.
#[derive(Default)]
struct ReArmsNothing;

impl Breakage for ReArmsNothing {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let before = store.holder(&claim.name, WITHIN)?.and_then(|entry| entry.remaining);
        let answer = store.acquire(claim, WITHIN)?;
        if let (Answer::Granted { lease, .. }, Some(before)) = (&answer, before)
            && let Ok(ttl) = Ttl::new(before)
        {
            store.renew(&[Lease { terms: Terms::exclusive(ttl), ..lease.clone() }], WITHIN)?;
        }
        Ok(answer)
    }
}

/// Acknowledges whatever lease it is asked about.
#[derive(Default)]
struct AcknowledgesAll;

impl Breakage for AcknowledgesAll {
    fn fence(&self, _store: &dyn BlockingBackend, _lease: &Lease) -> Result<Fenced, BackendError> {
        Ok(Fenced::Acknowledged)
    }
}
