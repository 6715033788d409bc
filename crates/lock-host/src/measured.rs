//! The feature `metrics`: what happens to the locks, counted and timed. `docs/book/src/metrics.md` has the names.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use lock_core::station::{Event, Outcome};
use lock_core::{LossReason, Note};
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use crate::observer::{Observer, SharedObserver};

const ACQUIRE_SECONDS: &str = "leasehold_acquire_seconds";
const WAIT_SECONDS: &str = "leasehold_wait_seconds";
const QUEUE_POSITION: &str = "leasehold_queue_position";
const LONG_WAITS: &str = "leasehold_long_waits_total";
const LOCKS_HELD: &str = "leasehold_locks_held";
const HOLD_SECONDS: &str = "leasehold_hold_seconds";
const RENEWALS_LATE: &str = "leasehold_renewals_late_total";
const LOST: &str = "leasehold_lost_total";
const RELEASES_PENDING: &str = "leasehold_releases_pending";
const DEGRADED: &str = "leasehold_degraded_total";
const STORE_ERRORS: &str = "leasehold_store_errors_total";
const STORE_UNAVAILABLE: &str = "leasehold_store_unavailable";

/// The observer of every client that records the metrics.
pub(crate) fn observer(backend: &'static str) -> Option<SharedObserver> {
    describe();
    let meter = Meter::new(backend);
    meter.begin();
    Some(Arc::new(meter))
}

fn describe() {
    describe_histogram!(ACQUIRE_SECONDS, Unit::Seconds, "Duration of acquire calls");
    describe_histogram!(WAIT_SECONDS, Unit::Seconds, "Time in which calls waited for another holder");
    describe_histogram!(QUEUE_POSITION, "First position in the store's queue, 1 for the next waiter");
    describe_counter!(LONG_WAITS, "Waits that reached 10 s, 20 s, 40 s and so on");
    describe_gauge!(LOCKS_HELD, "Locks held now");
    describe_histogram!(HOLD_SECONDS, Unit::Seconds, "Duration of holds");
    describe_counter!(RENEWALS_LATE, "Renewals confirmed when less than half of the lease was left");
    describe_counter!(LOST, "Holds lost before they were released");
    describe_gauge!(RELEASES_PENDING, "Releases that the store has not confirmed");
    describe_counter!(DEGRADED, "Locks held within this process only, because the store was unreachable");
    describe_counter!(STORE_ERRORS, "Requests that the store refused or did not answer, for each lock");
    describe_gauge!(STORE_UNAVAILABLE, "Clients whose store is unavailable");
}

/// Records the metrics of one client.
struct Meter {
    backend: &'static str,
    held: Share,
    pending: Share,
    unavailable: Share,
}

impl Meter {
    fn new(backend: &'static str) -> Self {
        let share = |gauge| Share { gauge, backend, count: AtomicI32::new(0) };
        let (held, pending, unavailable) = (share(LOCKS_HELD), share(RELEASES_PENDING), share(STORE_UNAVAILABLE));
        Self { backend, held, pending, unavailable }
    }

    /// Counters begin at zero: a rise from nothing to one is not seen as a rise.
    fn begin(&self) {
        for counter in [LONG_WAITS, RENEWALS_LATE, DEGRADED] {
            counter!(counter, "backend" => self.backend).increment(0);
        }
        let revoked = LossReason::Revoked { by: Note::from_wire("") };
        for reason in [LossReason::Expired(None), revoked, LossReason::NotHeld, LossReason::MaxHold, LossReason::Closed]
        {
            self.lost(&reason, 0);
        }
        for share in [&self.held, &self.pending, &self.unavailable] {
            share.add(0);
        }
    }

    fn count(&self, counter: &'static str) {
        counter!(counter, "backend" => self.backend).increment(1);
    }

    fn lost(&self, reason: &LossReason, count: u64) {
        counter!(LOST, "backend" => self.backend, "reason" => reason.name()).increment(count);
    }

    fn asked(&self, outcome: &'static str, waited: Duration) {
        histogram!(ACQUIRE_SECONDS, "backend" => self.backend, "outcome" => outcome).record(waited);
    }

