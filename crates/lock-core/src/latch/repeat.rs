//! How long a request about a latch is repeated.

use std::time::Duration;

use crate::policy::{Dice, pace};
use crate::{BackendError, Effect, Moment};

/// For how long a request that fails is repeated. Chosen: a store that restarts, or a connection that breaks, is back by
/// then.
pub const REPEAT_FOR: Duration = Duration::from_secs(10);

/// One request about a latch that is repeated until the store has answered. Each repetition is the same request, so it takes
/// effect once.
#[derive(Debug)]
pub struct Repeat {
    until: Moment,
    tries: u32,
    dice: Dice,
    /// The latest failure after which the request may have taken effect.
    unsure: Option<BackendError>,
}

impl Repeat {
    /// A request that is about to be sent for the first time. The seed is for jitter.
    pub fn new(now: Moment, seed: u64) -> Self {
        Self { until: now + REPEAT_FOR, tries: 0, dice: Dice::new(seed), unsure: None }
    }

    /// The request failed. Returns when to send it again.
    ///
    /// # Errors
    /// If it is not to be sent again: because the error is permanent, or the time is over. If an earlier attempt may have
    /// taken effect, its error is returned.
    pub fn failed(&mut self, now: Moment, error: BackendError) -> Result<Moment, BackendError> {
        if error.effect() == Effect::Unknown {
            self.unsure = Some(error.clone());
        }
        let again_at = now + self.dice.jittered(pace::retry(self.tries));
        if !error.kind().is_transient() || again_at >= self.until {
            return Err(self.unsure.take().unwrap_or(error));
        }
        self.tries += 1;
        Ok(again_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, Operation};

    fn error(kind: ErrorKind) -> BackendError {
        BackendError::new("test", Operation::Latch, kind, Effect::None, "on purpose")
    }

    #[test]
    fn a_request_is_repeated_at_growing_distances_for_some_seconds() {
        let (mut now, mut tries) = (Moment::ORIGIN, 0);
        let mut repeat = Repeat::new(now, 1);
        while let Ok(again_at) = repeat.failed(now, error(ErrorKind::Unreachable)) {
            assert!(again_at > now && again_at < Moment::ORIGIN + REPEAT_FOR);
            (now, tries) = (again_at, tries + 1);
        }
        assert!((10..40).contains(&tries) && now > Moment::ORIGIN + REPEAT_FOR / 2, "{tries} until {now:?}");
    }

    #[test]
    fn what_may_have_happened_is_never_said_not_to_have() {
        let mut repeat = Repeat::new(Moment::ORIGIN, 1);
        assert_eq!(repeat.failed(Moment::ORIGIN, error(ErrorKind::Denied)), Err(error(ErrorKind::Denied)));
        repeat.failed(Moment::ORIGIN, error(ErrorKind::Timeout)).unwrap();
        assert_eq!(repeat.failed(Moment::ORIGIN, error(ErrorKind::Denied)), Err(error(ErrorKind::Timeout)));
    }
}
