//! A lock that is taken on trial: what no question about rights can tell.

use std::time::{Duration, Instant, SystemTime};

use leasehold::{BackendConfig, OnUnavailable};
use lock_core::{AcquireError, LockName, Ttl};
use lock_host::HoldError;

use lock_core::examine::Check;

use super::check::Checks;
use crate::durations::human;
use crate::exit::{Exit, Failure};
use crate::locks::Locks;

/// How long the trial may take.
const WITHIN: Duration = Duration::from_secs(5);

/// Acquires a lock of its own, renews it, and releases it: so it is known that this client may.
pub(super) fn check(locks: &Locks, config: &BackendConfig, checks: &mut Checks) {
    let ttl = config.longest_ttl().map_or(Ttl::DEFAULT, |longest| longest.min(Ttl::DEFAULT));
    let began = Instant::now();
    let took = |checks: &mut Checks| {
        let took = human(Duration::from_millis(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX).max(1)));
        checks.add(Check::ok("trial", format!("acquired, renewed and released a trial lock in {took}")));
    };
    match tried(locks, ttl) {
        Ok(()) => took(checks),
        Err(failure) => checks.fail("trial", &failure),
    }
}

fn tried(locks: &Locks, ttl: Ttl) -> Result<(), Failure> {
    // Processes of other machines and containers have the same ids.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let name: LockName = format!("doctor@{}-{now}", std::process::id())
        .parse()
        .map_err(|error| Failure::system("cannot name a lock", error))?;
    // Waiting does not add advice to the store's error that is for programs.
    let lock = locks.client().mutex(&name).ttl(ttl.get()).wait(WITHIN).on_unavailable(OnUnavailable::Wait);
    let guard = lock.why("leasehold doctor").acquire().map_err(refused)?;
    guard.renew().map_err(not_renewed)?;
    guard.release().map_err(not_released)
}

fn refused(error: AcquireError) -> Failure {
    match &error {
        AcquireError::Backend(error) => error.clone().into(),
        AcquireError::Invalid(_)
        | AcquireError::TimedOut { .. }
        | AcquireError::Forgotten { .. }
        | AcquireError::TicketOver { .. }
        | AcquireError::Closed
        | AcquireError::Cancelled
        | _ => Failure::new(Exit::Unavailable, error.to_string()),
    }
}

fn not_renewed(error: HoldError) -> Failure {
    match &error {
        HoldError::Backend(error) => error.clone().into(),
        HoldError::Lost(_) | _ => Failure::new(Exit::Unavailable, error.to_string()),
    }
}

fn not_released(error: HoldError) -> Failure {
    match &error {
        HoldError::Backend(error) => error.clone().into(),
        HoldError::Lost(_) | _ => Failure::new(Exit::Unavailable, error.to_string()),
    }
}
