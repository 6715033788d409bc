//! Shared parts of the tests: clients that note their events, claims, and a viewer of the nodes.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, Certainty, Claim, EventSink, Fairness, Holder, Lease, Mode,
    NameKind, Note, Owner, Queueing, Released, Renewed, StoreEvent, Terms, Ttl, Width,
};
use lock_host::{Bridge, Bridged};
use lock_zookeeper::nonblocking::Store;
use lock_zookeeper::{ZookeeperConfig, blocking};
use test_support::bounds::wait_for;
use test_support::{Fault, Proxy, Shared, ZookeeperOptions, ZookeeperServer};
use zookeeper_client::Error;

/// How long a request may take that is expected to be answered.
pub(crate) const SOON: Duration = Duration::from_secs(20);
/// How long a request may take that is expected to be in vain.
pub(crate) const SHORT: Duration = Duration::from_secs(1);
/// A session that does not end while a test runs, whatever happens to its connection.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The server that tests share which break nothing of it.
pub(crate) fn server() -> Arc<ZookeeperServer> {
    static SERVER: Shared<ZookeeperServer> = Shared::new();
    SERVER.get(|| ZookeeperServer::start_with(ZookeeperOptions::default().volatile()))
}

/// The URL of these servers, with commas between them.
pub(crate) fn url(addresses: &str, session: Duration) -> String {
    format!("zookeeper://{addresses}/?session={}ms&tick=500ms", session.as_millis())
}

