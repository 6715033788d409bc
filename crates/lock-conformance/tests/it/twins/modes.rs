//! Twins that are wrong about readers and permits.

use std::sync::Arc;

use lock_core::inspect::Entry;
use lock_core::{
    Answer, BackendError, BlockingBackend, Certainty, Claim, ErrorKind, EventSink, Fenced, Lease, LockName, Mode,
    ReleaseRequest, Released, Renewed, Slots, StoreEvent, Terms, TokenRange, Ttl,
};

use super::cover::{Breakage, Events, Stores, WITHIN, regrant};
use super::replacing::InTwoSteps;
use super::twins;

twins! {
    one_that_lets_readers_in_beside_a_writer: GrantsToReaders,
        caught by ["sharing::readers_hold_together_and_never_beside_a_writer"],
        spared by ["permits::no_more_than_the_limit_are_held"];
    one_that_overtakes_waiting_writers_and_large_requests: Overtakes,
        caught by ["sharing::a_waiting_writer_is_not_overtaken", "permits::a_large_request_at_the_head_is_not_overtaken"],
        spared by ["sharing::readers_hold_together_and_never_beside_a_writer", "permits::no_more_than_the_limit_are_held"];
    one_that_draws_no_tokens_for_readers_and_permits: DrawsNothing,
        caught by ["sharing::tokens_rise_over_readers_and_writers", "permits::the_tokens_of_a_slot_rise"],
        spared by ["sharing::a_dead_reader_ends_at_its_own_end", "permits::no_more_than_the_limit_are_held"];
    one_that_forgets_a_holder_that_asks_again: AsksAnew,
        caught by [
            "sharing::a_reader_that_asks_again_is_the_same", "permits::permits_that_are_asked_for_again_are_the_same"
        ],
        spared by ["sharing::tokens_rise_over_readers_and_writers", "permits::no_more_than_the_limit_are_held"];
    one_that_releases_all_holders_together: ReleasesAll,
        caught by ["sharing::a_reader_acts_for_itself_alone"],
        spared by ["sharing::tokens_rise_over_readers_and_writers"];
    one_that_has_one_end_for_all_holders: OneEnd,
        caught by ["sharing::a_dead_reader_ends_alone", "sharing::a_dead_reader_ends_at_its_own_end"],
        spared by ["sharing::readers_hold_together_and_never_beside_a_writer"];
    one_that_counts_holders_and_never_ends_one: Counts,
        caught by [
            "sharing::a_dead_reader_ends_alone", "sharing::a_dead_reader_ends_at_its_own_end",
            "permits::the_permits_of_a_dead_holder_come_back_at_its_end"
        ],
        spared by ["sharing::readers_hold_together_and_never_beside_a_writer", "permits::no_more_than_the_limit_are_held"];
    one_that_lets_waiting_readers_in_one_by_one: ReadersTakeTurns,
        caught by ["sharing::one_release_serves_all_the_readers_at_the_head"],
        spared by ["sharing::a_waiting_writer_is_not_overtaken"];
    one_that_tells_readers_and_permits_nothing: TellsNothing,
        caught by [
            "sharing::readers_go_on_when_the_writer_before_them_leaves", "permits::one_release_serves_all_that_fit"
        ],
        spared by ["sharing::a_waiting_writer_is_not_overtaken"];
    one_that_takes_late_claims_of_readers_and_permits: TakesLateClaims,
        caught by ["sharing::a_late_claim_to_read_leaves_nothing", "permits::a_late_claim_for_permits_leaves_nothing"],
        spared by ["sharing::a_reader_acts_for_itself_alone"];
    one_that_changes_modes_in_two_steps: InTwoSteps,
        caught by [
            "sharing::a_downgrade_lets_waiting_readers_in_and_no_writer",
            "sharing::an_upgrade_is_granted_to_the_only_reader", "permits::permits_are_given_back_in_part",
            "sharing::a_reader_is_replaced_by_another_owner"
        ],
        spared by ["sharing::a_waiting_writer_is_not_overtaken"];
    one_that_upgrades_beside_other_readers: UpgradesBesideOthers,
        caught by ["sharing::an_upgrade_beside_another_reader_changes_nothing"],
        spared by ["sharing::an_upgrade_is_granted_to_the_only_reader"];
    one_that_gives_the_lease_up_for_an_upgrade: GivesUpForAnUpgrade,
        caught by ["sharing::an_upgrade_beside_another_reader_changes_nothing"],
        spared by ["sharing::an_upgrade_is_granted_to_the_only_reader"];
    one_that_replaces_anything_by_anything: ReplacesAnything,
        caught by ["permits::permits_are_replaced_by_as_many_and_not_by_more"],
        spared by ["sharing::an_upgrade_is_granted_to_the_only_reader", "permits::permits_are_given_back_in_part"];
    one_that_shows_one_holder_of_many: ShowsOne,
        caught by ["sharing::each_reader_is_shown_and_revoked_alone", "permits::each_holder_is_shown_with_its_slots"],
        spared by ["truth::a_holder_is_shown_as_it_is"];
    one_that_grants_a_permit_too_many: GrantsOneMore,
        caught by ["permits::no_more_than_the_limit_are_held"],
        spared by ["permits::permits_that_are_asked_for_again_are_the_same"];
    one_that_gives_a_slot_twice: GivesSlotsTwice,
        caught by ["permits::slots_are_unique_while_they_are_held"],
        spared by ["permits::no_more_than_the_limit_are_held"];
    one_that_forgets_the_limit: TakesAnyLimit,
        caught by ["permits::another_limit_is_refused_and_changes_nothing"],
        spared by ["permits::the_tokens_of_a_slot_rise"];
    one_that_keeps_semaphores_apart_from_locks: KeepsKindsApart,
        caught by ["permits::another_kind_is_refused_and_changes_nothing"],
        spared by ["permits::no_more_than_the_limit_are_held", "permits::permits_that_are_asked_for_again_are_the_same"];
}

