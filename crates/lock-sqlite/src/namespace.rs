//! The offset between the clock of this process, in its time namespace, and that of the machine.

use lock_core::BackendError;
#[cfg(target_os = "linux")]
use lock_core::{ErrorKind, Operation};

#[cfg(target_os = "linux")]
use crate::error::{refusal, unknown};

/// What the kernel says about the time namespaces of a process.
///
/// # Source
/// `time_namespaces(7)` of the Linux manual pages.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has them"))]
struct Namespaces {
    own: String,
    for_children: String,
    /// The offsets of the namespace for children.
    offsets: String,
}

/// The nanoseconds by which `CLOCK_BOOTTIME` is ahead of the machine's here.
///
/// # Errors
/// `Config` if it is not known. A wrong guess would make the leases of others look expired.
#[cfg(target_os = "linux")]
pub(crate) fn boottime_shift() -> Result<i64, BackendError> {
    let refuse = |message: String| {
        refusal(Operation::Connect, ErrorKind::Config, message)
            .with_remedy("start this program in its own time namespace from the beginning, or in the machine's")
    };
    match Namespaces::read() {
        Ok(Some(namespaces)) => namespaces.boottime_shift().map_err(refuse),
        Ok(None) => Ok(0),
        Err(error) => Err(unknown("the time namespace of this process", "/proc/self", error)),
    }
}

/// There are none here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn boottime_shift() -> Result<i64, BackendError> {
    Ok(0)
}

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has them"))]
impl Namespaces {
    /// None if the kernel has no time namespaces.
    #[cfg(target_os = "linux")]
    fn read() -> std::io::Result<Option<Self>> {
        let link = |name| std::fs::read_link(name).map(|link| link.to_string_lossy().into_owned());
        let own = match link("/proc/self/ns/time") {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            own => own?,
        };
        let for_children = link("/proc/self/ns/time_for_children")?;
        let offsets = std::fs::read_to_string("/proc/self/timens_offsets")?;
        Ok(Some(Self { own, for_children, offsets }))
    }

    fn boottime_shift(&self) -> Result<i64, String> {
        if self.own != self.for_children {
            return Err("this process has made a time namespace that it is not in".to_owned());
        }
        boottime_of(&self.offsets).ok_or_else(|| format!("{:?} has no boottime offset", self.offsets))
    }
}

/// Each line is a clock, whole seconds that may be negative, and nanoseconds that are added to them.
fn boottime_of(offsets: &str) -> Option<i64> {
    offsets.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        // The first kernels with namespaces wrote the numbers of clocks instead of their names.
        fields.next().filter(|clock| ["boottime", "7"].contains(clock))?;
        let mut number = || fields.next()?.parse::<i64>().ok();
        number()?.checked_mul(1_000_000_000)?.checked_add(number()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shift(own: &str, for_children: &str, offsets: &str) -> Result<i64, String> {
        let [own, for_children, offsets] = [own, for_children, offsets].map(str::to_owned);
        Namespaces { own, for_children, offsets }.boottime_shift()
    }

    #[test]
    fn the_offset_of_boottime_is_read_in_full() {
        let none = "monotonic           0         0\nboottime            0         0\n";
        assert_eq!(boottime_of(none), Some(0));
        assert_eq!(boottime_of("monotonic 5 6\nboottime 100 7\n"), Some(100_000_000_007));
        assert_eq!(boottime_of("1 5 6\n7 100 7\n"), Some(100_000_000_007));
        assert_eq!(boottime_of("boottime        -3 999999999\n"), Some(-2_000_000_001));
        for nonsense in
            ["", "monotonic 0 0", "boottime", "boottime 1", "boottime x 0", "boottime 9223372036854775807 0"]
        {
            assert_eq!(boottime_of(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn the_offset_of_another_namespace_is_not_taken_for_ones_own() {
        let offsets = "boottime 100 0";
        assert_eq!(shift("time:[1]", "time:[1]", offsets), Ok(100_000_000_000));
        assert!(shift("time:[1]", "time:[2]", offsets).is_err());
        assert!(shift("time:[1]", "time:[1]", "").is_err());
    }
}