pub(crate) fn at(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

pub(crate) fn config(url: &str) -> ZookeeperConfig {
    ZookeeperConfig::from_url(url).unwrap()
}

/// A client of the store, and the events that it received.
pub(crate) struct Client {
    store: Arc<Bridged<Store>>,
    told: Mutex<Receiver<StoreEvent>>,
    noted: Mutex<Vec<StoreEvent>>,
}

impl Client {
    /// Connects; on a busy machine, one attempt may have too little time.
    pub(crate) fn new(url: &str) -> Self {
        let config = config(url);
        let store = Arc::new(wait_for("a connection", || blocking::connect(&config)));
        let (tell, told) = channel();
        store.listen(EventSink::new(move |event| drop(tell.send(event))));
        Self { store, told: Mutex::new(told), noted: Mutex::default() }
    }

    pub(crate) fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.store.acquire(claim, within)
    }

    #[track_caller]
    pub(crate) fn take(&self, claim: &Claim) -> Lease {
        match self.acquire(claim, SOON) {
            Ok(Answer::Granted { lease, .. }) => lease,
            other => panic!("not granted: {other:?}"),
        }
    }

    /// Asks for a place in the queue, and returns the holder.
    #[track_caller]
    pub(crate) fn queue(&self, claim: &Claim, at: u32) -> Holder {
        match self.acquire(claim, SOON) {
            Ok(Answer::Queued { position, holder, .. }) if position == at => holder,
            other => panic!("not queued at {at}: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn is_busy(&self, claim: &Claim) -> Holder {
        match self.acquire(claim, SOON) {
            Ok(Answer::Busy { holder, .. }) => holder,
            other => panic!("not busy: {other:?}"),
        }
    }

    /// How long a lease lasts after a renewal; `None` if it is not held.
    pub(crate) fn renew(&self, lease: &Lease, within: Duration) -> Result<Option<Duration>, BackendError> {
        let renewed = self.store.renew(std::slice::from_ref(lease), within)?;
        Ok(match renewed.as_slice() {
            [Renewed::Renewed { valid_for, .. }] => Some(*valid_for),
            [Renewed::NotHeld] => None,
            other => panic!("{other:?}"),
        })
    }

    #[track_caller]
    pub(crate) fn releases(&self, claim: &Claim) {
        let released = self.store.release(&claim.release(Certainty::Answered), SOON).unwrap();
        assert_eq!(released, Released::Released);
    }

    /// Gives up whatever a claim has led to, of which nothing is known.
    #[track_caller]
    pub(crate) fn gives_up(&self, claim: &Claim) {
        self.store.release(&claim.release(Certainty::Unknown), SOON).unwrap();
    }

    pub(crate) fn end_session(&self) {
        self.store.end_session();
    }

    /// Every event so far.
    pub(crate) fn events(&self) -> Vec<StoreEvent> {
        let mut noted = self.noted.lock().unwrap();
        noted.extend(self.told.lock().unwrap().try_iter());
        noted.clone()
    }

    pub(crate) fn is_granted(&self, owner: Owner) -> bool {
        self.events().iter().any(|event| matches!(event, StoreEvent::Granted { lease, .. } if lease.owner == owner))
    }

    /// Waits until a claim that waits is granted, and asks for the lease once more, as stations do.
    #[track_caller]
    pub(crate) fn wait_for_grant(&self, claim: &Claim) -> Lease {
        wait_for("a grant", || self.is_granted(claim.owner));
        self.take(claim)
    }

    pub(crate) fn sessions_ended(&self) -> usize {
        self.events().iter().filter(|event| **event == StoreEvent::SessionEnded).count()
    }
}

/// Locks as users see them.
pub(crate) fn locks(url: &str) -> lock_blocking::Client {
    let config = config(url);
    lock_blocking::Client::new(Arc::new(wait_for("a connection", || blocking::connect(&config)))).unwrap()
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

/// The same claim, for the write side.
pub(crate) fn writing(claim: Claim) -> Claim {
    Claim { kind: NameKind::ReadWriteLock, ..claim }
}

/// Runs work in another thread.
pub(crate) fn meanwhile<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::spawn(work)
}

/// The result of that work.
#[track_caller]
pub(crate) fn end<T>(work: thread::JoinHandle<T>) -> T {
    wait_for("the end of a thread", || work.is_finished());
    work.join().unwrap()
}

/// Reads nodes over a session of its own.
pub(crate) struct Viewer {
    client: zookeeper_client::Client,
    bridge: Bridge,
}

impl Viewer {
    pub(crate) fn at(addresses: &str) -> Self {
        let bridge = Bridge::start().unwrap();
        let connect = || {
            let connector = zookeeper_client::Client::connector().with_session_timeout(LONG);
            bridge.block_on(connector.connect(addresses))
        };
        Self { client: wait_for("a session of the viewer", connect), bridge }
    }

    /// The children of a node; none if there is no such node.
    #[track_caller]
    pub(crate) fn children(&self, path: &str) -> Vec<String> {
        match self.bridge.block_on(self.client.list_children(path)) {
            Ok(children) => children,
            Err(Error::NoNode) => Vec::new(),
            Err(error) => panic!("{error}"),
        }
    }

    /// The data of a node.
    #[track_caller]
    pub(crate) fn data(&self, path: &str) -> Vec<u8> {
        self.bridge.block_on(self.client.get_data(path)).unwrap().0
    }

    /// Deletes a node, as somebody does by hand.
    #[track_caller]
    pub(crate) fn delete(&self, path: &str) {
        self.bridge.block_on(self.client.delete(path, None)).unwrap();
    }

    #[track_caller]
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.bridge.block_on(self.client.check_stat(path)).unwrap().is_some()
    }
}

/// Renews a lease and cuts its client off. Nobody else is granted the lock before the client has stopped relying on it.
#[track_caller]
pub(crate) fn lasts_while_cut_off(
    client: &Client,
    lease: &Lease,
    proxy: &Proxy,
    mut next_is_granted: impl FnMut() -> bool,
) {
    let asked = Instant::now();
    let lasts = client.renew(lease, SOON).unwrap().unwrap();
    proxy.set(Fault::Refuse);
    proxy.cut();
    wait_for("the next one is granted", &mut next_is_granted);
    assert!(asked.elapsed() >= lasts, "{:?} of {lasts:?}", asked.elapsed());
}
