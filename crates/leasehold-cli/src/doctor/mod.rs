//! `leasehold doctor`: whether the store can be relied on, and what to do if not.

mod check;
mod holds;
mod promise;
mod quorum;
mod shown;
mod trial;

use std::time::Duration;

use leasehold::BackendConfig;
use leasehold::inspect::Check;

use self::check::Checks;
use crate::args::DoctorArgs;
use crate::exit::{Exit, Failure};
use crate::locks::Locks;
use crate::report::{json, print};
use crate::secret::Exposed;
use crate::store::Store;

/// How long a lock is watched unless the user says. Chosen: most jobs that run every minute are seen once.
const WATCHED: Duration = Duration::from_secs(60);

/// Checks the store in force, and says what was found.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<Exit, Failure> {
    let store = Store::choose(args.store.url.as_deref())?.shared()?;
    let config = store.config()?;
    let mut checks = Checks::of(config.shown(), args.store.origin());
    if let Some(Exposed { problem, remedy }) = args.store.exposed() {
        checks.add(Check::remark("password", problem).with_remedy(remedy));
    }
    examine(&store, &config, &mut checks);
    if let (Some(name), true) = (&args.name, checks.reached()) {
        checks.add(holds::ttl(name, &store, args.watched.unwrap_or(WATCHED))?);
    }
    let exit = checks.exit();
    let done = if args.json { print(&json(&checks.report())?)? } else { shown::show(&checks)? };
    Ok(if exit == Exit::Done { done } else { exit })
}

/// One check after the other. Without a connection, there is nothing more to find.
fn examine(store: &Store, config: &BackendConfig, checks: &mut Checks) {
    if let BackendConfig::Redlock(config) = config {
        quorum::check(config, checks);
        if !checks.reached() {
            return;
        }
    }
    let locks = match Locks::connect(store) {
        Ok(locks) => locks,
        Err(failure) => return checks.fail("reach", &failure),
    };
    match config.examine() {
        Ok(found) => found.into_iter().for_each(|check| checks.add(check)),
        Err(error) => checks.fail("reach", &error.into()),
    }
    trial::check(&locks, config, checks);
    promise::check(&locks, config, checks);
}
