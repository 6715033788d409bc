//! Durations as this program shows them.

use std::time::Duration;

use humantime::{FormattedDuration, format_duration};

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

/// A duration for display, in whole seconds rounded down, at least one.
pub(crate) fn whole_seconds(duration: Duration) -> FormattedDuration {
    human(Duration::from_secs(duration.as_secs().max(1)))
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
    }
}
