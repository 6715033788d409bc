//! What can be wrong with holding: exclusion, ownership, time and fencing tokens.

use lock_core::{
    Answer, BackendError, BlockingBackend, Certainty, Claim, Holder, Lease, LockName, Mode, Owner, Parting, Queueing,
    Released, Renewed, TokenRange, Ttl, Width,
};

use super::cover::{Breakage, Broken, WITHIN};
use super::{is_spared, twin};

/// Nothing is broken: twins differ from the reference by their fault alone.
#[derive(Default)]
struct Sound;

impl Breakage for Sound {}

#[test]
fn a_twin_without_a_fault_passes() {
    let needless = ["cross_process", "time::renewal", "exclusion::racing_clients", "faces::both"];
    let paths: Vec<_> = lock_conformance::CASES
        .iter()
        .map(|case| case.path)
        .filter(|path| !needless.iter().any(|start| path.starts_with(start)))
        .collect();
    is_spared::<Broken<Sound>>(module_path!(), &paths);
}

/// Whoever asks gets the lock.
#[derive(Default)]
struct GrantsToEverybody;

impl Breakage for GrantsToEverybody {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        match store.acquire(claim, WITHIN)? {
            Answer::Busy { holder: Holder::Leasehold { tokens, .. }, .. } => {
                let tokens = TokenRange::above(tokens.high().get() + 1, claim.width).unwrap();
                let lease = Lease { name: claim.name.clone(), owner: claim.owner, tokens, ttl: claim.ttl };
                Ok(Answer::Granted { lease, valid_for: claim.ttl.get() })
            }
            other => Ok(other),
        }
    }
}

twin!(
    one_that_grants_to_everybody,
    GrantsToEverybody,
    caught by ["exclusion::a_second_owner_is_refused", "exclusion::racing_claims_have_one_winner"],
    spared by ["fencing::tokens_rise_over_releases"]
);

/// Names that differ in their case only are one lock.
#[derive(Default)]
struct FoldsCase;

impl Breakage for FoldsCase {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let name = claim.name.as_str().to_lowercase().parse().unwrap();
        store.acquire(&Claim { name, ..claim.clone() }, WITHIN)
    }
}

twin!(
    one_that_folds_case,
    FoldsCase,
    caught by ["exclusion::names_are_compared_byte_by_byte"],
    spared by ["exclusion::a_second_owner_is_refused"]
);

/// A release ends the hold of whoever holds.
#[derive(Default)]
struct ReleasesStrangers;

impl Breakage for ReleasesStrangers {
    fn release(&self, store: &dyn BlockingBackend, parting: &Parting) -> Result<Released, BackendError> {
        let released = store.release(parting, WITHIN)?;
        let view = store.inspect().unwrap();
        if let Some(Holder::Leasehold { tokens, .. }) = view.holder(&parting.name, WITHIN)?.map(|entry| entry.holder) {
            view.revoke(&parting.name, tokens.low(), WITHIN)?;
        }
        Ok(released)
    }
}

twin!(
    one_that_releases_the_locks_of_strangers,
    ReleasesStrangers,
    caught by ["ownership::a_stranger_cannot_release", "ownership::a_second_release_is_harmless"],
    spared by ["exclusion::a_second_owner_is_refused", "time::an_unrenewed_lease_ends"]
);

/// A renewal of something that is not there makes it.
#[derive(Default)]
struct RenewalCreates;

impl Breakage for RenewalCreates {
    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        for lease in leases {
            store.acquire(&claim_of(lease.name.clone(), lease.owner, lease.ttl), WITHIN)?;
        }
        Ok(leases.iter().map(|lease| Renewed::Renewed { valid_for: lease.ttl.get() }).collect())
    }
}

fn claim_of(name: LockName, owner: Owner, ttl: Ttl) -> Claim {
    let note = lock_host::note("").unwrap();
    let mode = Mode::Exclusive;
    Claim { name, owner, mode, ttl, width: Width::ONE, floor: None, note, queueing: Queueing::Unwanted }
}

