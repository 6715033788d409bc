//! Twins that are wrong about answers that were lost, about waiting, and about failure.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lock_conformance::Harness;
use lock_core::{
    Answer, BackendError, BlockingBackend, Certainty, Claim, Effect, ErrorKind, Fenced, Holder, Lease, Operation,
    Owner, Queueing, ReleaseRequest, Released, Renewed, Terms, Ttl,
};

use super::cover::{Breakage, Events, Stores, WITHIN};
use super::holding::DrawsAnew;
use super::twins;

twins! {
    one_that_takes_a_lost_answer_for_a_lost_request: SureOfNothing,
        caught by [
            "unknown::an_acquire_without_an_answer_can_be_asked_again",
            "unknown::an_acquire_without_an_answer_can_be_given_up",
            "unknown::a_renewal_without_an_answer_can_be_repeated",
            "unknown::a_release_without_an_answer_can_be_repeated",
            "unknown::a_fence_without_an_answer_changes_nothing"
        ],
        spared by ["failure::unreachable_is_not_busy"];
    one_that_lets_ghosts_in: ForgetsReleases,
        caught by [
            "unknown::a_claim_that_arrives_after_its_release_leaves_nothing",
            "unknown::a_claim_that_arrives_after_its_release_takes_no_place"
        ],
        spared by ["unknown::an_acquire_without_an_answer_can_be_given_up"];
    one_that_ignores_who_is_not_sure: IgnoresTheUnsure,
        caught by [
            "unknown::a_try_without_an_answer_leaves_nothing", "unknown::an_acquire_without_an_answer_can_be_given_up",
            "replacing::a_late_replacement_that_was_given_up_is_refused"
        ],
        spared by ["ownership::a_second_release_is_harmless"];
    one_whose_errors_are_final: FailsForGood,
        caught by [
            "unknown::a_wait_survives_lost_answers", "failure::a_waiter_waits_out_an_outage",
            "failure::an_error_says_what_was_being_done"
        ],
        spared by ["exclusion::a_second_owner_is_refused"];
    one_that_never_comes_back: NeverComesBack,
        caught by ["failure::a_client_recovers_by_itself", "failure::a_waiter_waits_out_an_outage"],
        spared by ["failure::unreachable_is_not_busy"];
    one_that_takes_failure_for_busy: BusyWhenUnreachable,
        caught by ["failure::unreachable_is_not_busy"],
        spared by ["exclusion::a_second_owner_is_refused", "failure::a_client_recovers_by_itself"];
    one_that_does_what_it_says_it_did_not: DoesWhatItRefuses,
        caught by ["failure::an_effect_of_none_is_true"],
        spared by ["failure::unreachable_is_not_busy"];
    one_that_hangs_with_its_store: Hangs,
        caught by ["failure::nothing_takes_longer_than_it_may", "failure::a_client_recovers_from_a_store_that_hung"],
        spared by ["failure::a_client_recovers_by_itself"];
    one_that_names_nobody: NamesNobody,
        caught by ["waiting::busy_names_the_holder_and_what_remains", "waiting::a_wait_that_is_over_names_the_holder"],
        spared by ["exclusion::a_second_owner_is_refused"];
    one_that_queues_who_does_not_wish_it: QueuesEverybody,
        caught by ["waiting::without_a_wish_no_place_is_kept"],
        spared by ["exclusion::a_second_owner_is_refused", "waiting::waiters_are_served_in_their_order"];
    one_that_keeps_the_places_of_who_left: KeepsWhoLeft,
        caught by [
            "ownership::a_waiter_gives_up_its_place", "waiting::a_cancelled_waiter_leaves_nothing",
            "waiting::a_wait_that_is_over_names_the_holder"
        ],
        spared by ["waiting::waiters_are_served_in_their_order"];
    one_that_keeps_no_places: KeepsNoPlaces,
        caught by ["waiting::waiters_are_served_in_their_order", "waiting::nobody_overtakes_the_queue"],
        spared by ["waiting::without_a_wish_no_place_is_kept"];
    one_that_sends_waiters_to_the_end: LosesPlaces,
        caught by ["waiting::asking_again_keeps_the_place"],
        spared by ["exclusion::a_second_owner_is_refused", "waiting::nobody_overtakes_the_queue"];
    one_that_waits_for_the_dead: KeepsDeadPlaces,
        caught by ["waiting::a_place_that_is_not_refreshed_is_skipped", "waiting::a_hand_over_that_nobody_takes_goes_on"],
        spared by ["waiting::waiters_are_served_in_their_order"];
}

