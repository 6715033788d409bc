//! An outage of the store, as found by callers that can do without it.

use std::fmt;
use std::time::Duration;

use lock_core::{BackendError, Moment};

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// When a caller of a client found its store unreachable, and with which error. All callers that can continue without the store share it, so
/// only one of them has to wait for the failure.
#[derive(Clone, Default)]
pub struct Outage(Arc<Mutex<Option<(Moment, BackendError)>>>);

impl Outage {
    /// For how long the others believe the one that found the store unreachable. Chosen: long enough that callers need not find out
    /// one by one, and short beside an outage that matters.
    pub const BELIEVED_FOR: Duration = Duration::from_secs(2);

    /// The error, if the store is believed to be unreachable, for a caller that asks the store otherwise. When that time is over, the
    /// first such caller is to ask again, and the others believe it for as long once more.
    pub fn believed(&self, now: Moment) -> Option<BackendError> {
        let mut found = self.lock();
        let (at, error) = found.as_mut()?;
        if now < *at + Self::BELIEVED_FOR {
            return Some(error.clone());
        }
        *at = now;
        None
    }

    /// The same for a caller that does not ask the store.
    pub fn known(&self, now: Moment) -> Option<BackendError> {
        let found = self.lock();
        let is_believed = |(at, _): &&(Moment, BackendError)| now < *at + Self::BELIEVED_FOR;
        found.as_ref().filter(is_believed).map(|(_, error)| error.clone())
    }

    /// The store was found unreachable.
    pub fn found(&self, now: Moment, error: &BackendError) {
        *self.lock() = Some((now, error.clone()));
    }

    /// The store has answered.
    pub fn end(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Moment, BackendError)>> {
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
    use lock_core::{Effect, ErrorKind, Operation};

    use super::*;

    #[test]
    fn one_caller_asks_again_while_the_others_believe_it() {
        let (outage, others) = (Outage::default(), |outage: &Outage| outage.clone());
        let at = |millis| Moment::ORIGIN + Duration::from_millis(millis);
        let error = BackendError::new("test", Operation::Acquire, ErrorKind::Unreachable, Effect::None, "no route");
        assert_eq!([0, 9_000].map(|now| outage.believed(at(now))), [None, None]);
        outage.found(at(10_000), &error);
        let error = Some(error);
        assert_eq!([outage.believed(at(10_000)), others(&outage).believed(at(11_999))], [error.clone(), error.clone()]);
        assert_eq!([11_999, 12_000].map(|now| outage.known(at(now))), [error.clone(), None]);
        assert_eq!(outage.believed(at(12_000)), None, "it asks");
        assert_eq!([12_000, 13_999].map(|now| others(&outage).believed(at(now))), [error.clone(), error]);
        outage.end();
        assert_eq!([others(&outage).believed(at(13_999)), outage.known(at(13_999))], [None, None]);
    }
}
