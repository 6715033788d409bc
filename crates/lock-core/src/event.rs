//! Events: messages that a store sends without a request.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::{Lease, LockName};

/// A hint from the store. It may be lost, duplicated, late or early; only speed depends on it. The exception is
/// [`SessionEnded`](Self::SessionEnded), which is certain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreEvent {
    /// A lease was handed over to a waiter of this client.
    Granted {
        /// The lease that it holds now.
        lease: Lease,
        /// How long the store keeps it, from the hand-over. Zero if nobody may rely on it yet: the waiter asks again, and relies on
        /// the answer.
        valid_for: Duration,
        /// Whether others are known to wait for the lock.
        wanted: bool,
    },
    /// Somebody began to wait for a lock that a client of this backend holds.
    Wanted {
        /// Which one.
        name: LockName,
    },
    /// A lock became free, or may have.
    Freed {
        /// Which one.
        name: LockName,
    },
    /// Somebody revoked a lease of a lock. Each holder asks at once whether it was its own.
    Revoked {
        /// Which one.
        name: LockName,
    },
    /// All that a latch waits for have arrived, or it was reset.
    LatchChanged {
        /// Which one.
        name: LockName,
    },
    /// Hints may have been missed: all waiters should ask again.
    RecheckAll,
    /// Revocations may have been missed: each holder asks at once whether its lease is still the stored one.
    RecheckHolds,
    /// The backend has ended its session: see [`Backend::end_session`](crate::Backend::end_session). Its holds are lost, its pending
    /// releases are done, and its waiters ask again. Answers to earlier requests no longer count.
    SessionEnded,
}

/// A listener's reply to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The event was accepted. If it is a grant, its owner belongs to this listener, or the listener cannot tell.
    Taken,
    /// The event is a grant for an owner that this listener does not know.
    Unknown,
    /// The listener is gone and needs no more events.
    Gone,
}

/// A client as its backend sees it: the recipient of the store's events.
pub trait Listener: Send + Sync + 'static {
    /// Processes an event. Never blocks for long and never calls back into the backend.
    fn deliver(&self, event: StoreEvent) -> Delivery;

    /// Releases once, in the background, a lease that was granted to an owner that no listener knows: nobody would use
    /// it or give it up. Does not block.
    fn release_unknown(&self, lease: Lease);
}

/// Where a backend delivers events: one listener.
#[derive(Clone)]
pub struct EventSink(Arc<dyn Listener>);

impl EventSink {
    /// Wraps a callback for each event. A callback cannot tell which waiter a grant is for, so it counts as the
    /// recipient of every grant.
    pub fn new(deliver: impl Fn(StoreEvent) + Send + Sync + 'static) -> Self {
        Self::of(Told(deliver))
    }

    /// Delivers to a listener, for as long as the listener exists.
    pub fn of(listener: impl Listener) -> Self {
        Self(Arc::new(listener))
    }

    /// Delivers one event.
    pub fn deliver(&self, event: StoreEvent) -> Delivery {
        self.0.deliver(event)
    }

    /// Releases a lease that no listener knows.
    pub fn release_unknown(&self, lease: Lease) {
        self.0.release_unknown(lease);
    }
}

struct Told<F>(F);

impl<F: Fn(StoreEvent) + Send + Sync + 'static> Listener for Told<F> {
    fn deliver(&self, event: StoreEvent) -> Delivery {
        (self.0)(event);
        Delivery::Taken
    }

    fn release_unknown(&self, _lease: Lease) {}
}

impl<L: Listener> Listener for Weak<L> {
    fn deliver(&self, event: StoreEvent) -> Delivery {
        self.upgrade().map_or(Delivery::Gone, |listener| listener.deliver(event))
    }

    fn release_unknown(&self, lease: Lease) {
        if let Some(listener) = self.upgrade() {
            listener.release_unknown(lease);
        }
    }
}

/// The listeners of one backend, kept by the backend.
#[derive(Debug, Default)]
pub struct Listeners(Mutex<Vec<EventSink>>);

impl Listeners {
    /// Adds a listener.
    pub fn add(&self, sink: EventSink) {
        self.lock().push(sink);
    }