/// Whether others may hold beside it.
fn is_together(terms: &Terms) -> bool {
    terms.mode != Mode::Exclusive
}

fn shown(store: &dyn BlockingBackend, name: &LockName) -> Result<Option<Entry>, BackendError> {
    store.holder(name, WITHIN)
}

/// What the store never granted, under later tokens than those of the last holder.
pub(super) fn forced(store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
    let entry = shown(store, &claim.name)?.unwrap();
    let lock_core::Holder::Leasehold { tokens, .. } = entry.holder else { panic!("a twin holds it") };
    let lease = claim.lease(TokenRange::above(tokens.high().get() + 1, claim.width).unwrap());
    Ok(Answer::Granted { lease, valid_for: claim.terms.ttl.get(), wanted: false })
}

/// The answer to a claim for which the store was asked with other terms.
pub(super) fn in_terms_of(claim: &Claim, answer: Answer) -> Answer {
    regrant(answer, |lease, _| (Lease { terms: claim.terms, ..lease }, claim.terms.ttl.get()))
}

fn release(store: &dyn BlockingBackend, claim: &Claim, owner: lock_core::Owner) -> Result<Released, BackendError> {
    store.release(&ReleaseRequest { owner, ..claim.release(Certainty::Answered) }, WITHIN)
}

#[derive(Default)]
pub(super) struct GrantsToReaders;

impl Breakage for GrantsToReaders {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        let granted = matches!(answer, Answer::Granted { .. });
        if granted || claim.terms.mode != Mode::Shared { Ok(answer) } else { forced(store, claim) }
    }
}

/// Grants whatever fits beside the holders.
#[derive(Default)]
pub(super) struct Overtakes;

