//! Whether enough is left of a lease to start a command.

use std::os::fd::AsFd;
use std::time::Duration;

use leasehold::Ttl;
use leasehold::clock::{Clock, HostClock, Moment};
use leasehold::kit::Budget;
use signal_hook::consts::{SIGCONT, SIGTSTP, SIGWINCH};

use super::channel::sleep_on;
use super::signals::{self, Signals};
use crate::exit::{Exit, Failure};
use crate::hold::Lease;

/// How often a lease that is too short is checked, if it could not be renewed at once.
const RENEWAL_POLL: Duration = Duration::from_millis(20);
/// After this many ttls without a usable lease the store is too slow: at least two renewals were sent in each.
const PATIENCE_IN_TTLS: u32 = 2;

/// Waits until enough is left of the lease to start the command: one that was handed over by another holder, or that
/// arrived late, may be short. So it is renewed at once, and if that fails, by the next regular renewal. Gives up on a signal
/// that asks for an end, and after two ttls.
pub(super) fn usable_deadline(
    lease: &impl Lease,
    ttl: Ttl,
    budget: Budget,
    signals: &mut Signals,
) -> Result<Moment, Failure> {
    let give_up_at = HostClock.now() + ttl.get() * PATIENCE_IN_TTLS;
    if !budget.is_enough(lease.deadline().since(HostClock.now())) {
        lease.renew();
    }
    loop {
        if let Some(reason) = lease.lost() {
            let message = format!("the lease was lost before the command was started: {reason}; run it again");
            return Err(Failure::new(Exit::Lost, message));
        }
        if let Some(signal) = signals.peek().iter().copied().find(|&signal| asks_for_end(signal)) {
            let name = signals::name_of(signal);
            let message = format!("gave up on {name}; the command was not started and the lock is released");
            return Err(Failure::new(Exit::Interrupted(signal), message));
        }
        let (now, deadline) = (HostClock.now(), lease.deadline());
        if budget.is_enough(deadline.since(now)) {
            return Ok(deadline);
        }
        if now >= give_up_at {
            return Err(too_slow(ttl));
        }
        sleep_on(&[signals.as_fd()], RENEWAL_POLL);
    }
}

/// Ctrl-Z stops the command once it runs: the lock is held already, and would be lost here.
fn asks_for_end(signal: i32) -> bool {
    ![SIGWINCH, SIGCONT, SIGTSTP].contains(&signal)
}

fn too_slow(ttl: Ttl) -> Failure {
    let message = format!(
        "the store answers too slowly for a ttl of {ttl}: too little of each lease was left to start the command; use a \
         longer --ttl"
    );
    Failure::new(Exit::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::{Mutex, PoisonError};

    use signal_hook::consts::{SIGTERM, SIGTSTP, SIGUSR2, SIGWINCH};
    use signal_hook::low_level::raise;

    use super::*;

    /// A lease that always has so much left, however often it is renewed.
    struct Always(Duration);

    impl Lease for Always {
        fn deadline(&self) -> Moment {
            HostClock.now() + self.0
        }

        fn lost(&self) -> Option<String> {
            None
        }

        fn renew(&self) {}
    }

    /// A lease that is too short until a renewal at this moment.
    struct RenewedAt(Moment);

    impl Lease for RenewedAt {
        fn deadline(&self) -> Moment {
            let now = HostClock.now();
            now + if now < self.0 { Duration::from_millis(1500) } else { Duration::from_secs(60) }
        }

        fn lost(&self) -> Option<String> {
            None
        }

        fn renew(&self) {}
    }

    struct Gone;

    impl Lease for Gone {
        fn deadline(&self) -> Moment {
            HostClock.now()
        }

        fn lost(&self) -> Option<String> {
            Some("it expired".to_owned())
        }

        fn renew(&self) {}
    }

    /// A lease that is short until it is renewed.
    struct HandedOver(Cell<Duration>);

    impl Lease for HandedOver {
        fn deadline(&self) -> Moment {
            HostClock.now() + self.0.get()
        }

        fn lost(&self) -> Option<String> {
            None
        }

        fn renew(&self) {
            self.0.set(Duration::from_secs(30));
        }
    }

    const BUDGET: Budget = Budget { grace: Duration::from_millis(300), margin: Duration::from_millis(250) };
    const SHORT: Always = Always(Duration::from_millis(1500));
    const ENOUGH: Duration = Duration::from_millis(1600);

    /// A signal reaches every test of this process that listens.
    static ALONE: Mutex<()> = Mutex::new(());

    fn ask(lease: &impl Lease, ttl: &str) -> Result<Moment, Failure> {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        usable_deadline(lease, ttl.parse().unwrap(), BUDGET, &mut Signals::forwarded().unwrap())
    }

    #[test]
    fn enough_is_enough_and_too_little_ends_after_two_ttls() {
        assert!(ask(&Always(ENOUGH), "1h").is_ok());
        let failure = ask(&SHORT, "100ms").unwrap_err();
        assert_eq!(failure.exit, Exit::Unavailable);
        assert!(failure.message.contains("100ms") && failure.message.contains("--ttl"), "{failure}");
    }

    #[test]
    fn a_short_lease_is_renewed_at_once() {
        let lease = HandedOver(Cell::new(Duration::from_millis(100)));
        assert!(ask(&lease, "30s").is_ok());
        assert_eq!(lease.0.get(), Duration::from_secs(30));
    }

    #[test]
    fn a_lease_that_is_renewed_late_is_waited_for() {
        let renewed_at = HostClock.now() + Duration::from_secs(3);
        assert!(ask(&RenewedAt(renewed_at), "2s").is_ok(), "given up before two ttls were over");
    }

    #[test]
    fn a_lease_that_is_lost_is_waited_for_no_longer() {
        assert_eq!(ask(&Gone, "1h").unwrap_err().exit, Exit::Lost);
    }

    #[test]
    fn a_window_that_changes_its_size_ends_nothing() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut signals = Signals::forwarded().unwrap();
        raise(SIGWINCH).unwrap();
        assert!(usable_deadline(&Always(ENOUGH), "1h".parse().unwrap(), BUDGET, &mut signals).is_ok());
    }

    #[test]
    fn a_signal_ends_it_before_the_command_starts() {
        for signal in [SIGTERM, SIGUSR2] {
            let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
            let mut signals = Signals::forwarded().unwrap();
            raise(signal).unwrap();
            let failure = usable_deadline(&SHORT, "1h".parse().unwrap(), BUDGET, &mut signals).unwrap_err();
            assert_eq!(failure.exit, Exit::Interrupted(signal));
        }
    }

    #[test]
    fn a_stop_is_left_for_the_command() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut signals = Signals::forwarded().unwrap();
        raise(SIGTSTP).unwrap();
        let enough = Always(Duration::from_secs(60));
        assert!(usable_deadline(&enough, "1h".parse().unwrap(), BUDGET, &mut signals).is_ok());
        assert!(signals.take().contains(&SIGTSTP));
    }
}