    /// Whether there are no listeners.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Delivers an event to all listeners. A grant for an owner that none of them knows is released by one of them.
    pub fn deliver(&self, event: &StoreEvent) {
        // Delivered outside the mutex: a listener may call back into this list, or be dropped here.
        let sinks = self.lock().clone();
        let heard: Vec<_> = sinks.iter().map(|sink| (sink.deliver(event.clone()), sink)).collect();
        let first = |which| heard.iter().find(|(heard, _)| *heard == which).map(|(_, sink)| sink);
        if let (StoreEvent::Granted { lease, .. }, None, Some(sink)) =
            (event, first(Delivery::Taken), first(Delivery::Unknown))
        {
            sink.release_unknown(lease.clone());
        }
        if first(Delivery::Gone).is_some() {
            let is_gone = |known: &EventSink| {
                heard.iter().any(|(heard, sink)| *heard == Delivery::Gone && Arc::ptr_eq(&known.0, &sink.0))
            };
            self.lock().retain(|sink| !is_gone(sink));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<EventSink>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSink")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Owner, Slots, Terms, TokenRange, Ttl, Width};

    /// Knows one owner, and keeps what it heard and released.
    struct Client {
        owner: Owner,
        heard: Mutex<usize>,
        released: Mutex<Vec<Owner>>,
    }

    impl Client {
        fn knowing(byte: u8) -> Arc<Self> {
            let owner = Owner::from_random([byte; 16]);
            Arc::new(Self { owner, heard: Mutex::default(), released: Mutex::default() })
        }
    }

    impl Listener for Client {
        fn deliver(&self, event: StoreEvent) -> Delivery {
            *self.heard.lock().unwrap() += 1;
            match event {
                StoreEvent::Granted { lease, .. } if lease.owner != self.owner => Delivery::Unknown,
                StoreEvent::Granted { .. }
                | StoreEvent::Freed { .. }
                | StoreEvent::Wanted { .. }
                | StoreEvent::Revoked { .. }
                | StoreEvent::LatchChanged { .. }
                | StoreEvent::RecheckAll
                | StoreEvent::RecheckHolds
                | StoreEvent::SessionEnded => Delivery::Taken,
            }
        }

        fn release_unknown(&self, lease: Lease) {
            self.released.lock().unwrap().push(lease.owner);
        }
    }

    fn granted(byte: u8) -> StoreEvent {
        let (owner, tokens) = (Owner::from_random([byte; 16]), TokenRange::above(0, Width::ONE).unwrap());
        let (name, terms) = ("a".parse().unwrap(), Terms::exclusive(Ttl::DEFAULT));
        let lease = Lease { name, owner, tokens, terms, slots: Slots::NONE };
        StoreEvent::Granted { lease, valid_for: Ttl::DEFAULT.get(), wanted: false }
    }

    #[test]
    fn all_hear_and_a_grant_that_nobody_knows_is_released_once() {
        let (one, two, listeners) = (Client::knowing(1), Client::knowing(2), Listeners::default());
        listeners.deliver(&granted(3));
        listeners.add(EventSink::of(Arc::downgrade(&one)));
        listeners.add(EventSink::of(Arc::downgrade(&two)));
        listeners.deliver(&StoreEvent::RecheckAll);
        [granted(1), granted(2)].iter().for_each(|event| listeners.deliver(event));
        let released = || [&one, &two].map(|client| client.released.lock().unwrap().len()).iter().sum::<usize>();
        assert_eq!(([&one, &two].map(|client| *client.heard.lock().unwrap()), released()), ([3, 3], 0));
        listeners.deliver(&granted(3));
        assert_eq!(released(), 1);
        listeners.add(EventSink::new(drop));
        listeners.deliver(&granted(3));
        assert_eq!(released(), 1, "who cannot tell may know it");
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let (one, listeners) = (Client::knowing(1), Listeners::default());
        listeners.add(EventSink::of(Arc::downgrade(&one)));
        listeners.add(EventSink::of(Arc::downgrade(&Client::knowing(2))));
        assert!(!listeners.is_empty());
        listeners.deliver(&granted(2));
        assert_eq!((listeners.lock().len(), one.released.lock().unwrap().len()), (1, 1));
        drop(one);
        listeners.deliver(&granted(2));
        assert!(listeners.is_empty());
    }
}
