//! Everything that a metric counts happens to the locks of a client.

use std::thread;
use std::time::Duration;

use leasehold::memory::faults::Fault;
use leasehold::{AcquireError, ErrorKind, LockName, blocking};
use test_support::bounds::wait_for;

use crate::client::{Client, Parts};
use crate::endpoint::Endpoint;

const SECOND: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(100);

const fn refused(kind: ErrorKind) -> Fault {
    Fault::Refused(kind)
}

/// One client of a store, and another one without faults.
pub(crate) struct Play<'a> {
    pub(crate) backend: &'static str,
    pub(crate) parts: Parts,
    pub(crate) client: Client,
    pub(crate) other: blocking::Client,
    pub(crate) endpoint: &'a Endpoint,
}

impl Play<'_> {
    pub(crate) fn run(self) {
        assert!(self.client.acquire("held").release());
        self.others_hold();
        self.renewals_fail();
        self.holds_end();
        self.releases_fail();
        self.store_is_away();
        self.client.close();
        assert!(matches!(self.client.tries("held"), Err(AcquireError::Closed)));
    }

    /// Calls that find the lock held: one that does not wait, one that waits in vain, and one that gets it.
    fn others_hold(&self) {
        let held = self.other.mutex("awaited").ttl(600 * SECOND).acquire().unwrap();
        assert!(!self.client.tries("awaited").unwrap());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| self.client.waits("awaited", 5 * SECOND));
            self.is_queued(held.name());
            self.parts.pass_until(STEP, "not acquired", 2);
            assert!(matches!(waiting.join().unwrap(), Err(AcquireError::TimedOut { .. })));
            let waiting = scope.spawn(|| self.client.acquire("awaited").release());
            self.is_queued(held.name());
            self.parts.pass_until(STEP, "waiting long", 1);
            held.release().unwrap();
            assert!(waiting.join().unwrap());
        });
        let held = self.other.mutex("awaited").ttl(600 * SECOND).acquire().unwrap();
        self.client.is_interrupted("awaited");
        held.release().unwrap();
    }

    #[track_caller]
    fn is_queued(&self, name: &LockName) {
        let holder = || self.other.inspect().unwrap().holder(name, 20 * SECOND).unwrap();
        wait_for("the call to be queued", || (holder()?.waiters == 1).then_some(()));
    }

    /// A renewal that comes late, and a lease that ends without one.
    fn renewals_fail(&self) {
        let Parts { clock, faults, .. } = &self.parts;
        let guard = self.client.acquire("renewed");
        faults.fail_everything(refused(ErrorKind::Unreachable));
        clock.advance(20 * SECOND);
        self.parts.pass_until(Duration::ZERO, "store unavailable", 1);
        self.at_least_one(Duration::ZERO, "leasehold_locks_held");
        // The call that was interrupted may be answered only now, and then the store is available until the next request.
        self.at_least_one(STEP, "leasehold_store_unavailable");
        faults.heal_everything();
        self.parts.pass_until(STEP, "renewed late", 1);
        assert!(guard.release());

        let guard = self.client.acquire("expired");
        faults.fail_everything(refused(ErrorKind::Timeout));
        self.parts.pass_until(SECOND, "lost", 1);
        faults.heal_everything();
        assert!(!guard.release());
    }

    /// The other ways in which a hold ends.
    fn holds_end(&self) {
        let revoked = self.client.acquire("revoked");
        let (inspect, name) = (self.other.inspect().unwrap(), "revoked".parse().unwrap());
        inspect.revoke(&name, revoked.token(), &leasehold::inspect::Note::from_wire("1@console"), 20 * SECOND).unwrap();
        self.parts.pass_until(STEP, "lost", 2);
        let limited = self.client.acquire_for("limited", 10 * SECOND);
        self.parts.pass_until(STEP, "lost", 3);
        assert!(!revoked.release() && !limited.release());
        self.client.acquire("detached").detach();
        self.parts.pass_until(Duration::ZERO, "detached", 1);
    }

    /// A release that is confirmed late, and one that never is.
    fn releases_fail(&self) {
        let Parts { faults, told, .. } = &self.parts;
        let pending = self.client.acquire("pending");
        faults.fail_everything(refused(ErrorKind::Unavailable));
        assert!(!pending.release());
        self.at_least_one(Duration::ZERO, "leasehold_releases_pending");
        faults.heal_everything();
        let released = told.count("released");
        self.parts.pass_until(STEP, "released", released + 1);
        let given_up = self.client.acquire("given up");
        faults.fail_everything(refused(ErrorKind::Denied));
        assert!(!given_up.release());
        faults.heal_everything();
        self.parts.pass_until(Duration::ZERO, "release given up", 1);
    }

    /// Calls that cannot reach the store, and a client that ends meanwhile with a release pending.
    fn store_is_away(&self) {
        let faults = &self.parts.faults;
        faults.fail_everything(refused(ErrorKind::Unreachable));
        assert!(matches!(self.client.tries("a"), Err(AcquireError::Backend(_))));
        self.client.degrades("b");
        faults.heal_everything();
        let ended = self.client.acquire("c");
        faults.fail_everything(refused(ErrorKind::Unreachable));
        assert!(!ended.release());
    }

    /// Has time pass in small steps until the gauge has risen. It is read while others run, which may add to it.
    #[track_caller]
    fn at_least_one(&self, step: Duration, gauge: &str) {
        wait_for(&format!("{gauge} to rise"), || {
            self.parts.clock.advance(step);
            let value = self.endpoint.scrape().value(gauge, &[("backend", self.backend)]);
            value.filter(|value| *value >= 1.0).ok_or_else(|| format!("{value:?}"))
        });
    }
}
