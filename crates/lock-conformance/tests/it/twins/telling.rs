//! Twins that are wrong about themselves, and about what they hold.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_conformance::{Facade, Harness};
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::{
    BackendError, BlockingBackend, Capabilities, EventSink, FencingToken, Holder, Lease, LockName, Note, Renewed,
    Waiting,
};

use super::cover::{Breakage, Stores, WITHIN};
use super::twins;

twins! {
    one_with_a_store_for_each_face: TwoStores,
        caught by [
            "facades::the_other_facade_is_refused", "facades::the_other_facade_is_woken",
            "facades::both_facades_never_hold_together"
        ],
        spared by ["exclusion::a_second_owner_is_refused"];
    one_that_denies_its_queue: DeniesItsQueue,
        caught by ["truth::places_are_given_as_the_capabilities_say"],
        spared by ["truth::capabilities_do_not_change"];
    one_that_changes_its_mind: ChangesItsMind,
        caught by ["truth::capabilities_do_not_change"],
        spared by ["exclusion::a_second_owner_is_refused"];
    one_that_promises_to_tell_and_does_not: TellsNobody,
        caught by ["truth::the_next_in_line_is_told_as_the_capabilities_say"],
        spared by ["waiting::waiters_are_served_in_their_order"];
    one_that_tells_the_last_listener: TellsTheLast,
        caught by ["facades::clients_of_one_backend_are_all_told"],
        spared by ["truth::the_next_in_line_is_told_as_the_capabilities_say"];
    one_that_shows_nobody: ShowsNobody,
        caught by ["truth::a_holder_is_shown_as_it_is"],
        spared by ["truth::listings_are_complete"];
    one_that_shows_the_last_waiter_first: ShowsTheLastFirst,
        caught by ["truth::waiters_are_shown_in_their_order"],
        spared by ["truth::a_holder_is_shown_as_it_is", "ages::a_waiter_is_as_old_as_its_first_claim"];
    one_that_takes_waiters_for_the_holder: ShowsTheHolder,
        caught by ["truth::waiters_are_shown_in_their_order"],
        spared by ["truth::a_holder_is_shown_as_it_is", "ages::a_waiter_is_as_old_as_its_first_claim"];
    one_that_counts_from_the_last_claim: AlwaysYoung,
        caught by ["ages::a_waiter_is_as_old_as_its_first_claim"],
        spared by ["truth::waiters_are_shown_in_their_order", "ages::a_lease_is_as_old_as_its_grant"];
    one_that_counts_the_time_of_earlier_holders: NeverYounger,
        caught by ["ages::a_lease_is_as_old_as_its_grant"],
        spared by ["truth::a_holder_is_shown_as_it_is"];
    one_that_revokes_by_any_token: RevokesAnything,
        caught by ["truth::a_revocation_by_another_token_changes_nothing"],
        spared by ["truth::a_holder_is_shown_as_it_is"];
    one_that_forgets_who_revokes: ForgetsWhoRevokes,
        caught by ["truth::a_holder_learns_who_revoked_its_lease"],
        spared by ["truth::a_revocation_by_another_token_changes_nothing"];
    one_that_lists_a_part: ListsAPart,
        caught by ["truth::listings_are_complete"],
        spared by ["truth::what_is_over_is_not_shown"];
}

/// Each facade has a store of its own.
#[derive(Default)]
pub(super) struct TwoStores;

impl Breakage for TwoStores {
    fn reach(stores: &Stores, facade: Facade) -> Arc<dyn BlockingBackend> {
        match facade {
            Facade::Nonblocking => stores.memory.blocking_backend(),
            Facade::Blocking => stores.other.blocking_backend(),
        }
    }
}

fn polling(mut capabilities: Capabilities) -> Capabilities {
    capabilities.waiting = Waiting::Poll;
    capabilities
}

/// Says that it polls, and queues.
#[derive(Default)]
struct DeniesItsQueue;

impl Breakage for DeniesItsQueue {
    fn capabilities(&self, store: &dyn BlockingBackend) -> Capabilities {
        polling(store.capabilities())
    }
}

/// Says something else each time.
#[derive(Default)]
struct ChangesItsMind {
    asked: AtomicBool,
}

impl Breakage for ChangesItsMind {
    fn capabilities(&self, store: &dyn BlockingBackend) -> Capabilities {
        let capabilities = store.capabilities();
        if self.asked.fetch_xor(true, Ordering::SeqCst) { polling(capabilities) } else { capabilities }
    }
}

/// Says that it pushes, and tells nobody.
#[derive(Default)]
struct TellsNobody;

