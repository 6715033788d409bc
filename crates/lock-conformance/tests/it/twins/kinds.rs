//! Twins that are wrong about readers and permits, as users of the facades see it.

use lock_core::{BackendError, BlockingBackend, Fenced, Lease, Renewed};

use super::cover::{Breakage, WITHIN};
use super::holding::ReleasesNothing;
use super::lasting::RenewsNothing;
use super::modes::{
    GivesSlotsTwice, GivesUpForAnUpgrade, GrantsOneMore, GrantsToReaders, KeepsKindsApart, Overtakes, TakesAnyLimit,
    UpgradesBesideOthers,
};
use super::twins;

twins! {
    one_that_lets_readers_in_beside_a_writer: GrantsToReaders,
        caught by [
            "reading::readers_exclude_writers_and_not_each_other", "reading::a_mutex_is_the_write_side"
        ],
        spared by ["semaphores::as_many_hold_as_there_are_permits"];
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
        caught by ["reading::closing_ends_readers", "semaphores::closing_ends_permits"],
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
