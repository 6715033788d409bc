//! A latch by its name, and what both facades need to ask about it.

use std::fmt;
use std::time::Duration;

use lock_core::latch::{Act, ArrivalId, Count, LatchError, LatchState, Repeat, Request, Seen, Wait, Watching};
use lock_core::{BackendError, Effect, ErrorKind, Invalid, LockName, Moment, Operation, Ttl};

use crate::alarms::{Alarm, Ring};
use crate::cancel::{CancelToken, Watch};
use crate::client_context::ClientContext;
use crate::errors::no_randomness;
use crate::host::random_u64;
use crate::site::Driver;
use crate::stations::Stations;
use crate::sync::{Arc, Weak};
use crate::wake_registry::{CloseSignal, Wake, WakeRegistration};

/// How long a latch lasts after its last arrival, count or reset if nothing else is set. Chosen: longer than most phases of a
/// job, and short enough that forgotten latches cost a store little.
const TTL_DEFAULT: Duration = Duration::from_secs(60 * 60);

/// The name and the ttl of a latch, as a user gave them. Errors in them are reported with the first request.
pub struct NamedLatch<D: Driver> {
    stations: Arc<Stations<D>>,
    name: Result<LockName, Invalid>,
    ttl: Result<Ttl, Invalid>,
    cancel: Option<CancelToken>,
}

impl<D: Driver> NamedLatch<D> {
    /// A name, with the default ttl.
    pub fn new(stations: &Arc<Stations<D>>, name: &str) -> Self {
        Self { stations: Arc::clone(stations), name: name.parse(), ttl: Ttl::new(TTL_DEFAULT), cancel: None }
    }

    /// Sets the ttl. The first one that is invalid is reported.
    pub fn set_ttl(&mut self, ttl: Duration) {
        if self.ttl.is_ok() {
            self.ttl = Ttl::new(ttl);
        }
    }

    /// Sets what ends calls.
    pub fn cancel(&mut self, token: &CancelToken) {
        self.cancel = Some(token.clone());
    }

    /// Begins a call about the latch.
    ///
    /// # Errors
    /// `Invalid` for an invalid name or ttl.
    pub fn call<W: Wake>(&self, wake: W) -> Result<LatchCall<'_, D, W>, LatchError> {
        let name = self.name.as_ref().map_err(Clone::clone)?;
        let ttl = *self.ttl.as_ref().map_err(Clone::clone)?;
        let waiter = Arc::new(LatchWaiter(wake));
        let whom: Arc<dyn Wake> = Arc::<LatchWaiter<W>>::clone(&waiter);
        let client = CloseSignal::of(&self.stations.wake_registry).wakes(name, Arc::downgrade(&whom));
        let cancel = self.cancel.as_ref().map(|token| (token, token.watch(move || whom.wake())));
        Ok(LatchCall { stations: &self.stations, name, ttl, waiter, client, cancel })
    }
}

/// One call about a latch, which may take several requests.
pub struct LatchCall<'a, D: Driver, W: Wake> {
    stations: &'a Arc<Stations<D>>,
    name: &'a LockName,
    ttl: Ttl,
    waiter: Arc<LatchWaiter<W>>,
    client: WakeRegistration,
    /// What ends it, and wakes the waiter then.
    cancel: Option<(&'a CancelToken, Watch)>,
}

/// A task or thread that sleeps during a call. Alarms, events and the end of the client wake it.
struct LatchWaiter<W>(W);

