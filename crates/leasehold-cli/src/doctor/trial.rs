//! A lock that is taken on trial: what no question about rights can tell.

use std::time::{Duration, Instant, SystemTime};

use leasehold::{BackendConfig, Error, LockName, OnUnavailable, Ttl};

use leasehold::inspect::Check;

use super::check::Checks;
use crate::durations::human;
use crate::exit::Failure;
use crate::locks::Locks;

/// How long the trial may take.
const WITHIN: Duration = Duration::from_secs(5);

/// Acquires a lock of its own, renews it, and releases it: so it is known that this client may.
pub(super) fn check(locks: &Locks, config: &BackendConfig, checks: &mut Checks) {
    let ttl = config.longest_ttl().map_or(Ttl::DEFAULT, |longest| longest.min(Ttl::DEFAULT));
    let began = Instant::now();
    if let Err(failure) = tried(locks, ttl) {
        return checks.fail("trial", &failure);
    }
    let took = human(began.elapsed().max(Duration::from_millis(1)));
    checks.add(Check::ok("trial", format!("acquired, renewed and released a trial lock in {took}")));
}

fn tried(locks: &Locks, ttl: Ttl) -> Result<(), Failure> {
    // Processes of other machines and containers have the same ids.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let name: LockName = format!("doctor@{}-{now}", std::process::id())
        .parse()
        .map_err(|error| Failure::system("cannot name a lock", error))?;
    // Waiting does not add advice to the store's error that is for programs.
    let lock = locks.client().mutex(&name).ttl(ttl.get()).wait(WITHIN).on_unavailable(OnUnavailable::Wait);
    let guard = lock.why("leasehold doctor").acquire().map_err(Error::from)?;
    guard.renew().map_err(Error::from)?;
    Ok(guard.release().map_err(Error::from)?)
}
