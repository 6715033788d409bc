//! What the callers of a client know of its store, if they can do without it.

use std::fmt;
use std::time::Duration;

use lock_core::Moment;

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// When a caller of a client found its store unreachable, shared by all its callers that can do without the store: one finds out, and
/// the others need not wait for that.
#[derive(Clone, Default)]
pub struct Outage(Arc<Mutex<Option<Moment>>>);

impl Outage {
    /// For how long the others believe the one that found the store unreachable. Chosen: long enough that callers need not find out
    /// one by one, and short beside an outage that matters.
    pub const BELIEVED_FOR: Duration = Duration::from_secs(2);

    /// Whether the store is believed to be unreachable. When that time is over, the first caller is to ask the store again, and the
    /// others believe it for as long once more.
    pub fn is_believed(&self, now: Moment) -> bool {
        let mut found = self.lock();
        let is_over = found.is_some_and(|at| at + Self::BELIEVED_FOR <= now);
        if is_over {
            *found = Some(now);
        }
        found.is_some() && !is_over
    }

    /// The store was found unreachable.
    pub fn found(&self, now: Moment) {
        *self.lock() = Some(now);
    }

    /// The store has answered.
    pub fn end(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Moment>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Outage").field(&*self.lock()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_asks_again_while_the_others_believe_it() {
        let (outage, others) = (Outage::default(), |outage: &Outage| outage.clone());
        let at = |millis| Moment::ORIGIN + Duration::from_millis(millis);
        assert!(!outage.is_believed(at(0)) && !outage.is_believed(at(9_000)));
        outage.found(at(10_000));
        assert!(outage.is_believed(at(10_000)) && others(&outage).is_believed(at(11_999)));
        assert!(!outage.is_believed(at(12_000)), "it asks");
        assert!(others(&outage).is_believed(at(12_000)) && others(&outage).is_believed(at(13_999)));
        outage.end();
        assert!(!others(&outage).is_believed(at(13_999)));
    }
}