impl Breakage for TellsNobody {
    fn listen(&self, _store: &dyn BlockingBackend, sink: EventSink) {
        drop(sink);
    }
}

/// Tells only the last listener.
#[derive(Default)]
struct TellsTheLast {
    last: Arc<Mutex<Option<EventSink>>>,
}

impl Breakage for TellsTheLast {
    fn listen(&self, store: &dyn BlockingBackend, sink: EventSink) {
        if self.last.lock().unwrap().replace(sink).is_none() {
            let last = Arc::clone(&self.last);
            store.listen(EventSink::new(move |event| {
                let last = last.lock().unwrap().clone();
                last.into_iter().for_each(|sink| _ = sink.deliver(event.clone()));
            }));
        }
    }
}

/// Shows no holder.
#[derive(Default)]
struct ShowsNobody;

impl Breakage for ShowsNobody {
    fn holder(&self, _store: &dyn BlockingBackend, _name: &LockName) -> Result<Option<Entry>, BackendError> {
        Ok(None)
    }
}

/// Shows the waiters in the opposite order.
#[derive(Default)]
struct ShowsTheLastFirst;

impl Breakage for ShowsTheLastFirst {
    fn holder(&self, store: &dyn BlockingBackend, name: &LockName) -> Result<Option<Entry>, BackendError> {
        let mut entry = store.holder(name, WITHIN)?;
        entry.iter_mut().for_each(|entry| entry.queue.reverse());
        Ok(entry)
    }
}

/// Shows each waiter with what the holder says about itself.
#[derive(Default)]
struct ShowsTheHolder;

impl Breakage for ShowsTheHolder {
    fn holder(&self, store: &dyn BlockingBackend, name: &LockName) -> Result<Option<Entry>, BackendError> {
        let Some(mut entry) = store.holder(name, WITHIN)? else { return Ok(None) };
        if let Holder::Leasehold { note, .. } = &entry.holder {
            entry.queue.iter_mut().for_each(|waiter| waiter.note = Some(note.clone()));
        }
        Ok(Some(entry))
    }
}

/// Shows waiters as if they had just come.
#[derive(Default)]
struct AlwaysYoung;

impl Breakage for AlwaysYoung {
    fn holder(&self, store: &dyn BlockingBackend, name: &LockName) -> Result<Option<Entry>, BackendError> {
        let mut entry = store.holder(name, WITHIN)?;
        entry.iter_mut().flat_map(|entry| &mut entry.queue).for_each(|waiter| waiter.age = Some(Duration::ZERO));
        Ok(entry)
    }
}

/// Shows nobody as younger than the oldest lease that it has shown of the lock.
#[derive(Default)]
struct NeverYounger(Mutex<BTreeMap<LockName, Duration>>);

impl Breakage for NeverYounger {
    fn holder(&self, store: &dyn BlockingBackend, name: &LockName) -> Result<Option<Entry>, BackendError> {
        let mut entry = store.holder(name, WITHIN)?;
        let mut oldest = self.0.lock().unwrap();
        for age in entry.iter_mut().flat_map(|entry| &mut entry.holders).filter_map(|held| held.age.as_mut()) {
            let oldest = oldest.entry(name.clone()).or_default();
            *oldest = (*age).max(*oldest);
            *age = *oldest;
        }
        Ok(entry)
    }
}

/// Ends whatever lease there is.
#[derive(Default)]
struct RevokesAnything;

impl Breakage for RevokesAnything {
    fn revoke(
        &self,
        store: &dyn BlockingBackend,
        name: &LockName,
        _: FencingToken,
        by: &Note,
    ) -> Result<Revoked, BackendError> {
        match store.holder(name, WITHIN)?.map(|entry| entry.holder) {
            Some(Holder::Leasehold { tokens, .. }) => store.revoke(name, tokens.low(), by, WITHIN),
            Some(Holder::Foreign) | None => Ok(Revoked::NotHeld),
        }
    }
}

/// Tells nobody who revoked a lease.
#[derive(Default)]
struct ForgetsWhoRevokes;

impl Breakage for ForgetsWhoRevokes {
    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        let forget = |renewed| if let Renewed::Revoked { .. } = renewed { Renewed::NotHeld } else { renewed };
        Ok(store.renew(leases, WITHIN)?.into_iter().map(forget).collect())
    }
}

/// Ends every listing after its first page.
#[derive(Default)]
struct ListsAPart;

impl Breakage for ListsAPart {
    fn list(&self, store: &dyn BlockingBackend, query: &Query) -> Result<Page, BackendError> {
        Ok(Page { next: None, ..store.list(query, WITHIN)? })
    }
}
