//! Twins that are wrong about readers and permits, as users of the facades see it.

use lock_core::{Answer, BackendError, BlockingBackend, Claim, Fenced, Lease, Mode, Renewed, Slots, Terms};

use super::cover::{Breakage, WITHIN, regrant};
use super::holding::ReleasesNothing;
use super::lasting::RenewsNothing;
use super::modes::{
    GivesSlotsTwice, GivesUpForAnUpgrade, GrantsOneMore, GrantsToReaders, KeepsKindsApart, Overtakes, TakesAnyLimit,
    UpgradesBesideOthers, forced, in_terms_of,
};
use super::telling::TwoStores;
use super::twins;

twins! {
    one_that_lets_readers_in_beside_a_writer: GrantsToReaders,
        caught by [
            "reading::readers_exclude_writers_and_not_each_other", "reading::a_mutex_is_the_write_side",
            "reading::the_only_reader_becomes_the_writer", "reading::a_hold_is_changed_again_and_again"
        ],
        spared by ["semaphores::as_many_hold_as_there_are_permits"];
    one_that_has_a_store_for_each_facade: TwoStores,
        caught by ["reading::racing_readers_and_writers_never_hold_together"],
        spared by ["semaphores::wrong_numbers_are_invalid"];
    one_whose_downgrades_stay_writers: StaysAWriter,
        caught by [
            "reading::a_downgrade_lets_readers_in_and_no_writer", "reading::a_hold_is_changed_again_and_again"
        ],
        spared by ["reading::a_mutex_is_the_write_side", "semaphores::some_are_given_back"];
    one_that_takes_nothing_back: TakesNothingBack,
        caught by ["semaphores::some_are_given_back"],
        spared by ["semaphores::several_are_granted_together", "reading::the_only_reader_becomes_the_writer"];
    one_that_overtakes_waiting_writers_and_large_requests: Overtakes,
        caught by [
            "reading::a_writer_that_waits_is_before_later_readers", "semaphores::a_large_request_is_not_overtaken"
        ],
        spared by ["semaphores::several_are_granted_together"];
    one_that_upgrades_beside_other_readers: UpgradesBesideOthers,
        caught by ["reading::a_reader_beside_others_stays_one"],
        spared by ["reading::the_only_reader_becomes_the_writer"];
    one_that_gives_the_lease_up_for_an_upgrade: GivesUpForAnUpgrade,
        caught by ["reading::a_reader_beside_others_stays_one"],
        spared by ["reading::the_only_reader_becomes_the_writer"];
    one_whose_renewals_do_nothing: RenewsNothing,
        caught by ["reading::a_changed_hold_is_renewed", "semaphores::permits_are_renewed"],
        spared by ["reading::the_only_reader_becomes_the_writer"];
    one_that_takes_all_leases_for_held: NobodyLoses,
        caught by ["reading::a_reader_learns_of_its_loss", "semaphores::a_holder_learns_of_its_loss"],
        spared by ["reading::a_changed_hold_is_renewed", "semaphores::permits_are_renewed"];
    one_whose_releases_do_nothing: ReleasesNothing,
        caught by [
            "reading::closing_ends_readers", "semaphores::closing_ends_permits",
            "semaphores::a_name_is_used_otherwise_right_after_a_drop"
        ],
        spared by [];
    one_that_grants_a_permit_too_many: GrantsOneMore,
        caught by ["semaphores::as_many_hold_as_there_are_permits", "semaphores::several_are_granted_together"],
        spared by ["semaphores::a_holder_learns_of_its_loss"];
    one_that_gives_a_slot_twice: GivesSlotsTwice,
        caught by ["semaphores::tokens_of_each_slot_rise"],
        spared by ["semaphores::several_are_granted_together"];
    one_that_forgets_the_limit: TakesAnyLimit,
        caught by ["semaphores::another_limit_is_an_error"],
        spared by ["semaphores::a_holder_learns_of_its_loss"];
    one_that_keeps_semaphores_apart_from_locks: KeepsKindsApart,
        caught by ["semaphores::another_kind_is_an_error"],
        spared by ["semaphores::as_many_hold_as_there_are_permits"];
}

/// Renews and vouches for leases that have ended.
#[derive(Default)]
pub(super) struct NobodyLoses;

impl Breakage for NobodyLoses {
    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        store.renew(leases, WITHIN)?;
        Ok(leases.iter().map(|lease| Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted: false }).collect())
    }

    fn fence(&self, _: &dyn BlockingBackend, _: &Lease) -> Result<Fenced, BackendError> {
        Ok(Fenced::Acknowledged)
    }
}

/// A writer that becomes a reader is one only by its own account.
#[derive(Default)]
struct StaysAWriter;

impl Breakage for StaysAWriter {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        if claim.replaces.is_none() || claim.terms.mode != Mode::Shared {
            return store.acquire(claim, WITHIN);
        }
        let terms = Terms { mode: Mode::Exclusive, ..claim.terms };
        Ok(in_terms_of(claim, store.acquire(&Claim { terms, ..claim.clone() }, WITHIN)?))
    }
}

/// Permits that are given back are not free: the store keeps the lease of all of them.
#[derive(Default)]
struct TakesNothingBack;

impl Breakage for TakesNothingBack {
    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        let (Some(_), Mode::Permits { count, .. }) = (claim.replaces, claim.terms.mode) else {
            return store.acquire(claim, WITHIN);
        };
        let kept = Slots::new(0..count.get());
        let answer = forced(store, claim)?;
        Ok(regrant(answer, |lease, valid_for| (Lease { slots: kept, ..lease }, valid_for)))
    }
}