impl Breakage for Overtakes {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        let holders = shown(store, &claim.name)?.map(|entry| entry.holders).unwrap_or_default();
        let used: u32 = holders.iter().map(|held| held.mode.count()).sum();
        let fits = if let Mode::Permits { count, limit, .. } = claim.terms.mode {
            used + count.get() <= limit.get()
        } else {
            claim.terms.mode == Mode::Shared && holders.iter().all(|held| held.mode == Mode::Shared)
        };
        let granted = matches!(answer, Answer::Granted { .. });
        if granted || !fits { Ok(answer) } else { forced(store, claim) }
    }
}

/// The tokens of the store's first grant.
#[derive(Default)]
struct DrawsNothing;

impl Breakage for DrawsNothing {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        if !is_together(&claim.terms) {
            return Ok(answer);
        }
        let tokens = TokenRange::above(0, claim.width).unwrap();
        Ok(regrant(answer, |lease, valid_for| (Lease { tokens, ..lease }, valid_for)))
    }
}

#[derive(Default)]
struct AsksAnew;

impl Breakage for AsksAnew {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        if is_together(&claim.terms) {
            release(store, claim, claim.owner)?;
        }
        store.acquire(claim, WITHIN)
    }
}

#[derive(Default)]
struct ReleasesAll;

impl Breakage for ReleasesAll {
    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let released = store.release(request, WITHIN)?;
        while let Some(entry) = shown(store, &request.name)?.filter(|_| released == Released::Released) {
            let lock_core::Holder::Leasehold { tokens, .. } = entry.holder else { panic!("a twin holds it") };
            store.revoke(&request.name, tokens.low(), &lock_host::note("").unwrap(), WITHIN)?;
        }
        Ok(released)
    }
}

/// All last as long as the one that came last.
#[derive(Default)]
struct OneEnd(Arc<Events>);

impl Breakage for OneEnd {
    fn at(stores: &Stores) -> Self {
        Self(Arc::clone(&stores.events))
    }

    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        if let Answer::Granted { lease, .. } = &answer {
            let mut granted = self.0.granted.lock().unwrap();
            granted.push(lease.clone());
            let others: Vec<_> = granted.iter().map(|other| Lease { terms: lease.terms, ..other.clone() }).collect();
            store.renew(&others, WITHIN)?;
        }
        Ok(answer)
    }
}

#[derive(Default)]
struct Counts;

impl Breakage for Counts {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        if !is_together(&claim.terms) {
            return store.acquire(claim, WITHIN);
        }
        let terms = Terms { ttl: Ttl::new(claim.terms.ttl.get() * 1000).unwrap(), ..claim.terms };
        Ok(in_terms_of(claim, store.acquire(&Claim { terms, ..claim.clone() }, WITHIN)?))
    }
}

#[derive(Default)]
struct ReadersTakeTurns;

impl Breakage for ReadersTakeTurns {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        if claim.queueing == lock_core::Queueing::Unwanted {
            return store.acquire(claim, WITHIN);
        }
        let terms = Terms::exclusive(claim.terms.ttl);
        Ok(in_terms_of(claim, store.acquire(&Claim { terms, ..claim.clone() }, WITHIN)?))
    }
}

#[derive(Default)]
struct TellsNothing;

impl Breakage for TellsNothing {
    fn listen(&self, store: &dyn BlockingBackend, sink: EventSink) {
        let is_told =
            |event: &StoreEvent| !matches!(event, StoreEvent::Granted { lease, .. } if is_together(&lease.terms));
        store.listen(EventSink::new(move |event| {
            if is_told(&event) {
                sink.deliver(event);
            }
        }));
    }
}

#[derive(Default)]
struct TakesLateClaims;

impl Breakage for TakesLateClaims {
    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let certainty = if is_together(&request.terms) { Certainty::Answered } else { request.certainty };
        store.release(&ReleaseRequest { certainty, ..request.clone() }, WITHIN)
    }
}

#[derive(Default)]
pub(super) struct UpgradesBesideOthers;

