//! How a ttl is divided: time to work, time to end the command, and a margin.

use std::time::Duration;

use lock_core::{Ttl, drift};

use crate::durations::human;
use crate::exit::{Exit, Failure};

/// The shortest time that the command gets before the first renewal must have succeeded. Chosen: one slow renewal would
/// use up anything shorter.
pub(crate) const USABLE_MIN: Duration = Duration::from_secs(1);
const GRACE_DEFAULT_MAX: Duration = Duration::from_secs(5);
/// Chosen: a busy machine may take a quarter of a second from the moment a signal is due until the process has ended.
const MARGIN_MIN: Duration = Duration::from_millis(250);
const MARGIN_MAX: Duration = Duration::from_secs(1);
/// How long a request for the lock may take, since a lease counts from when it was requested. Chosen: many times what a
/// healthy store takes; a slower one gets further chances, see `usable_deadline`.
const REQUEST: Duration = Duration::from_millis(100);

/// The part of each lease that is reserved for ending the command: SIGTERM `grace + margin` before its end, SIGKILL
/// `margin` before.
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
    /// Refused if less than a second would be left for the first renewal, or less than half of the ttl: the lease is
    /// renewed when a third of it has passed, and a command must not be ended for a renewal that is a little late.
    pub(crate) fn new(ttl: Ttl, grace: Option<Duration>) -> Result<Self, Failure> {
        let budget = Self::divide(ttl, grace);
        if budget.suffices(ttl) { Ok(budget) } else { Err(budget.too_short(ttl, grace)) }
    }

    fn divide(ttl: Ttl, grace: Option<Duration>) -> Self {
        let whole = ttl.get();
        let grace = grace.unwrap_or_else(|| (whole / 6).min(GRACE_DEFAULT_MAX));
        Self { grace, margin: (whole / 10).clamp(MARGIN_MIN, MARGIN_MAX) }
    }

    fn suffices(self, ttl: Ttl) -> bool {
        let whole = ttl.get();
        let usable = whole.saturating_sub(self.kept()).saturating_sub(drift(whole) + REQUEST);
        usable >= USABLE_MIN && usable >= whole / 2
    }

    fn too_short(self, ttl: Ttl, grace: Option<Duration>) -> Failure {
        let smallest = match (smallest_ttl(grace), grace) {
            (Some(smallest), None) => format!("the smallest --ttl is {smallest}"),
            (Some(smallest), Some(_)) => format!("the smallest --ttl with this --grace is {smallest}"),
            (None, _) => "no ttl is long enough for this --grace".to_owned(),
        };
        let Self { grace, margin } = self;
        let message = format!(
            "a ttl of {ttl} is too short to be renewed in time, since its last {} (a grace of {} and a margin of {}) are \
             reserved for ending the command if renewal fails; {smallest}; use a longer --ttl or a shorter --grace (the \
             lease is renewed, so the command may run longer)",
            human(self.kept()),
            human(grace),
            human(margin),
        );
        Failure::new(Exit::Usage, message)
    }

    /// How long before its end a run counts as one that has taken all of its time. The end counts from the grant, of which this
    /// program hears later.
    pub(crate) fn end_of_run(self) -> Duration {
        self.kept().saturating_add(USABLE_MIN)
    }

    /// The shortest run that a command can have, with the time for ending it.
    pub(crate) fn shortest_run(self) -> Duration {
        self.kept().saturating_add(2 * USABLE_MIN)
    }

    /// How much of the lease is reserved.
    pub(crate) fn kept(self) -> Duration {
        self.grace.saturating_add(self.margin)
    }
}

/// The smallest ttl that [`Budget::new`] accepts with this grace, if there is one.
pub(crate) fn smallest_ttl(grace: Option<Duration>) -> Option<Ttl> {
    let suffices = |millis| {
        let ttl = Ttl::new(Duration::from_millis(millis)).ok()?;
        Budget::divide(ttl, grace).suffices(ttl).then_some(ttl)
    };
    let (mut below, mut enough) = (Ttl::MIN.as_millis() - 1, Ttl::MAX.as_millis());
    let mut smallest = suffices(enough)?;
    // A longer ttl leaves more time, and a larger share of it.
    while enough - below > 1 {
        let middle = below.midpoint(enough);
        match suffices(middle) {
            Some(ttl) => (enough, smallest) = (middle, ttl),
            None => below = middle,
        }
    }
    Some(smallest)
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

    #[test]
    fn the_smallest_ttl_is_where_refusals_end() {
        for grace in [None, Some(Duration::ZERO), Some(Duration::from_secs(20))] {
            let smallest = smallest_ttl(grace).unwrap();
            assert!(Budget::new(smallest, grace).is_ok());
            let shorter = Ttl::new(smallest.get() - Duration::from_millis(1)).unwrap();
            let failure = Budget::new(shorter, grace).unwrap_err();
            assert!(failure.message.contains(&format!(" is {smallest};")), "{failure}");
        }
        assert_eq!(smallest_ttl(Some(Duration::MAX)), None);
    }

    #[test]
    fn what_a_quick_store_grants_for_the_smallest_ttl_is_usable() {
        let smallest = smallest_ttl(None).unwrap();
        let granted = smallest.get() - drift(smallest.get()) - REQUEST;
        assert!(granted >= Budget::new(smallest, None).unwrap().kept() + USABLE_MIN);
    }
}
