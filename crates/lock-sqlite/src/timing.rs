//! The clock that times leases.

use std::io;
use std::sync::Arc;

use lock_core::{BackendError, FencingToken, Moment};
use lock_host::{BOOT_ID, Clock, HostClock, SharedClock, boot_id, since_1970};

use crate::error::unknown;
use crate::namespace::boottime_shift;

/// What stands for a boot if the system has no identifier for it.
pub(crate) const NO_BOOT: &str = "wall-clock";

/// The clock of the leases in a file, and the boot of the machine that it counts from.
///
/// All clients of a file must use the same clock, which [`Timing::of_host`] provides. A lease of another boot has
/// ended if the file shows that the machine was started since. It lasts as long as it says otherwise: containers may have another
/// identifier of the same boot.
///
/// If the system has no identifier for its boots (macOS), leases are timed by the wall clock instead: they survive a
/// reboot until they expire, and end early or late by as much as that clock is set.
#[derive(Clone, Debug)]
pub struct Timing {
    clock: SharedClock,
    boot: Arc<str>,
}

impl Timing {
    /// The clock of this machine, which is the same in all its containers, and its boot as this process sees it.
    ///
    /// # Errors
    /// `Config` if Linux does not tell its boot or the offset of this process's time namespace, because `/proc` is not mounted in full;
    /// `Unavailable` if this process has too many files open to ask.
    pub fn of_host() -> Result<Self, BackendError> {
        Self::of_boot(boot_id())
    }

    /// Only a system without boot ids has its leases timed by the wall clock: others of this machine know theirs.
    fn of_boot(id: io::Result<Option<String>>) -> Result<Self, BackendError> {
        Ok(match id.map_err(|error| unknown("the boot of this machine", BOOT_ID, error))? {
            Some(boot) => Self { clock: Arc::new(MachineClock { shift: boottime_shift()? }), boot: boot.into() },
            None => Self { clock: Arc::new(WallClock), boot: NO_BOOT.into() },
        })
    }

    /// Another clock, for tests.
    pub fn with_clock(clock: SharedClock) -> Self {
        Self { clock, boot: boot_id().ok().flatten().as_deref().unwrap_or(NO_BOOT).into() }
    }

    /// The same clock in another boot, for tests.
    #[must_use]
    pub fn with_boot(self, boot: &str) -> Self {
        Self { clock: self.clock, boot: boot.into() }
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(crate) fn boot(&self) -> &str {
        &self.boot
    }
}

/// The clock that counts suspend, without the offset of any time namespace.
#[derive(Debug)]
struct MachineClock {
    /// By how many nanoseconds the clock is ahead in this namespace.
    shift: i64,
}

impl Clock for MachineClock {
    fn now(&self) -> Moment {
        Moment::from_nanos(HostClock.now().as_nanos().saturating_add_signed(self.shift.saturating_neg()))
    }
}

/// The wall clock, for systems that cannot tell one boot from another.
#[derive(Debug)]
struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Moment {
        Moment::ORIGIN + since_1970()
    }
}

/// The wall clock in microseconds since 1970, within the bounds of a token. Nothing but tokens depends on it.
pub(crate) fn wall_micros() -> u64 {
    u64::try_from(since_1970().as_micros()).unwrap_or(u64::MAX).min(FencingToken::MAX.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_a_clock_and_a_boot() {
        let timing = Timing::of_host().unwrap();
        assert!(timing.now() > Moment::ORIGIN);
        assert_eq!(timing.boot(), Timing::of_host().unwrap().boot());
        assert_eq!(timing.with_boot("other").boot(), "other");
    }

    #[test]
    fn a_boot_that_linux_does_not_tell_is_an_error_and_never_the_wall_clock() {
        use lock_core::ErrorKind;
        use rustix::io::Errno;

        for (errno, kind, remedy) in [
            (Errno::NOENT, ErrorKind::Config, "mount /proc"),
            (Errno::ACCESS, ErrorKind::Config, "mount /proc"),
            (Errno::MFILE, ErrorKind::Unavailable, "ulimit"),
            (Errno::NFILE, ErrorKind::Unavailable, "ulimit"),
        ] {
            let error = Timing::of_boot(Err(errno.into())).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(BOOT_ID) && error.remedy().unwrap().contains(remedy), "{error}");
        }
        assert_eq!(Timing::of_boot(Ok(None)).unwrap().boot(), NO_BOOT);
    }

    #[test]
    fn the_wall_clock_is_a_token() {
        assert!(FencingToken::new(wall_micros()).is_ok());
    }
}