impl Breakage for UpgradesBesideOthers {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        match (store.acquire(claim, WITHIN)?, claim.replaces) {
            (Answer::Busy { .. }, Some(_)) => forced(store, claim),
            (answer, _) => Ok(answer),
        }
    }
}

#[derive(Default)]
pub(super) struct GivesUpForAnUpgrade;

impl Breakage for GivesUpForAnUpgrade {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let answer = store.acquire(claim, WITHIN)?;
        if let (Answer::Busy { .. }, Some(old)) = (&answer, claim.replaces) {
            release(store, claim, old)?;
        }
        Ok(answer)
    }
}

#[derive(Default)]
struct ReplacesAnything;

impl Breakage for ReplacesAnything {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        match (store.acquire(claim, WITHIN), claim.replaces) {
            (Err(error), Some(old)) if error.kind() == ErrorKind::Protocol => {
                release(store, claim, old)?;
                store.acquire(&Claim { replaces: None, ..claim.clone() }, WITHIN)
            }
            (answer, _) => answer,
        }
    }
}

#[derive(Default)]
struct ShowsOne;

impl Breakage for ShowsOne {
    fn holder(&self, store: &dyn BlockingBackend, name: &LockName) -> Result<Option<Entry>, BackendError> {
        let entry = store.holder(name, WITHIN)?;
        Ok(entry.map(|entry| Entry::exclusive(entry.name, entry.holder, entry.remaining, entry.waiters)))
    }
}

/// Asks with another limit than the claim's.
fn with_limit(
    store: &dyn BlockingBackend,
    claim: &Claim,
    change: impl FnOnce(u32) -> u32,
) -> Result<Answer, BackendError> {
    let Mode::Permits { count, limit, .. } = claim.terms.mode else { return store.acquire(claim, WITHIN) };
    let mode = Mode::permits(count.get(), change(limit.get())).unwrap();
    let terms = Terms { mode, ..claim.terms };
    Ok(in_terms_of(claim, store.acquire(&Claim { terms, ..claim.clone() }, WITHIN)?))
}

#[derive(Default)]
pub(super) struct GrantsOneMore;

impl Breakage for GrantsOneMore {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        with_limit(store, claim, |limit| limit + 1)
    }
}

#[derive(Default)]
pub(super) struct TakesAnyLimit;

impl Breakage for TakesAnyLimit {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        with_limit(store, claim, |_| 100)
    }
}

#[derive(Default)]
pub(super) struct GivesSlotsTwice;

impl Breakage for GivesSlotsTwice {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let slots = Slots::new(0..claim.terms.mode.count());
        Ok(regrant(store.acquire(claim, WITHIN)?, |lease, valid_for| (Lease { slots, ..lease }, valid_for)))
    }
}

/// Has two locks for one name.
#[derive(Default)]
pub(super) struct KeepsKindsApart;

fn apart(name: &LockName, terms: &Terms) -> LockName {
    if terms.mode.count() == 0 { name.clone() } else { format!("{name} as a semaphore").parse().unwrap() }
}

fn leases_apart(leases: &[Lease]) -> Vec<Lease> {
    leases.iter().map(|lease| Lease { name: apart(&lease.name, &lease.terms), ..lease.clone() }).collect()
}

impl Breakage for KeepsKindsApart {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let name = apart(&claim.name, &claim.terms);
        let answer = store.acquire(&Claim { name, ..claim.clone() }, WITHIN)?;
        Ok(regrant(answer, |lease, valid_for| (Lease { name: claim.name.clone(), ..lease }, valid_for)))
    }

    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        store.renew(&leases_apart(leases), WITHIN)
    }

    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let name = apart(&request.name, &request.terms);
        store.release(&ReleaseRequest { name, ..request.clone() }, WITHIN)
    }

    fn fence(&self, store: &dyn BlockingBackend, lease: &Lease) -> Result<Fenced, BackendError> {
        store.fence(&leases_apart(std::slice::from_ref(lease))[0], WITHIN)
    }
}
