//! What is known of a process of this host.

use std::time::Duration;

use lock_core::Holder;
use lock_host::{Clock, HostClock};

use crate::locks::is_gone;

/// How long ago the process of a holder was started; `None` for one of another host, and where the system does not say.
///
/// It has held its lock for no longer than that.
pub(crate) fn started(holder: &Holder) -> Option<Duration> {
    let Holder::Leasehold { note, .. } = holder else { return None };
    is_gone(holder).filter(|gone| !gone)?;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", note.pid()?)).ok()?;
    let ticks = start_ticks(&stat)?;
    let per_second = rustix::param::clock_ticks_per_second();
    let after_boot = Duration::from_millis(ticks.checked_mul(1000)?.checked_div(per_second)?);
    // The clock of the host counts from boot, suspended time included, as the system does here.
    Some(Duration::from_nanos(HostClock.now().as_nanos()).saturating_sub(after_boot))
}

/// # Source
/// `proc_pid_stat(5)` of the Linux manual pages: the 22nd field. The second one may contain spaces and brackets.
fn start_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use lock_core::{FencingToken, Note, TokenRange};

    use super::*;

    fn holder(note: &str) -> Holder {
        let token = FencingToken::new(1).unwrap();
        Holder::Leasehold { tokens: TokenRange::new(token, token).unwrap(), note: Note::from_wire(note) }
    }

    #[test]
    fn the_start_of_a_process_is_read_whatever_its_name() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(start_ticks(stat), Some(4711));
        assert_eq!(start_ticks(""), None);
    }

    #[test]
    fn this_process_was_started_a_moment_ago() {
        let here = format!("{}@{}", std::process::id(), lock_host::host_name());
        let ago = started(&holder(&here));
        assert!(ago.is_some_and(|ago| ago < Duration::from_secs(3600)), "{ago:?}");
        assert_eq!(started(&holder("1@no-such-host")), None);
    }
}