    fn waited(&self, contended: Option<Duration>) {
        if let Some(contended) = contended {
            histogram!(WAIT_SECONDS, "backend" => self.backend).record(contended);
        }
    }

    fn queued(&self, position: Option<u32>) {
        if let Some(position) = position {
            histogram!(QUEUE_POSITION, "backend" => self.backend).record(position);
        }
    }

    fn held(&self, end: &'static str, held: Duration) {
        histogram!(HOLD_SECONDS, "backend" => self.backend, "end" => end).record(held);
        self.held.add(-1);
    }
}

impl Observer for Meter {
    fn observe(&self, event: &Event) {
        match event {
            Event::Acquired { waited, contended, position, .. } => {
                self.asked("acquired", *waited);
                self.waited(*contended);
                self.queued(*position);
                self.held.add(1);
            }
            // It did not wait.
            Event::NotAcquired { waited, outcome: outcome @ Outcome::Busy { .. }, .. } => {
                self.asked(outcome.name(), *waited);
            }
            Event::NotAcquired { waited, contended, outcome, .. } => {
                self.asked(outcome.name(), *waited);
                self.waited(*contended);
            }
            Event::WaitingLong { .. } => self.count(LONG_WAITS),
            Event::RenewedLate { .. } => self.count(RENEWALS_LATE),
            Event::Lost { held, reason, .. } => {
                self.held("lost", *held);
                self.lost(reason, 1);
            }
            Event::Detached { held, .. } => self.held("detached", *held),
            Event::ReleasePending { held, .. } => {
                self.held("released", *held);
                self.pending.add(1);
            }
            Event::Released { pending: Some(_), .. } | Event::ReleaseGivenUp { .. } => self.pending.add(-1),
            Event::Released { held, .. } => self.held("released", *held),
            Event::Degraded { .. } => self.count(DEGRADED),
            Event::RequestFailed { error, .. } => {
                let (operation, error) = (error.operation().name(), error.kind().name());
                counter!(STORE_ERRORS, "backend" => self.backend, "operation" => operation, "error" => error)
                    .increment(1);
            }
            Event::StoreUnavailable { .. } => self.unavailable.add(1),
            Event::StoreAvailable { .. } => self.unavailable.add(-1),
            // An event of a later version of the core.
            _ => {}
        }
    }
}

/// What one client has added to a gauge. It is taken back when the client ends.
struct Share {
    gauge: &'static str,
    backend: &'static str,
    count: AtomicI32,
}

impl Share {
    fn add(&self, change: i32) {
        self.count.fetch_add(change, Ordering::Relaxed);
        gauge!(self.gauge, "backend" => self.backend).increment(change);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let count = *self.count.get_mut();
        self.add(-count);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, with_local_recorder};

    use super::*;

    /// The values of the label `reason` that there are.
    #[derive(Default)]
    struct Reasons(Mutex<BTreeSet<String>>);

    impl Recorder for Reasons {
        fn describe_counter(&self, _key: KeyName, _unit: Option<Unit>, _text: SharedString) {}

        fn describe_gauge(&self, _key: KeyName, _unit: Option<Unit>, _text: SharedString) {}

        fn describe_histogram(&self, _key: KeyName, _unit: Option<Unit>, _text: SharedString) {}

        fn register_counter(&self, key: &Key, _metadata: &Metadata<'_>) -> Counter {
            let reasons = key.labels().filter(|label| label.key() == "reason").map(|label| label.value().to_owned());
            self.0.lock().unwrap().extend(reasons);
            Counter::noop()
        }

        fn register_gauge(&self, _key: &Key, _metadata: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, _key: &Key, _metadata: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    #[test]
    fn losses_for_each_reason_are_counted_from_zero() {
        let reasons = Reasons::default();
        with_local_recorder(&reasons, || Meter::new("memory").begin());
        let expected = ["closed", "expired", "max hold", "not held", "revoked"].map(str::to_owned);
        assert_eq!(reasons.0.into_inner().unwrap(), BTreeSet::from(expected));
    }
}
