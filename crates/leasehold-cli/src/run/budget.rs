//! The budget of a lease, as `leasehold run` divides it: SIGTERM `grace + margin` before its end, SIGKILL `margin` before.

use std::time::Duration;

use leasehold::Ttl;
use leasehold::kit::Budget;

use crate::durations::human;
use crate::exit::{Exit, Failure};

/// Divides `ttl`, see [`Budget::new`].
///
/// # Errors
/// Those of an invalid command line, if too little time would be left for the command.
pub(super) fn divide(ttl: Ttl, grace: Option<Duration>) -> Result<Budget, Failure> {
    Budget::new(ttl, grace).map_err(|_| too_short(ttl, grace))
}

/// How long before its end a run counts as one that has taken all of its time. The end counts from the grant, of which this
/// program hears later.
pub(super) fn end_of_run(budget: Budget) -> Duration {
    budget.kept().saturating_add(Budget::USABLE_MIN)
}

/// The shortest run that a command can have, with the time for ending it.
pub(super) fn shortest_run(budget: Budget) -> Duration {
    budget.kept().saturating_add(2 * Budget::USABLE_MIN)
}

fn too_short(ttl: Ttl, grace: Option<Duration>) -> Failure {
    let smallest = match (Budget::smallest_ttl(grace), grace) {
        (Some(smallest), None) => format!("the smallest --ttl is {smallest}"),
        (Some(smallest), Some(_)) => format!("the smallest --ttl with this --grace is {smallest}"),
        (None, _) => "no ttl is long enough for this --grace".to_owned(),
    };
    let budget = Budget::divide(ttl, grace);
    let message = format!(
        "a ttl of {ttl} is too short to be renewed in time, since its last {} (a grace of {} and a margin of {}) are \
         reserved for ending the command if renewal fails; {smallest}; use a longer --ttl, and a longer max_ttl if \
         the URL sets one, or a shorter --grace (the lease is renewed, so the command may run longer)",
        human(budget.kept()),
        human(budget.grace),
        human(budget.margin),
    );
    Failure::new(Exit::Usage, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_to_work_is_refused_by_name() {
        let refusal = |ttl: &str, grace: Option<u64>| {
            let failure = divide(ttl.parse().unwrap(), grace.map(Duration::from_millis)).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains("ttl") && failure.message.contains("grace"), "{failure}");
            failure.message
        };
        let smallest = Budget::smallest_ttl(None).unwrap();
        assert!(refusal("1s", None).contains(&format!("the smallest --ttl is {smallest};")));
        for grace in [20_000, 29_500, 60_000] {
            assert!(refusal("30s", Some(grace)).contains("the smallest --ttl with this --grace is "));
        }
        assert!(divide(Ttl::DEFAULT, None).is_ok());
    }
}