/// Tells every failure as one of a request that was never sent.
#[derive(Default)]
struct SureOfNothing;

fn unsent(error: BackendError) -> BackendError {
    BackendError::new("memory", error.operation(), ErrorKind::Unreachable, Effect::None, "surely nothing happened")
}

impl Breakage for SureOfNothing {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        store.acquire(claim, WITHIN).map_err(unsent)
    }

    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        store.renew(leases, WITHIN).map_err(unsent)
    }

    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        store.release(request, WITHIN).map_err(unsent)
    }

    fn fence(&self, store: &dyn BlockingBackend, lease: &Lease) -> Result<Fenced, BackendError> {
        store.fence(lease, WITHIN).map_err(unsent)
    }
}

/// Grants a claim that comes after its release.
#[derive(Default)]
struct ForgetsReleases;

impl Breakage for ForgetsReleases {
    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        store.release(&ReleaseRequest { certainty: Certainty::Answered, ..request.clone() }, WITHIN)
    }
}

/// Does nothing for an owner that does not know whether it holds.
#[derive(Default)]
struct IgnoresTheUnsure;

impl Breakage for IgnoresTheUnsure {
    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        match request.certainty {
            Certainty::Answered => store.release(request, WITHIN),
            Certainty::Unknown => Ok(Released::NotHeld),
        }
    }
}

/// Tells every failure as one that will not pass.
#[derive(Default)]
struct FailsForGood;

impl Breakage for FailsForGood {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        store.acquire(claim, WITHIN).map_err(|error| {
            BackendError::new("memory", error.operation(), ErrorKind::Denied, error.effect(), "for good")
        })
    }
}

/// A client that has failed once always fails.
#[derive(Default)]
struct NeverComesBack {
    failed: AtomicBool,
}

impl NeverComesBack {
    fn pass<T>(&self, operation: Operation, answer: Result<T, BackendError>) -> Result<T, BackendError> {
        if self.failed.fetch_or(answer.is_err(), Ordering::SeqCst) {
            return Err(BackendError::new("memory", operation, ErrorKind::Unreachable, Effect::Unknown, "still gone"));
        }
        answer
    }
}

impl Breakage for NeverComesBack {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        self.pass(Operation::Acquire, store.acquire(claim, WITHIN))
    }

    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        self.pass(Operation::Renew, store.renew(leases, WITHIN))
    }
}

/// Says that somebody else holds the lock, whatever went wrong.
#[derive(Default)]
struct BusyWhenUnreachable;

impl Breakage for BusyWhenUnreachable {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        store.acquire(claim, WITHIN).or(Ok(Answer::Busy { remaining: None, holder: Holder::Foreign, drawn: None }))
    }
}

/// Has done what it says that it could not do.
#[derive(Default)]
struct DoesWhatItRefuses {
    behind: Option<Arc<dyn BlockingBackend>>,
}

impl Breakage for DoesWhatItRefuses {
    fn at(stores: &Stores) -> Self {
        Self { behind: Some(stores.memory.bystander()) }
    }

    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN);
        if let (Err(_), Some(behind)) = (&answer, &self.behind) {
            behind.acquire(claim, WITHIN)?;
        }
        answer
    }
}

/// Waits for a store that hangs, however long it may, and does not notice when it goes on.
#[derive(Default)]
struct Hangs {
    events: Arc<Events>,
}

