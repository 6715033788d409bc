//! The budget of a ttl: time for work under a lease, and for stopping that work before the lease can end.

use std::time::Duration;

use crate::policy::drift;
use crate::{Capabilities, Invalid, Ttl};

const GRACE_DEFAULT_MAX: Duration = Duration::from_secs(5);
/// Chosen: a busy machine may take a quarter of a second from the moment a signal is due until the process has ended.
const MARGIN_MIN: Duration = Duration::from_millis(250);
const MARGIN_MAX: Duration = Duration::from_secs(1);
/// How long a request for the lock may take, since a lease counts from when it was requested. Chosen: many times what a
/// healthy store takes; a slower one gets further chances, because the lease is renewed.
const REQUEST: Duration = Duration::from_millis(100);

/// The part of each lease that is reserved for stopping the work, so that it has ended before the lease can end: the work is
/// asked to stop `grace + margin` before the end of its lease, and must be over `margin` before.
///
/// `leasehold run` ends its command by this rule, and a leader steps down by it.
///
/// ```
/// use lock_core::{Budget, Ttl};
/// use std::time::Duration;
///
/// let budget = Budget::new(Ttl::DEFAULT, None)?; // 30 s
/// assert_eq!((budget.grace, budget.margin), (Duration::from_secs(5), Duration::from_secs(1)));
/// assert_eq!(budget.left(Duration::from_secs(20)), Duration::from_secs(14));
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// How long the work has to stop by itself.
    pub grace: Duration,
    /// How long before the end of the lease everything is over.
    pub margin: Duration,
}

impl Budget {
    /// The shortest time that the work gets before the first renewal must have succeeded. Chosen: one slow renewal would
    /// use up anything shorter.
    pub const USABLE_MIN: Duration = Duration::from_secs(1);

    /// Divides `ttl`: the grace is a sixth of it, at most 5 s, unless given; the margin a tenth, 250 ms to 1 s.
    ///
    /// # Errors
    /// `Invalid` if less than a second would be left for the first renewal, or less than half of the ttl: the lease is
    /// renewed when a third of it has passed, and work must not be stopped for a renewal that is a little late.
    pub fn new(ttl: Ttl, grace: Option<Duration>) -> Result<Self, Invalid> {
        let budget = Self::divide(ttl, grace);
        if budget.suffices(ttl) { Ok(budget) } else { Err(too_short(ttl, grace)) }
    }

    /// Divides the leases of a store, which may be shorter than they are asked for.
    ///
    /// # Errors
    /// `Invalid` if the leases leave too little time, as for [`new`](Self::new).
    pub fn of_store(store: &Capabilities, ttl: Ttl, grace: Option<Duration>) -> Result<Self, Invalid> {
        let lasts = store.shortened(ttl);
        let budget = Self::new(lasts, grace);
        if lasts == ttl {
            return budget;
        }
        budget.map_err(|_| {
            let problem =
                format!("{} keeps it no longer, which is too short to stop the work if renewal fails", store.backend);
            Invalid::new("lease", lasts, problem, "use a longer session, or a shorter grace")
        })
    }

    /// The same division, whether or not it leaves enough time to work.
    pub fn divide(ttl: Ttl, grace: Option<Duration>) -> Self {
        let whole = ttl.get();
        let grace = grace.unwrap_or_else(|| (whole / 6).min(GRACE_DEFAULT_MAX));
        Self { grace, margin: (whole / 10).clamp(MARGIN_MIN, MARGIN_MAX) }
    }

    fn suffices(self, ttl: Ttl) -> bool {
        let whole = ttl.get();
        let usable = self.left(whole).saturating_sub(drift(whole) + REQUEST);
        usable >= Self::USABLE_MIN && usable >= whole / 2
    }

    /// How much of the lease is reserved.
    pub fn kept(self) -> Duration {
        self.grace.saturating_add(self.margin)
    }

    /// How long the work may continue under a lease that ends after `remaining`.
    pub fn left(self, remaining: Duration) -> Duration {
        remaining.saturating_sub(self.kept())
    }

    /// Whether a lease that ends after `remaining` is long enough to begin the work: one that another holder handed over, or
    /// that arrived late, may be too short, and has to be renewed first.
    pub fn is_enough(self, remaining: Duration) -> bool {
        self.left(remaining) >= Self::USABLE_MIN
    }

    /// The smallest ttl that [`Budget::new`] accepts with this grace, if there is one.
    pub fn smallest_ttl(grace: Option<Duration>) -> Option<Ttl> {
        let suffices = |millis| {
            let ttl = Ttl::new(Duration::from_millis(millis)).ok()?;
            Self::divide(ttl, grace).suffices(ttl).then_some(ttl)
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
}

fn too_short(ttl: Ttl, grace: Option<Duration>) -> Invalid {
    let remedy = Budget::smallest_ttl(grace).map_or_else(
        || "give a shorter grace".to_owned(),
        |smallest| format!("give a ttl of {smallest} or more, or a shorter grace"),
    );
    let problem =
        "it is too short to be renewed in time, since its end is reserved for stopping the work if renewal fails";
    Invalid::new("ttl", ttl, problem, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(ttl: &str, grace: Option<u64>) -> Result<Budget, Invalid> {
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
    fn too_little_to_work_is_refused() {
        for (ttl, grace) in [("1s", None), ("30s", Some(29_500)), ("30s", Some(60_000)), ("30s", Some(20_000))] {
            let refusal = budget(ttl, grace).unwrap_err().to_string();
            assert!(refusal.contains("ttl") && refusal.contains("grace"), "{refusal}");
        }
    }

    #[test]
    fn the_smallest_ttl_is_where_refusals_end() {
        for grace in [None, Some(Duration::ZERO), Some(Duration::from_secs(20))] {
            let smallest = Budget::smallest_ttl(grace).unwrap();
            assert!(Budget::new(smallest, grace).is_ok());
            let shorter = Ttl::new(smallest.get() - Duration::from_millis(1)).unwrap();
            let refusal = Budget::new(shorter, grace).unwrap_err().to_string();
            assert!(refusal.contains(&format!(" ttl of {smallest} or more")), "{refusal}");
        }
        assert_eq!(Budget::smallest_ttl(Some(Duration::MAX)), None);
    }

    #[test]
    fn what_a_quick_store_grants_for_the_smallest_ttl_is_usable() {
        let smallest = Budget::smallest_ttl(None).unwrap();
        let granted = smallest.get() - drift(smallest.get()) - REQUEST;
        assert!(Budget::new(smallest, None).unwrap().is_enough(granted));
    }

    #[test]
    fn the_work_ends_before_its_lease() {
        let (budget, second) = (budget("30s", None).unwrap(), Duration::from_secs(1));
        assert_eq!(
            (budget.kept(), budget.left(30 * second), budget.left(5 * second)),
            (6 * second, 24 * second, Duration::ZERO)
        );
        assert!(budget.is_enough(7 * second) && !budget.is_enough(7 * second - Duration::from_millis(1)));
    }
}