impl<D: Driver, W: Wake> LatchCall<'_, D, W> {
    /// An arrival: of this id, or of one that no other arrival has.
    ///
    /// # Errors
    /// `Invalid` for an invalid id; `Backend` if the system's random source fails.
    pub fn arrival(&self, id: Option<&str>) -> Result<Request, LatchError> {
        let id: ArrivalId = match id {
            Some(id) => id.parse()?,
            None => format!("{:016x}{:016x}", random()?, random()?).parse()?,
        };
        let call = random()?;
        Ok(self.request(Act::Arrive { id, call, ttl: self.ttl }))
    }

    /// A count of arrivals.
    ///
    /// # Errors
    /// `Invalid` for an invalid count.
    pub fn count(&self, count: u32) -> Result<Count, LatchError> {
        Ok(Count::new(count)?)
    }

    /// The latch, made if there is none.
    pub fn make(&self) -> Request {
        self.request(Act::Make { ttl: self.ttl })
    }

    /// A count to expect in the generation that was made or found.
    pub fn expectation(&self, count: Count, made: &LatchState) -> Request {
        self.request(Act::Expect { count, generation: made.generation, ttl: self.ttl })
    }

    /// The end of a generation.
    pub fn reset(&self, state: &LatchState) -> Request {
        self.request(Act::Reset { generation: state.generation, ttl: self.ttl })
    }

    /// A request to read it.
    pub fn read(&self, watching: Watching) -> Request {
        self.request(Act::Look { watching })
    }

    /// A wait that begins now.
    ///
    /// # Errors
    /// `Backend` if the system's random source fails.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Wait, LatchError> {
        Ok(Wait::new(self.name.clone(), self.now(), timeout, random()?))
    }

    /// The repetitions of a request that is sent now.
    ///
    /// # Errors
    /// `Backend` if the system's random source fails.
    pub fn repeat(&self) -> Result<Repeat, LatchError> {
        Ok(Repeat::new(self.now(), random()?))
    }

    /// The latch after a request that stores one.
    ///
    /// # Errors
    /// `Backend` if the store answered that there is none.
    pub fn stored(&self, seen: Seen) -> Result<LatchState, LatchError> {
        seen.state.ok_or_else(|| {
            let backend = self.stations.context().policy.store.backend;
            let message = "the store says that there is no latch right after it stored one";
            BackendError::new(backend, Operation::Latch, ErrorKind::Protocol, Effect::Unknown, message).into()
        })
    }

    /// The latch after its count was set. If it was reset meanwhile, the count is not for the new generation, which is returned as
    /// it is.
    ///
    /// # Errors
    /// `Expired` if the latch was forgotten meanwhile; those of [`agreed`](Self::agreed).
    pub fn expected(&self, asked: Count, made: &LatchState, seen: Seen) -> Result<LatchState, LatchError> {
        match seen.state {
            None => Err(LatchError::Expired { name: self.name.clone() }),
            Some(state) if state.generation != made.generation => Ok(state),
            Some(state) => self.agreed(asked, state),
        }
    }

    /// The latch, if it expects this number or none.
    ///
    /// # Errors
    /// `OtherCount` if it expects another number.
    pub fn agreed(&self, asked: Count, state: LatchState) -> Result<LatchState, LatchError> {
        match state.expected {
            Some(expected) if expected != asked => {
                Err(LatchError::OtherCount { name: self.name.clone(), expected, asked })
            }
            Some(_) | None => Ok(state),
        }
    }

    fn request(&self, act: Act) -> Request {
        Request { name: self.name.clone(), act }
    }

    /// The way to the store.
    ///
    /// # Errors
    /// `Closed` if the client was closed; `Cancelled` if the token of the latch was cancelled.
    pub fn context(&self) -> Result<&ClientContext<D>, LatchError> {
        if self.client.is_over() {
            return Err(LatchError::Closed);
        }
        if self.cancel.as_ref().is_some_and(|(token, _)| token.is_cancelled()) {
            return Err(LatchError::Cancelled);
        }
        Ok(self.stations.context())
    }

    /// How long one request may take.
    pub fn within(&self) -> Duration {
        self.stations.context().policy.within(self.ttl)
    }

    /// The present moment of the client's clock.
    pub fn now(&self) -> Moment {
        self.stations.context().clock.now()
    }

    /// The signal that the facade sleeps on.
    pub fn wake_signal(&self) -> &W {
        &self.waiter.0
    }

    /// Has the waiter woken at a moment, unless the result is dropped before.
    #[must_use = "the alarm ends when this is dropped"]
    pub fn alarm(&self, at: Moment) -> impl Drop + use<'_, D, W> {
        let ring: Arc<dyn Ring> = Arc::<LatchWaiter<W>>::clone(&self.waiter);
        let whom: Weak<dyn Ring> = Arc::downgrade(&ring);
        AlarmSet { stations: self.stations, alarm: self.stations.context().alarms.set(at, whom) }
    }
}

