//! Whole listings of a store, and what has happened between two of them.

use std::time::Duration;

#[both]
use lock_core::AsyncBackend;
use lock_core::BackendError;
use lock_core::inspect::watch::Change;
use lock_core::inspect::{Listing, Query, Watch};
use lock_host::{Clock, HostClock};
use lock_kit::Slot;

use super::both;

/// Lists the held locks that match a query: all pages from its cursor on. Each page may take as long as `within`.
///
/// # Errors
/// The error of the store for the first page that fails.
///
/// # Cancel safety
/// Changes nothing.
///
/// # Blocking
/// At most for as long as `within` for each page.
#[both]
pub async fn list_all(store: &dyn AsyncBackend, mut query: Query, within: Duration) -> Result<Listing, BackendError> {
    let (asked, mut entries) = (HostClock.now(), Vec::new());
    loop {
        let page = store.list(&query, within).await?;
        entries.extend(page.entries);
        let Some(next) = page.next else { return Ok(Listing::new(asked, HostClock.now(), entries)) };
        query = query.after(next);
    }
}

/// Returns the changes from the last listing of a watch to this one, which takes its place.
///
/// It asks the store who revoked each lease that has ended, and each answer may take as long as `within`. After an error it asks no more, and
/// the remaining leases [ended](super::super::watch::Happened::Ended). A lock that marks the [`Slot`] of a job is kept for a set time, so its end counts
/// as a release.
///
/// # Cancel safety
/// If the future is dropped, these changes are not reported again.
///
/// # Blocking
/// At most for as long as `within` for each lease that has ended.
#[both]
pub async fn next_changes(
    store: &dyn AsyncBackend,
    watch: &mut Watch,
    listing: Listing,
    within: Duration,
) -> Vec<Change> {
    let mut changes = watch.next(listing, |lock| Slot::marked_by(lock).is_some());
    // Thousands of leases may have ended.
    let mut answers = true;
    for change in &mut changes {
        let revoked_by = match change.ended() {
            _ if !answers => Err(()),
            Some(token) => store.revoked_by(&change.name, token, within).await.map_err(drop),
            None => Ok(None),
        };
        answers = revoked_by.is_ok();
        change.settle(revoked_by);
    }
    changes
}
