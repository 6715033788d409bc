//! What can be wrong with answering: waiting, failure, and what a store says of itself.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lock_conformance::{Colour, Harness};
use lock_core::inspect::{Page, Query, Revoked};
use lock_core::{
    Answer, BackendError, BlockingBackend, BlockingInspect, Capabilities, Certainty, Claim, Effect, ErrorKind,
    EventSink, FencingToken, Holder, LockName, Owner, Parting, Queueing, Released, Ttl, Waiting,
};

use super::cover::{Breakage, Broken, WITHIN};
use super::holding::DrawsAnew;
use super::twin;

/// A claim that comes after its release is granted.
#[derive(Default)]
struct ForgetsPartings;

impl Breakage for ForgetsPartings {
    fn release(&self, store: &dyn BlockingBackend, parting: &Parting) -> Result<Released, BackendError> {
        store.release(&Parting { certainty: Certainty::Answered, ..parting.clone() }, WITHIN)
    }
}

twin!(
    one_that_lets_ghosts_in,
    ForgetsPartings,
    caught by [
        "unknown::a_claim_that_arrives_after_its_release_leaves_nothing",
        "unknown::a_claim_that_arrives_after_its_release_takes_no_place"
    ],
    spared by ["unknown::an_acquire_without_an_answer_can_be_given_up"]
);

/// A waiter that asks again goes to the end of the queue.
#[derive(Default)]
struct LosesPlaces {
    waiting: Mutex<HashSet<Owner>>,
}

impl Breakage for LosesPlaces {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Answer::Queued { .. } if !waiting.insert(claim.owner) => DrawsAnew.acquire(store, claim),
            other => Ok(other),
        }
    }
}

twin!(
    one_that_sends_waiters_to_the_end,
    LosesPlaces,
    caught by ["waiting::asking_again_keeps_the_place"],
    spared by ["exclusion::a_second_owner_is_refused", "waiting::nobody_overtakes_the_queue"]
);

/// Places last for an hour, whoever has them.
#[derive(Default)]
struct KeepsDeadPlaces;

impl Breakage for KeepsDeadPlaces {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let ttl = match claim.queueing {
            Queueing::Wanted => Ttl::new(Duration::from_secs(3600)).unwrap(),
            Queueing::Unwanted => claim.ttl,
        };
        store.acquire(&Claim { ttl, ..claim.clone() }, WITHIN)
    }
}

twin!(
    one_that_waits_for_the_dead,
    KeepsDeadPlaces,
    caught by ["waiting::a_place_that_is_not_refreshed_is_skipped", "waiting::a_hand_over_that_nobody_takes_goes_on"],
    spared by ["waiting::waiters_are_served_in_their_order"]
);

/// Whatever goes wrong, somebody else holds the lock.
#[derive(Default)]
struct BusyWhenUnreachable;

impl Breakage for BusyWhenUnreachable {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        store.acquire(claim, WITHIN).or(Ok(Answer::Busy { remaining: None, holder: Holder::Foreign }))
    }
}

twin!(
    one_that_takes_failure_for_busy,
    BusyWhenUnreachable,
    caught by ["failure::unreachable_is_not_busy", "failure::an_error_says_what_was_being_done"],
    spared by ["exclusion::a_second_owner_is_refused", "failure::a_client_recovers_by_itself"]
);

/// An answer that was lost is told as a request that was never sent.
#[derive(Default)]
struct SureOfNothing;

impl Breakage for SureOfNothing {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        store.acquire(claim, WITHIN).map_err(|error| {
            let (kind, operation) = (ErrorKind::Unreachable, error.operation());
            BackendError::new("memory", operation, kind, Effect::None, "surely nothing happened")
        })
    }
}

twin!(
    one_that_takes_a_lost_answer_for_a_lost_request,
    SureOfNothing,
    caught by ["unknown::an_acquire_without_an_answer_can_be_asked_again"],
    spared by ["failure::unreachable_is_not_busy"]
);

/// What it says was not done, it has done.
#[derive(Default)]
struct DoesWhatItRefuses {
    behind: Option<Arc<dyn BlockingBackend>>,
}

impl Breakage for DoesWhatItRefuses {
    fn at(harness: &Broken<Self>) -> Self {
        Self { behind: Some(harness.memory.bystander()) }
    }

    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN);
        if let (Err(_), Some(behind)) = (&answer, &self.behind) {
            behind.acquire(claim, WITHIN)?;
        }
        answer
    }
}

twin!(
    one_that_does_what_it_says_it_did_not,
    DoesWhatItRefuses,
    caught by ["failure::an_effect_of_none_is_true"],
    spared by ["failure::unreachable_is_not_busy"]
);

/// Each colour has a store of its own.
#[derive(Default)]
struct TwoStores;

impl Breakage for TwoStores {
    fn reach(harness: &Broken<Self>, colour: Colour) -> Arc<dyn BlockingBackend> {
        match colour {
            Colour::Nonblocking => harness.memory.blocking_backend(),
            Colour::Blocking => harness.other.blocking_backend(),
        }
    }
}

twin!(
    one_with_a_store_for_each_face,
    TwoStores,
    caught by ["faces::the_other_face_is_refused", "faces::the_other_face_is_woken", "faces::both_faces_never_hold_together"],
    spared by ["exclusion::a_second_owner_is_refused"]
);

/// Says that it polls, and queues.
#[derive(Default)]
struct DeniesItsQueue;

impl Breakage for DeniesItsQueue {
    fn capabilities(&self, store: &dyn BlockingBackend) -> Capabilities {
        let mut capabilities = store.capabilities();
        capabilities.waiting = Waiting::Poll;
        capabilities
    }
}

twin!(
    one_that_denies_its_queue,
    DeniesItsQueue,
    caught by ["truth::places_are_given_as_the_capabilities_say", "waiting::waiters_are_served_in_their_order"],
    spared by ["truth::capabilities_do_not_change"]
);

/// Says that it pushes, and tells nobody.
#[derive(Default)]
struct TellsNobody;

impl Breakage for TellsNobody {
    fn listen(&self, _store: &dyn BlockingBackend, sink: EventSink) {
        drop(sink);
    }
}

twin!(
    one_that_promises_to_tell_and_does_not,
    TellsNobody,
    caught by ["truth::the_next_in_line_is_told_as_the_capabilities_say"],
    spared by ["waiting::waiters_are_served_in_their_order"]
);

/// A revocation ends whatever lease there is.
#[derive(Default)]
struct RevokesAnything;

impl Breakage for RevokesAnything {
    fn revoke(&self, view: &dyn BlockingInspect, name: &LockName, _: FencingToken) -> Result<Revoked, BackendError> {
        match view.holder(name, WITHIN)?.map(|entry| entry.holder) {
            Some(Holder::Leasehold { tokens, .. }) => view.revoke(name, tokens.low(), WITHIN),
            Some(Holder::Foreign) | None => Ok(Revoked::NotHeld),
        }
    }
}

twin!(
    one_that_revokes_by_any_token,
    RevokesAnything,
    caught by ["truth::a_revocation_by_another_token_changes_nothing"],
    spared by ["truth::a_holder_is_shown_as_it_is"]
);

/// A listing ends after its first page.
#[derive(Default)]
struct ListsInPart;

impl Breakage for ListsInPart {
    fn list(&self, view: &dyn BlockingInspect, query: &Query) -> Result<Page, BackendError> {
        Ok(Page { next: None, ..view.list(query, WITHIN)? })
    }
}

twin!(
    one_that_lists_a_part,
    ListsInPart,
    caught by ["truth::listings_are_complete"],
    spared by ["truth::what_is_over_is_not_shown"]
);