fn random() -> Result<u64, BackendError> {
    random_u64().map_err(no_randomness)
}

struct AlarmSet<'a, D: Driver> {
    stations: &'a Stations<D>,
    alarm: Alarm,
}

impl<D: Driver> Drop for AlarmSet<'_, D> {
    fn drop(&mut self) {
        self.stations.context().alarms.unset(self.alarm);
    }
}

impl<W: Wake> Wake for LatchWaiter<W> {
    fn wake(&self) {
        self.0.wake();
    }
}

impl<W: Wake> Ring for LatchWaiter<W> {
    fn ring(self: Arc<Self>, _: Alarm) {
        self.0.wake();
    }
}

impl<D: Driver> Clone for NamedLatch<D> {
    fn clone(&self) -> Self {
        let (name, ttl, cancel) = (self.name.clone(), self.ttl.clone(), self.cancel.clone());
        Self { stations: Arc::clone(&self.stations), name, ttl, cancel }
    }
}

impl<D: Driver> fmt::Debug for NamedLatch<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedLatch").field("name", &self.name).field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Capabilities, Durability, Listener, StoreEvent, Waiting};

    use super::*;
    use crate::clock::ManualClock;
    use crate::recorder::{Recorder, stations};
    use crate::sync::atomic::{AtomicU64, Ordering};

    #[derive(Clone, Default)]
    struct WakeSignal(Arc<AtomicU64>);

    impl Wake for WakeSignal {
        fn wake(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn clock_and_stations() -> (ManualClock, Arc<Stations<Recorder>>) {
        let clock = ManualClock::new();
        let capabilities = Capabilities::new("test", Waiting::Poll, Durability::Process);
        (clock.clone(), stations(capabilities, Arc::new(clock)))
    }

    #[test]
    fn mistakes_are_told_before_anything_is_sent() {
        let (_, stations) = clock_and_stations();
        let mut latch = NamedLatch::new(&stations, "a");
        let call = latch.call(WakeSignal::default()).unwrap();
        assert!(matches!(call.count(0), Err(LatchError::Invalid(_))));
        assert!(matches!(call.arrival(Some("")), Err(LatchError::Invalid(_))));
        assert_ne!(call.arrival(None).unwrap(), call.arrival(None).unwrap());
        drop(call);
        latch.set_ttl(Duration::ZERO);
        latch.set_ttl(Duration::from_secs(1));
        assert_eq!(latch.call(WakeSignal::default()).err(), Ttl::new(Duration::ZERO).err().map(LatchError::Invalid));
        assert!(NamedLatch::new(&stations, "").call(WakeSignal::default()).is_err());
    }

    #[test]
    fn events_and_the_end_of_the_client_wake_a_call() {
        let (_, stations) = clock_and_stations();
        let (latch, signal) = (NamedLatch::new(&stations, "a"), WakeSignal::default());
        let call = latch.call(signal.clone()).unwrap();
        let woken = || signal.0.swap(0, Ordering::Relaxed);
        for (name, times) in [("a", 1), ("b", 0)] {
            stations.deliver(StoreEvent::LatchChanged { name: name.parse().unwrap() });
            assert_eq!(woken(), times, "{name}");
        }
        stations.deliver(StoreEvent::RecheckAll);
        assert_eq!(woken(), 1);
        assert!(call.context().is_ok());
        stations.close();
        assert_eq!((woken(), call.context().err()), (1, Some(LatchError::Closed)));
    }
}
