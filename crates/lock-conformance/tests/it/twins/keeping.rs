//! Twins that are wrong about a lock that is kept for a while after its release.

use std::collections::BTreeSet;
use std::sync::Mutex;

use lock_core::{
    BackendError, BlockingBackend, Claim, Fairness, NameKind, Note, Owner, Queueing, ReleaseRequest, Released, Terms,
    Ttl, Width,
};

use super::cover::{Breakage, WITHIN};
use super::twins;

twins! {
    one_that_frees_a_kept_lock_at_once: FreesAtOnce,
        caught by [
            "keeping::a_kept_lock_is_free_when_its_time_is_over_and_not_before",
            "keeping::a_waiter_has_a_kept_lock_when_its_time_is_over", "keeping::a_guard_is_released_for_later"
        ],
        spared by ["ownership::a_second_release_is_harmless"];
    one_that_begins_to_keep_anew: KeepsAnew,
        caught by ["keeping::keeping_again_never_lengthens_the_time"],
        spared by ["keeping::a_kept_lock_is_free_when_its_time_is_over_and_not_before"];
    one_that_keeps_a_lock_for_its_old_owner: KeepsForTheOwner,
        caught by ["keeping::the_owner_that_left_has_nothing_of_a_kept_lock"],
        spared by ["keeping::a_release_ends_the_keeping"];
    one_that_never_ends_the_keeping: KeepsOn,
        caught by ["keeping::a_release_ends_the_keeping"],
        spared by ["keeping::the_owner_that_left_has_nothing_of_a_kept_lock"];
}

#[derive(Default)]
struct FreesAtOnce;

impl Breakage for FreesAtOnce {
    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        store.release(&ReleaseRequest { keep: None, ..request.clone() }, WITHIN)
    }
}

/// Frees the lock, and takes it for the time for which it is to be kept.
#[derive(Default)]
struct KeepsAnew;

impl Breakage for KeepsAnew {
    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let released = store.release(&ReleaseRequest { keep: None, ..request.clone() }, WITHIN)?;
        take_for_keeping(store, request, request.owner.kept())?;
        Ok(released)
    }
}

/// Leaves the lock to the owner, for the time for which it is to be kept.
#[derive(Default)]
struct KeepsForTheOwner;

impl Breakage for KeepsForTheOwner {
    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        if request.keep.is_none() {
            return store.release(request, WITHIN);
        }
        take_for_keeping(store, request, request.owner)?;
        Ok(Released::Released)
    }
}

fn take_for_keeping(store: &dyn BlockingBackend, request: &ReleaseRequest, owner: Owner) -> Result<(), BackendError> {
    let Some(keep) = request.keep else { return Ok(()) };
    let (width, queueing, note) = (Width::ONE, Queueing::Unwanted, Note::from_wire("1@twin"));
    let terms = Terms::exclusive(Ttl::new(keep).unwrap());
    store.acquire(
        &Claim {
            name: request.name.clone(),
            owner,
            terms,
            width,
            floor: None,
            note,
            queueing,
            replaces: None,
            fairness: Fairness::Fair,
            kind: NameKind::Lock,
        },
        WITHIN,
    )?;
    Ok(())
}

#[derive(Default)]
struct KeepsOn(Mutex<BTreeSet<Owner>>);

impl Breakage for KeepsOn {
    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let mut kept = self.0.lock().unwrap();
        match request.keep {
            Some(_) => _ = kept.insert(request.owner),
            None if kept.contains(&request.owner) => return Ok(Released::Released),
            None => {}
        }
        store.release(request, WITHIN)
    }
}
