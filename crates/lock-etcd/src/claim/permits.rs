//! Claims for permits: they take slots when their turn has come.

use lock_core::{BackendError, Limit, Mode};

use super::{Asking, Look, failed};
use crate::listed::Listed;
use crate::place::Place;

impl Asking<'_> {
    /// Takes the lowest free slots for a waiter whose turn has come. The next look finds out whether others were faster.
    pub(super) async fn take_slots(
        &self,
        place: &mut Place,
        mode: Mode,
        listed: &Listed,
    ) -> Result<Look, BackendError> {
        let (count, limit) = (mode.count(), mode.limit().map_or(0, Limit::get));
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let taken = self.cluster.taken_slots(&place.directory).await.map_err(failed)?;
        let mut free: Vec<(u32, i64)> =
            (0..limit).filter(|slot| !taken.contains_key(slot)).map(|slot| (slot, 0)).take(count).collect();
        if free.len() < count {
            // Somebody has deleted an entry by hand, and left its slots.
            let all = self.cluster.list_all(&place.directory).await.map_err(failed)?;
            let is_owned = |slot: &u32| all.entries.iter().any(|entry| entry.slots().contains(slot));
            free.extend(taken.into_iter().filter(|(slot, _)| *slot < limit && !is_owned(slot)));
        }
        free.sort_unstable();
        free.truncate(count);
        if free.len() == count {
            let limit = (mode.limit(), listed.changes.limit_set);
            place.take_slots(self.cluster, &free, limit).await.map_err(failed)?;
        }
        Ok(Look::Again)
    }
}
