//! A lock by its name, and how to hold it: what a mutex, or a lock of any other kind, is made of.

use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::time::Duration;

use lock_core::limit::{Act, LimitError, Request};
use lock_core::station::Event;
use lock_core::{
    Ability, AcquireError, BackendError, Invalid, Limit, Location, LockName, Mode, NameKind, Note, Ticket,
};

use crate::acquire_call::AcquireCall;
use crate::client_context::ClientContext;
use crate::clock::SharedClock;
use crate::host::note;
use crate::kinds::{AnyKind, Exclusive, Permits, Shared};
use crate::member::{ClientId, Member};
use crate::options::{LockOptions, Setting};
use crate::outage::Outage;
use crate::pending_events::PendingEvents;
use crate::site::{Driver, Site};
use crate::stations::Stations;
use crate::sync::Arc;
use crate::turn::Held;
use crate::wake_registry::CloseSignal;

/// The name of a lock and how to hold it, as a user gave them. Errors in them are reported when the lock is requested.
pub struct Lock<D: Driver, M = Exclusive> {
    stations: Arc<Stations<D>>,
    /// Its name, and what it is wanted for.
    wanted: Result<(LockName, Mode), Invalid>,
    /// What the name is used as, if the store tells mutexes and read-write locks apart.
    kind: NameKind,
    options: LockOptions,
    ready: OnceLock<Ready<D>>,
    marker: PhantomData<fn() -> M>,
}

/// Resolved by the first call, and kept until the options change.
struct Ready<D: Driver> {
    site: Arc<Site<D>>,
    note: Note,
}

impl<D: Driver> Lock<D, Exclusive> {
    /// A lock to hold alone, with the default options.
    pub fn new(stations: &Arc<Stations<D>>, name: &str) -> Self {
        Self::in_mode(stations, name, (Ok(Mode::Exclusive), NameKind::Lock))
    }

    /// The write side of a read-write lock, with the default options.
    pub fn writing(stations: &Arc<Stations<D>>, name: &str) -> Self {
        Self::in_mode(stations, name, (Ok(Mode::Exclusive), NameKind::ReadWriteLock))
    }
}

impl<D: Driver> Lock<D, Shared> {
    /// A lock to read under, with the default options.
    pub fn shared(stations: &Arc<Stations<D>>, name: &str) -> Self {
        Self::in_mode(stations, name, (Ok(Mode::Shared), NameKind::ReadWriteLock))
    }
}

impl<D: Driver> Lock<D, Permits> {
    /// One permit of a semaphore with so many, with the default options.
    pub fn permits(stations: &Arc<Stations<D>>, name: &str, limit: u32) -> Self {
        Self::in_mode(stations, name, (Mode::permits(1, limit), NameKind::Semaphore))
    }

    /// The same semaphore, for this many permits.
    #[must_use]
    pub fn with_count(&self, count: u32) -> Self {
        let wanted = self.wanted.clone().and_then(|(name, mode)| Ok((name, mode.with_count(count)?)));
        Self { wanted, ..self.clone() }
    }

    /// A request to set the limit.
    ///
    /// # Errors
    /// `Invalid` for an invalid limit, and those of [`read_limit`](Self::read_limit).
    pub fn set_limit(&self, limit: u32) -> Result<LimitCall<'_, D>, LimitError> {
        self.limit_call(Act::Set(Limit::new(limit)?))
    }

    /// A request to look at limit and use.
    ///
    /// # Errors
    /// `Invalid` for an invalid name or option; `Closed` if the client was closed.
    pub fn read_limit(&self) -> Result<LimitCall<'_, D>, LimitError> {
        self.limit_call(Act::Look)
    }
}

/// A request about the limit of a semaphore, which the facade sends.
pub struct LimitCall<'a, D> {
    /// The way to the store.
    pub context: &'a ClientContext<D>,
    /// How long the request may take.
    pub within: Duration,
    /// The request.
    pub request: Request,
}

impl<D: Driver, M> Lock<D, M> {
    fn in_mode(stations: &Arc<Stations<D>>, name: &str, (mode, kind): (Result<Mode, Invalid>, NameKind)) -> Self {
        let wanted = name.parse().and_then(|name| Ok((name, mode?)));
        let (options, ready) = (LockOptions::default(), OnceLock::new());
        let kind = kind.where_write_side_is(stations.context().policy.store.write_side);
        Self { stations: Arc::clone(stations), wanted, kind, options, ready, marker: PhantomData }
    }

    /// The same lock, whatever its kind.
    #[must_use]
    pub fn into_any(self) -> Lock<D, AnyKind> {
        let Self { stations, wanted, kind, options, ready, .. } = self;
        Lock { stations, wanted, kind, options, ready, marker: PhantomData }
    }

