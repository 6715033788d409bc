//! How a ttl is divided: time to work, time to end the command, and a margin.

use std::time::Duration;

use lock_core::Ttl;

use crate::exit::{Exit, Failure};
use crate::report::human;

/// The least time to work that is accepted. Chosen: less would be eaten by one slow renewal.
pub(crate) const USABLE_MIN: Duration = Duration::from_secs(1);
const GRACE_DEFAULT_MAX: Duration = Duration::from_secs(5);
/// Chosen: a busy machine may take a quarter of a second from a due signal to a dead process.
const MARGIN_MIN: Duration = Duration::from_millis(250);
const MARGIN_MAX: Duration = Duration::from_secs(1);

/// What is kept of each lease for ending the command: SIGTERM `grace + margin` before its end, SIGKILL `margin` before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// How long the command has between the two signals.
    pub(crate) grace: Duration,
    /// How long before the end of the lease everything is over.
    pub(crate) margin: Duration,
}

impl Budget {
    /// Divides `ttl`: the grace is a sixth of it, at most 5 s, unless given; the margin a tenth, 250 ms to 1 s.
    ///
    /// Refused where less than a second would be left to work, or less than half of the ttl: the lease is renewed when
    /// a third of it has passed, and a command must not be ended for a renewal that is a little late.
    pub(crate) fn new(ttl: Ttl, grace: Option<Duration>) -> Result<Self, Failure> {
        let whole = ttl.get();
        let grace = grace.unwrap_or_else(|| (whole / 6).min(GRACE_DEFAULT_MAX));
        let margin = (whole / 10).clamp(MARGIN_MIN, MARGIN_MAX);
        let usable = whole.saturating_sub(grace).saturating_sub(margin);
        if usable >= USABLE_MIN && usable >= whole / 2 {
            return Ok(Self { grace, margin });
        }
        Err(Failure::new(
            Exit::Usage,
            format!(
                "a ttl of {ttl} with a grace of {} and a margin of {} leaves {} to work, which is under a second or \
                 under half of the ttl; give a longer --ttl or a shorter --grace",
                human(grace),
                human(margin),
                human(usable),
            ),
        ))
    }

    /// How much of the lease is kept.
    pub(crate) fn kept(self) -> Duration {
        self.grace + self.margin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(ttl: &str, grace: Option<u64>) -> Result<Budget, Failure> {
        Budget::new(ttl.parse().unwrap(), grace.map(Duration::from_millis))
    }

    #[test]
    fn a_ttl_is_divided() {
        let (second, milli) = (Duration::from_secs(1), Duration::from_millis(1));
        assert_eq!(budget("30s", None).unwrap(), Budget { grace: 5 * second, margin: second });
        assert_eq!(budget("3s", None).unwrap(), Budget { grace: 500 * milli, margin: 300 * milli });
        assert_eq!(budget("1h", None).unwrap(), Budget { grace: 5 * second, margin: second });
        assert_eq!(budget("30s", Some(0)).unwrap(), Budget { grace: Duration::ZERO, margin: second });
    }

    #[test]
    fn too_little_to_work_is_refused_by_name() {
        for (ttl, grace) in [("1s", None), ("30s", Some(29_500)), ("30s", Some(60_000)), ("30s", Some(20_000))] {
            let failure = budget(ttl, grace).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains("ttl") && failure.message.contains("grace"), "{failure}");
        }
    }
}