twin!(
    one_whose_renewals_create,
    RenewalCreates,
    caught by ["ownership::a_renewal_never_creates", "time::a_late_renewal_is_refused"],
    spared by ["ownership::a_stranger_cannot_release"]
);

/// An owner that asks again gets other tokens.
#[derive(Default)]
pub(crate) struct DrawsAnew;

impl Breakage for DrawsAnew {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let parting = Parting {
            name: claim.name.clone(),
            owner: claim.owner,
            ttl: claim.ttl,
            certainty: Certainty::Answered,
        };
        store.release(&parting, WITHIN)?;
        store.acquire(claim, WITHIN)
    }
}

twin!(
    one_that_draws_new_tokens_for_the_same_owner,
    DrawsAnew,
    caught by ["ownership::the_same_owner_gets_the_same_tokens", "waiting::asking_again_keeps_the_place"],
    spared by ["ownership::a_stranger_cannot_release", "fencing::tokens_rise_over_releases"]
);

/// The store keeps leases for a quarter of the time that it says.
#[derive(Default)]
struct PromisesTooMuch;

fn quarter(ttl: Ttl) -> Ttl {
    Ttl::new(ttl.get() / 4).unwrap_or(Ttl::MIN)
}

impl Breakage for PromisesTooMuch {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(&Claim { ttl: quarter(claim.ttl), ..claim.clone() }, WITHIN)?;
        Ok(match answer {
            Answer::Granted { lease, .. } => {
                Answer::Granted { lease: Lease { ttl: claim.ttl, ..lease }, valid_for: claim.ttl.get() }
            }
            other => other,
        })
    }
}

twin!(
    one_that_keeps_leases_for_less_than_it_says,
    PromisesTooMuch,
    caught by ["time::an_unrenewed_lease_ends", "ownership::asking_again_re_arms_the_ttl"],
    spared by ["exclusion::a_second_owner_is_refused", "time::no_grant_is_longer_than_asked"]
);

/// Leases never end.
#[derive(Default)]
struct NeverExpires;

impl Breakage for NeverExpires {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(&Claim { ttl: Ttl::MAX, ..claim.clone() }, WITHIN)?;
        Ok(match answer {
            Answer::Granted { lease, .. } => {
                Answer::Granted { lease: Lease { ttl: claim.ttl, ..lease }, valid_for: claim.ttl.get() }
            }
            other => other,
        })
    }
}

twin!(
    one_whose_leases_never_end,
    NeverExpires,
    caught by ["time::an_unrenewed_lease_ends", "time::a_late_renewal_is_refused", "fencing::tokens_rise_over_expiry"],
    spared by ["exclusion::a_second_owner_is_refused"]
);

/// A renewal says that it moved the end, and did not.
#[derive(Default)]
struct RenewsNothing;

impl Breakage for RenewsNothing {
    fn renew(&self, _store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        Ok(leases.iter().map(|lease| Renewed::Renewed { valid_for: lease.ttl.get() }).collect())
    }
}

twin!(
    one_whose_renewals_do_nothing,
    RenewsNothing,
    caught by ["time::a_renewal_counts_from_now", "time::renewal_outlives_the_ttl"],
    spared by ["time::an_unrenewed_lease_ends"]
);

/// Every grant has the same tokens.
#[derive(Default)]
struct TokensRepeat;

impl Breakage for TokensRepeat {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        Ok(match store.acquire(claim, WITHIN)? {
            Answer::Granted { lease, valid_for } => {
                let tokens = TokenRange::above(6, claim.width).unwrap();
                Answer::Granted { lease: Lease { tokens, ..lease }, valid_for }
            }
            other => other,
        })
    }
}

twin!(
    one_whose_tokens_repeat,
    TokensRepeat,
    caught by [
        "fencing::tokens_rise_over_releases",
        "fencing::tokens_rise_over_expiry",
        "fencing::tokens_rise_for_each_name_whoever_asks",
        "fencing::a_width_draws_so_many_tokens"
    ],
    spared by ["waiting::without_a_wish_no_place_is_kept"]
);

