//! How long until a waiter could be served.

use std::time::Duration;

use futures_util::future::try_join_all;
use lock_core::{Limit, Mode};
use tonic::Status;

use crate::cluster::Cluster;
use crate::entry::Entry;
use crate::listed::Listed;

/// How long it takes at least until the first waiter fits, or a claim of this mode if nobody waits: until enough leases have ended, unless they
/// are renewed. The entry with the key `left` does not wait any more. `None` if it fits now, or if not all entries are listed.
pub(crate) async fn until_served(
    cluster: &Cluster,
    listed: &Listed,
    left: Option<&[u8]>,
    mode: Mode,
) -> Result<Option<Duration>, Status> {
    let (holders, waiters): (Vec<&Entry>, Vec<&Entry>) = listed.entries.iter().partition(|entry| listed.holds(entry));
    let first = waiters.iter().find(|waiter| Some(&*waiter.key) != left).map_or(mode, |first| first.mode());
    // The limit may have been set to another one since the waiter asked.
    let first = listed.under_limit(first);
    let mut excess = match first {
        Mode::Shared if holders.iter().all(|holder| holder.mode() == Mode::Shared) => 0,
        Mode::Exclusive | Mode::Shared => holders.len(),
        Mode::Permits { .. } | _ => {
            let taken: u32 = holders.iter().map(|holder| holder.mode().count()).sum();
            let limit = first.limit().map_or(u32::MAX, Limit::get);
            usize::try_from(taken.saturating_add(first.count()).saturating_sub(limit)).unwrap_or(usize::MAX)
        }
    };
    if excess == 0 || !listed.is_complete() {
        return Ok(None);
    }
    let remaining = async |holder: &Entry| -> Result<_, Status> {
        Ok((cluster.leases.remaining(holder.lease).await?.unwrap_or_default(), holder.mode()))
    };
    let mut ends = try_join_all(holders.into_iter().map(remaining)).await?;
    ends.sort_by_key(|(remaining, _)| *remaining);
    let enough = ends.into_iter().find(|(_, mode)| {
        let freed = mode.limit().map_or(1, |_| usize::try_from(mode.count()).unwrap_or(usize::MAX));
        excess = excess.saturating_sub(freed);
        excess == 0
    });
    Ok(enough.map(|(remaining, _)| remaining))
}