    /// Changes the options. The first change that fails is the error that the user gets.
    pub fn set(&mut self, setting: Setting) {
        self.options.apply(setting);
        self.ready = OnceLock::new();
    }

    /// The name of the lock.
    ///
    /// # Errors
    /// `Invalid` for an invalid name, or number of permits.
    pub fn name(&self) -> Result<&LockName, Invalid> {
        self.wanted.as_ref().map(|(name, _)| name).map_err(Clone::clone)
    }

    /// Begins to ask for the lock.
    ///
    /// # Errors
    /// `Invalid` for an invalid name or option; `Cancelled` if the token that was set is cancelled.
    pub fn ask(&self) -> Result<AcquireCall<'_, D, M>, AcquireError> {
        let ready = self.ready.get().map_or_else(|| self.get_ready(), Ok)?;
        let (name, mode) = self.wanted.as_ref().map_err(Clone::clone)?;
        AcquireCall::new(&self.stations, &ready.site, name, *mode, &self.options, &ready.note).unless_cancelled()
    }

    fn get_ready(&self) -> Result<&Ready<D>, AcquireError> {
        let (name, mode) = self.wanted.as_ref().map_err(Clone::clone)?;
        self.options.validate_for(*mode)?;
        let note = note(&self.options.why)?;
        let site = self.stations.site(name, self.kind);
        Ok(self.ready.get_or_init(|| Ready { site, note }))
    }

    /// Begins to ask for the lease of a ticket.
    ///
    /// # Errors
    /// As [`ask`](Self::ask); `Invalid` for a ticket for something else.
    pub fn ask_for(&self, ticket: &Ticket) -> Result<AcquireCall<'_, D, M>, AcquireError> {
        let call = self.ask()?;
        let (name, mode) = self.wanted.as_ref().map_err(Clone::clone)?;
        ticket.check(name, *mode)?;
        Ok(call.adopting(ticket))
    }

    /// A look at the limit of a semaphore, before it adopts a ticket of another limit: the store refuses the look unless the limit
    /// was changed. `None` if the limit is that of the ticket.
    ///
    /// # Errors
    /// `Invalid` for an invalid name or option; `Closed` if the client was closed.
    pub fn read_limit_before_adopting(&self, ticket: &Ticket) -> Result<Option<LimitCall<'_, D>>, LimitError> {
        let (_, mode) = self.wanted.as_ref().map_err(Clone::clone)?;
        if mode.limit() == ticket.mode().limit() {
            return Ok(None);
        }
        self.limit_call(Act::Look).map(Some)
    }

    fn limit_call(&self, act: Act) -> Result<LimitCall<'_, D>, LimitError> {
        self.options.validate()?;
        let (name, mode) = self.wanted.as_ref().map_err(Clone::clone)?;
        if self.stations.wake_registry.is_closed() {
            return Err(LimitError::Closed);
        }
        let (context, known) = (self.stations.context(), mode.limit().unwrap_or(Limit::ONE));
        context.policy.store.check_ability(Ability::SetLimit)?;
        let request = Request { name: name.clone(), known, act };
        Ok(LimitCall { context, within: context.policy.within(self.options.ttl), request })
    }

    /// The lock as a part of something larger. `locate` asks the store where it keeps the lock.
    ///
    /// # Errors
    /// `Invalid` for an invalid name or option.
    pub fn member(&self, locate: impl FnOnce(&D, &LockName) -> Option<Location>) -> Result<Member, Invalid> {
        let (client, name) = self.identity()?;
        note(&self.options.why)?;
        let context = self.stations.context();
        let (location, clock) = (locate(&context.driver, &name), SharedClock::clone(&context.clock));
        let (wait, cancel) = (self.options.wait, self.options.cancel.clone());
        let close_signal = CloseSignal::of(&self.stations.wake_registry);
        let [outage, lasting] = [&self.stations.outage, &self.stations.lasting].map(Outage::clone);
        Ok(Member { name, location, client, wait, cancel, clock, close_signal, outage, lasting })
    }

    /// The client and the name of the lock.
    ///
    /// # Errors
    /// `Invalid` for an invalid name or option.
    pub fn identity(&self) -> Result<(ClientId, LockName), Invalid> {
        let (name, mode) = self.wanted.as_ref().map_err(Clone::clone)?;
        self.options.validate_for(*mode)?;
        Ok((ClientId::of(&self.stations), name.clone()))
    }

    /// Whether this hold is one of this lock, by the same client or a clone of it.
    pub fn is_held_by(&self, held: &Held<D, M>) -> bool {
        self.site().is_some_and(|site| Arc::ptr_eq(&site, held.site()))
    }

    /// Why waiters for the lock still wait, if the store fails.
    pub fn last_error(&self) -> Option<BackendError> {
        self.site()?.last_error()
    }

    /// Reports that the caller continues with a process-local lock, because the store is unreachable.
    pub fn degraded(&self, waited: Duration, error: &BackendError) {
        if let (Ok((name, _)), Some(observers)) = (&self.wanted, &self.stations.context().observers) {
            let events = PendingEvents::new(name.clone(), Arc::clone(observers));
            events.push(Event::degraded(name.clone(), waited, error.clone()));
            events.notify();
        }
    }

    fn site(&self) -> Option<Arc<Site<D>>> {
        let (name, _) = self.wanted.as_ref().ok()?;
        self.stations.find(name, self.kind)
    }
}