impl Hangs {
    fn wait(&self, operation: Operation) -> Result<(), BackendError> {
        if self.events.hung.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(500));
            return Err(BackendError::new("memory", operation, ErrorKind::Timeout, Effect::Unknown, "it hangs"));
        }
        Ok(())
    }
}

impl Breakage for Hangs {
    fn at(stores: &Stores) -> Self {
        Self { events: Arc::clone(&stores.events) }
    }

    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        self.wait(Operation::Acquire)?;
        store.acquire(claim, WITHIN)
    }

    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        self.wait(Operation::Renew)?;
        store.renew(leases, WITHIN)
    }

    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        self.wait(Operation::Release)?;
        store.release(request, WITHIN)
    }
}

/// Does not say who holds a lock.
#[derive(Default)]
struct NamesNobody;

impl Breakage for NamesNobody {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let holder = Holder::Foreign;
        Ok(match store.acquire(claim, WITHIN)? {
            Answer::Busy { remaining, .. } => Answer::Busy { remaining, holder, drawn: None },
            Answer::Queued { position, remaining, valid_for, .. } => {
                Answer::Queued { position, remaining, valid_for, holder, drawn: None }
            }
            granted @ Answer::Granted { .. } => granted,
        })
    }
}

/// Gives a place to everybody.
#[derive(Default)]
struct QueuesEverybody;

impl Breakage for QueuesEverybody {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        match (claim.queueing, store.acquire(&Claim { queueing: Queueing::Wanted, ..claim.clone() }, WITHIN)?) {
            (Queueing::Unwanted, Answer::Queued { remaining, holder, .. }) => {
                Ok(Answer::Busy { remaining, holder, drawn: None })
            }
            (Queueing::Unwanted | Queueing::Wanted, answer) => Ok(answer),
        }
    }
}

/// The owners that have been given a place.
#[derive(Default)]
struct Waiting(Mutex<HashSet<Owner>>);

impl Waiting {
    /// Notes what an owner was answered; returns whether it had a place before.
    fn note(&self, owner: Owner, answer: &Answer) -> bool {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Answer::Queued { .. } => !owners.insert(owner),
            Answer::Granted { .. } | Answer::Busy { .. } => owners.remove(&owner),
        }
    }

    fn has(&self, owner: Owner) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&owner)
    }
}

/// Lets nobody leave the queue.
#[derive(Default)]
struct KeepsWhoLeft(Waiting);

impl Breakage for KeepsWhoLeft {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        self.0.note(claim.owner, &answer);
        Ok(answer)
    }

    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        if self.0.has(request.owner) { Ok(Released::Left) } else { store.release(request, WITHIN) }
    }
}

/// Says that it gave a place, and gave none.
#[derive(Default)]
struct KeepsNoPlaces;

impl Breakage for KeepsNoPlaces {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        if matches!(answer, Answer::Queued { .. }) {
            store.release(&claim.release(Certainty::Answered), WITHIN)?;
        }
        Ok(answer)
    }
}

/// A waiter that asks again goes to the end of the queue.
#[derive(Default)]
struct LosesPlaces(Waiting);

impl Breakage for LosesPlaces {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        let waited = self.0.note(claim.owner, &answer);
        match answer {
            Answer::Queued { .. } if waited => DrawsAnew.acquire(store, claim),
            Answer::Queued { .. } | Answer::Granted { .. } | Answer::Busy { .. } => Ok(answer),
        }
    }
}

/// Keeps the places of the dead for as long as others'.
#[derive(Default)]
struct KeepsDeadPlaces;

impl Breakage for KeepsDeadPlaces {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let ttl = match claim.queueing {
            Queueing::Wanted => Ttl::new(Duration::from_secs(3600)).unwrap(),
            Queueing::Unwanted => claim.terms.ttl,
        };
        store.acquire(&Claim { terms: Terms::exclusive(ttl), ..claim.clone() }, WITHIN)
    }
}
