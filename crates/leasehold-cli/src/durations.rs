//! Durations as this program reads and shows them.

use std::time::Duration;

use humantime::{FormattedDuration, format_duration};
use leasehold::Invalid;
use leasehold::clock::parse_duration;

/// In seconds.
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// Reads a duration; an error calls it `what`.
pub(crate) fn duration(what: &'static str) -> impl Fn(&str) -> Result<Duration, Invalid> + Clone {
    move |text| parse_duration(what, text)
}

/// A duration for display, to the millisecond.
pub(crate) fn human(duration: Duration) -> FormattedDuration {
    format_duration(Duration::from_millis(millis(duration)))
}

/// How long something took, for display: to a tenth of a second, and below a second to a hundredth.
pub(crate) fn rough(duration: Duration) -> FormattedDuration {
    let nearest = |step: u64| (millis(duration).saturating_add(step / 2) / step).saturating_mul(step);
    let hundredths = nearest(10);
    human(Duration::from_millis(if hundredths < 1000 { hundredths } else { nearest(100) }))
}

/// A duration for display, rounded down to whole seconds, or to whole minutes from an hour on, or to whole hours from a day on; at
/// least one second.
pub(crate) fn whole_seconds(duration: Duration) -> FormattedDuration {
    let seconds = duration.as_secs().max(1);
    let unit = if seconds >= DAY {
        HOUR
    } else if seconds >= HOUR {
        60
    } else {
        1
    };
    human(Duration::from_secs(seconds - seconds % unit))
}

/// How long something has lasted, for display: [`whole_seconds`], and `0s` in the first second.
pub(crate) fn age(duration: Duration) -> FormattedDuration {
    if duration.as_secs() == 0 { human(Duration::ZERO) } else { whole_seconds(duration) }
}

/// A duration for display, in whole seconds rounded up.
pub(crate) fn whole_seconds_up(duration: Duration) -> FormattedDuration {
    human(Duration::from_millis(millis(duration).div_ceil(1000) * 1000))
}

/// A duration for scripts.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_for_people() {
        let table =
            [(0, "0s"), (4, "0s"), (6, "10ms"), (994, "990ms"), (999, "1s"), (3_049, "3s"), (3_050, "3s 100ms")];
        for (millis, text) in table {
            assert_eq!(rough(Duration::from_millis(millis)).to_string(), text, "{millis} ms");
        }
        let table = [(0, "1s"), (3599, "59m 59s"), (7_325, "2h 2m"), (86_399, "23h 59m"), (8 * DAY - 73, "7days 23h")];
        for (seconds, text) in table {
            assert_eq!(whole_seconds(Duration::from_secs(seconds)).to_string(), text, "{seconds} s");
        }
        let ages = [999, 1_999, 7_325_000].map(|millis| age(Duration::from_millis(millis)).to_string());
        assert_eq!(ages, ["0s", "1s", "2h 2m"]);
    }
}
