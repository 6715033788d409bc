//! Shared parts of the tests: clients that note their events, and claims.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lock_core::inspect::Query;
use lock_core::latch::{Act, LatchState, Request};
use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, Certainty, Claim, EventSink, Fairness, Fenced, Lease, Mode,
    NameKind, Note, Owner, Queueing, ReleaseRequest, Released, Renewed, StoreEvent, Terms, Ttl, Width,
};
use lock_etcd::nonblocking::Store;
use lock_etcd::{EtcdConfig, blocking};
use lock_host::Bridged;
use test_support::bounds::wait_for;
use test_support::{EtcdServer, Shared};

use crate::VERSION;

/// How long a request may take that is expected to be answered.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The server that tests share which break nothing of it.
pub(crate) fn server() -> Arc<EtcdServer> {
    static SERVER: Shared<EtcdServer> = Shared::new();
    SERVER.get(start)
}

/// A server of the version that is tested.
pub(crate) fn start() -> EtcdServer {
    EtcdServer::start_version(VERSION)
}

/// A client of the store, and the events that it received.
pub(crate) struct Client {
    pub(crate) store: Arc<Bridged<Store>>,
    told: Mutex<Receiver<StoreEvent>>,
    noted: Mutex<Vec<StoreEvent>>,
}

impl Client {
    pub(crate) fn new(url: &str) -> Self {
        let config = EtcdConfig::from_url(url).unwrap();
        let store = Arc::new(wait_for("a connection", || blocking::connect(&config)));
        let (tell, told) = channel();
        store.listen(EventSink::new(move |event| drop(tell.send(event))));
        Self { store, told: Mutex::new(told), noted: Mutex::default() }
    }

    pub(crate) fn acquire(&self, claim: &Claim) -> Result<Answer, BackendError> {
        self.store.acquire(claim, SOON)
    }

    #[track_caller]
    pub(crate) fn take(&self, claim: &Claim) -> Lease {
        match self.acquire(claim) {
            Ok(Answer::Granted { lease, .. }) => lease,
            other => panic!("not granted: {other:?}"),
        }
    }

    pub(crate) fn try_take(&self, claim: &Claim) -> Option<Lease> {
        match self.acquire(claim) {
            Ok(Answer::Granted { lease, .. }) => Some(lease),
            Ok(_) | Err(_) => None,
        }
    }

    pub(crate) fn try_release(&self, claim: &Claim) -> Result<Released, BackendError> {
        self.store.release(&claim.release(Certainty::Answered), SOON)
    }

    #[track_caller]
    pub(crate) fn queue(&self, claim: &Claim, at: u32) {
        match self.acquire(claim) {
            Ok(Answer::Queued { position, .. }) if position == at => {}
            other => panic!("not queued at {at}: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn is_busy(&self, claim: &Claim) {
        let answer = self.acquire(claim);
        assert!(matches!(answer, Ok(Answer::Busy { .. })), "{answer:?}");
    }

    /// How long a lease lasts after a renewal; `None` if it is not held.
    pub(crate) fn renew(&self, lease: &Lease) -> Result<Option<Duration>, BackendError> {
        let renewed = self.store.renew(std::slice::from_ref(lease), SOON)?;
        Ok(match renewed.as_slice() {
            [Renewed::Renewed { valid_for, .. }] => Some(*valid_for),
            [Renewed::NotHeld] => None,
            other => panic!("{other:?}"),
        })
    }

    /// Until when a lease is sure to last after a renewal; an error too if it is not held.
    pub(crate) fn renew_until(&self, lease: &Lease) -> Result<Instant, String> {
        let asked = Instant::now();
        let lasts = self.renew(lease).map_err(|error| error.to_string())?;
        lasts.map(|lasts| asked + lasts).ok_or_else(|| "not held".to_owned())
    }

    pub(crate) fn fence(&self, lease: &Lease) -> Fenced {
        self.store.fence(lease, SOON).unwrap()
    }

    /// The names of all locks that are held.
    pub(crate) fn list_all(&self) -> Vec<String> {
        let (mut names, mut query) = (Vec::new(), Query::all());
        loop {
            let page = self.store.list(&query, SOON).unwrap();
            names.extend(page.entries.iter().map(|entry| entry.name.to_string()));
            let Some(next) = page.next else { return names };
            query.cursor = Some(next);
        }
    }

    pub(crate) fn latch(&self, name: &str, act: Act) -> Result<Option<LatchState>, BackendError> {
        self.store.latch(&Request { name: name.parse().unwrap(), act }, SOON).map(|seen| seen.state)
    }

    pub(crate) fn release(&self, claim: &Claim, certainty: Certainty) -> Released {
        self.store.release(&claim.release(certainty), SOON).unwrap()
    }

    pub(crate) fn keep(&self, request: &ReleaseRequest) -> Released {
        self.store.release(request, SOON).unwrap()
    }

    #[track_caller]
    pub(crate) fn releases(&self, claim: &Claim) {
        assert_eq!(self.release(claim, Certainty::Answered), Released::Released);
    }

    pub(crate) fn is_granted(&self, owner: Owner) -> bool {
        self.is_told(|event| matches!(event, StoreEvent::Granted { lease, .. } if lease.owner == owner))
    }

    /// Whether there was such an event.
    pub(crate) fn is_told(&self, is_it: impl Fn(&StoreEvent) -> bool) -> bool {
        let mut noted = self.noted.lock().unwrap();
        noted.extend(self.told.lock().unwrap().try_iter());
        noted.iter().any(is_it)
    }

    /// Whether it was notified that ends may have been missed.
    pub(crate) fn is_to_recheck(&self) -> bool {
        self.is_told(|event| matches!(event, StoreEvent::RecheckAll))
    }

    /// Waits until a claim that waits is granted, and asks for the lease once more, as stations do.
    #[track_caller]
    pub(crate) fn wait_for_grant(&self, claim: &Claim) -> Lease {
        wait_for("a grant", || self.is_granted(claim.owner));
        self.take(claim)
    }
}

/// The same store with the facade for threads, which renews by itself.
pub(crate) fn facade(url: &str) -> lock_blocking::Client {
    let config = EtcdConfig::from_url(url).unwrap();
    lock_blocking::Client::new(Arc::new(wait_for("a connection", || blocking::connect(&config)))).unwrap()
}

/// How many keys begin so.
pub(crate) fn count(server: &EtcdServer, beginning: &str) -> usize {
    server.run(&["get", "--prefix", "--keys-only", beginning]).matches(beginning).count()
}

pub(crate) fn claim(name: &str) -> Claim {
    Claim {
        name: name.parse().unwrap(),
        owner: lock_host::new_owner().unwrap(),
        terms: Terms::exclusive(Ttl::new(Duration::from_secs(60)).unwrap()),
        width: Width::ONE,
        floor: None,
        note: Note::new("here", 1, "testing").unwrap(),
        queueing: Queueing::Unwanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

pub(crate) fn waiting(name: &str) -> Claim {
    Claim { queueing: Queueing::Wanted, ..claim(name) }
}

/// The same claim, for reading.
pub(crate) fn reading(claim: Claim) -> Claim {
    claim.in_mode(Mode::Shared)
}

/// The same claim, with this ttl.
pub(crate) fn lasting(claim: Claim, ttl: Duration) -> Claim {
    let terms = Terms { ttl: Ttl::new(ttl).unwrap(), ..claim.terms };
    Claim { terms, ..claim }
}