impl<D: Driver, M> Clone for Lock<D, M> {
    fn clone(&self) -> Self {
        let (wanted, options, ready) = (self.wanted.clone(), self.options.clone(), self.ready.clone());
        Self { stations: Arc::clone(&self.stations), wanted, kind: self.kind, options, ready, marker: PhantomData }
    }
}

impl<D: Driver> Clone for Ready<D> {
    fn clone(&self) -> Self {
        Self { site: Arc::clone(&self.site), note: self.note.clone() }
    }
}

impl<D: Driver, M> fmt::Debug for Lock<D, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wanted, options) = (&self.wanted, &self.options);
        f.debug_struct("Lock").field("wanted", wanted).field("options", options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Capabilities, Durability, Ttl, Waiting};

    use super::*;
    use crate::clock::HostClock;
    use crate::recorder::{Recorder, stations};

    fn lock(name: &str) -> Lock<Recorder> {
        let capabilities = Capabilities::new("test", Waiting::Poll, Durability::Process);
        Lock::new(&stations(capabilities, Arc::new(HostClock)), name)
    }

    fn told(lock: &Lock<Recorder>) -> String {
        match lock.ask() {
            Ok(_) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_mistake_in_a_limit_is_told_before_anything_is_sent() {
        let capabilities =
            Capabilities::new("test", Waiting::Poll, Durability::Process).with_abilities(&[Ability::SetLimit]);
        let stations = stations(capabilities, Arc::new(HostClock));
        let semaphore = |name, limit| Lock::permits(&stations, name, limit);
        let call = semaphore("a", 4).with_count(3);
        let (limit, name) = (|limit| Limit::new(limit).unwrap(), "a".parse().unwrap());
        let expected = Request { name, known: limit(4), act: Act::Set(limit(8)) };
        assert_eq!(call.set_limit(8).map(|call| call.request), Ok(expected));
        for (semaphore, limit) in [(semaphore("a", 4), 0), (semaphore("a", 4), u32::MAX), (semaphore("a", 0), 1)] {
            assert!(matches!(semaphore.set_limit(limit).err(), Some(LimitError::Invalid(_))), "{semaphore:?} {limit}");
        }
        assert!(matches!(semaphore("", 4).read_limit().err(), Some(LimitError::Invalid(_))));
        stations.close();
        assert!(matches!(semaphore("a", 4).read_limit().err(), Some(LimitError::Closed)));
    }

    #[test]
    fn a_lock_is_ready_after_the_first_call_until_its_options_change() {
        let mut lock = lock("a");
        let why = |lock: &Lock<Recorder>| lock.ask().map(|_| lock.ready.get().unwrap().note.why().to_owned()).unwrap();
        assert_eq!(why(&lock), "");
        lock.set(Setting::Options(LockOptions::default().why("one")));
        assert_eq!((why(&lock), why(&lock.clone())), ("one".to_owned(), "one".to_owned()));
        lock.set(Setting::Why("two".into()));
        assert_eq!(why(&lock), "two");
        lock.set(Setting::Ttl(Duration::ZERO));
        assert!(lock.ask().is_err());
    }

    #[test]
    fn the_first_mistake_is_told_when_the_lock_is_asked_for() {
        let mut lock_a = lock("a");
        assert_eq!(told(&lock_a), "nothing");
        lock_a.set(Setting::Ttl(Duration::ZERO));
        lock_a.set(Setting::Ttl(Duration::MAX));
        assert_eq!(told(&lock_a), Ttl::new(Duration::ZERO).unwrap_err().to_string());
        lock_a.set(Setting::Options(LockOptions::default()));
        assert_eq!(told(&lock_a), "nothing", "all options are replaced");
        lock_a.set(Setting::Options(LockOptions::default().max_hold(Duration::ZERO)));
        assert!(told(&lock_a).contains("max_hold"));
        lock_a.set(Setting::Options(LockOptions::default().barging()));
        assert!(told(&lock_a).contains("fairness \"barging\""));
        assert!(lock_a.identity().is_err(), "as a part of something larger as well");
        assert!(lock("").ask().is_err() && lock("").last_error().is_none());
    }
}
