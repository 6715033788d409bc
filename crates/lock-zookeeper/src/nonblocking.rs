//! The store for tokio.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, Capabilities, Certainty, Claim, Durability, Effect, EntriesEnd,
    ErrorKind, EventSink, Fenced, Isolation, Lease, Listeners, Location, LockName, ModeKind, Operation, Owner,
    ReleaseRequest, Released, Renewed, RequestOrder, Waiting,
};
use lock_host::Bridge;

use crate::ZookeeperConfig;
use crate::claim::SharedPlace;
use crate::entries::Entries;
use crate::error::{self, BACKEND};
use crate::path;
use crate::place::{Place, Whose};
use crate::session::Session;

/// How long a session may take to open. Chosen: several servers can be tried.
const OPEN_WITHIN: Duration = Duration::from_secs(5);
/// How long closing a session may take.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// One client: one session, whose connection has a thread of its own, so that nothing that users do delays a renewal.
pub struct Store {
    config: ZookeeperConfig,
    bridge: Bridge,
    listeners: Arc<Listeners>,
    sessions: Arc<Mutex<Sessions>>,
}

/// The current session, and the one that is being opened.
#[derive(Default)]
struct Sessions {
    current: Option<Arc<Current>>,
    /// All requests that need a session wait for the same one. It is opened even if none of them has the time to wait for it.
    opening: Option<Opening>,
}

type Opening = Shared<BoxFuture<'static, Result<Arc<Current>, BackendError>>>;

/// The session, and what this client has in it.
struct Current {
    session: Arc<Session>,
    entries: Entries,
}

/// Opens a session.
///
/// # Errors
/// `Unreachable` if no server answers, `Config` if the chroot does not exist, `Denied` for a wrong login.
///
/// # Cancel safety
/// Can be dropped at any point.
pub async fn connect(config: &ZookeeperConfig) -> Result<Store, BackendError> {
    over(config, bridge()?).await
}

pub(crate) async fn over(config: &ZookeeperConfig, bridge: Bridge) -> Result<Store, BackendError> {
    let store = Store::new(config, bridge);
    store.session().await.map_err(|failure| failure.of_operation(Operation::Connect))?;
    Ok(store)
}

/// The thread that connections belong to.
pub(crate) fn bridge() -> Result<Bridge, BackendError> {
    let failed = |failure| {
        let message = "a thread for connections cannot be started";
        error::new(Operation::Connect, ErrorKind::Unavailable, Effect::None, message).with_source(failure)
    };
    Bridge::start().map_err(failed)
}

async fn opened(config: &ZookeeperConfig, listeners: Arc<Listeners>) -> Result<Arc<Current>, BackendError> {
    let opened = tokio::time::timeout(OPEN_WITHIN, Session::open(config, listeners)).await;
    let late = |_| Err(unreachable(format!("none of {} answered within {OPEN_WITHIN:?}", config.servers())));
    let session = opened.unwrap_or_else(late)?;
    Ok(Arc::new(Current { session, entries: Entries::default() }))
}

fn unreachable(message: impl Into<String>) -> BackendError {
    let told = error::new(Operation::Connect, ErrorKind::Unreachable, Effect::None, message);
    told.with_remedy("check that the servers are running and reachable")
}

fn lock(sessions: &Mutex<Sessions>) -> MutexGuard<'_, Sessions> {
    sessions.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    fn new(config: &ZookeeperConfig, bridge: Bridge) -> Self {
        let (config, listeners) = (config.clone(), Arc::default());
        Self { config, bridge, listeners, sessions: Arc::default() }
    }

    /// The session, which is opened if there is none, or it has ended.
    async fn session(&self) -> Result<Arc<Current>, BackendError> {
        let opening = {
            let mut sessions = lock(&self.sessions);
            if let Some(current) = sessions.current.as_ref().filter(|current| !current.session.is_over()) {
                return Ok(Arc::clone(current));
            }
            let under_way = sessions.opening.take().filter(|opening| opening.peek().is_none());
            sessions.opening.insert(under_way.unwrap_or_else(|| self.open())).clone()
        };
        opening.await
    }

    fn open(&self) -> Opening {
        let (config, listeners, sessions) =
            (self.config.clone(), Arc::clone(&self.listeners), Arc::clone(&self.sessions));
        let opened = self.bridge.handle().spawn(async move {
            let opened = opened(&config, listeners).await;
            let mut sessions = lock(&sessions);
            sessions.opening = None;
            if let Ok(current) = &opened {
                sessions.current = Some(Arc::clone(current));
            }
            opened
        });
        let ended = |failure| Err(unreachable("the task that connects has ended").with_source(failure));
        opened.map(move |opened| opened.unwrap_or_else(ended)).boxed().shared()
    }

    async fn claim(&self, claim: &Claim) -> Result<Answer, BackendError> {
        let current = self.session().await.map_err(|failure| failure.of_operation(Operation::Acquire))?;
        let Current { session, entries } = &*current;
        loop {
            let shared = entries.place(claim, || Place::new(claim.owner, self.directory(&claim.name)))?;
            let mut place = shared.lock().await;
            // The request before this one may have given it up.
            if !entries.of(&claim.name, claim.owner).is_some_and(|current| current.is(&shared)) {
                continue;
            }
            let answer = place.claim(session, claim).await;
            if let Ok(Answer::Busy { .. }) = answer {
                entries.forget(&claim.name, claim.owner);
            }
            return answer;
        }
    }

    async fn give_up(&self, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let current = self.session().await.map_err(|failure| failure.of_operation(Operation::Release))?;
        let Current { session, entries } = &*current;
        if request.certainty == Certainty::Unknown {
            entries.refuse(request.owner);
        }
        let place = self.place(entries, &request.name, request.owner);
        let mut place = place.lock().await;
        let released = place.leave(session).await.map_err(|failure| error::of(Operation::Release, failure))?;
        entries.forget(&request.name, request.owner);
        Ok(released)
    }

    /// The place of an owner. One that this session has not made is looked for.
    fn place(&self, entries: &Entries, name: &LockName, owner: Owner) -> SharedPlace {
        entries.of(name, owner).unwrap_or_else(|| SharedPlace::new(Place::unknown(owner, self.directory(name))))
    }

    fn directory(&self, name: &LockName) -> String {
        path::of(self.config.prefix(), name)
    }

    /// Which of these leases the leader knows, in their order, and how long the session is sure to last.
    async fn known(
        &self,
        leases: &[Lease],
        whose: Whose,
        operation: Operation,
    ) -> Result<(Vec<bool>, Duration), BackendError> {
        let failed = |failure| error::of(operation, failure);
        let current = self.session().await.map_err(|failure| failure.of_operation(operation))?;
        let Current { session, entries } = &*current;
        let mut nodes = Vec::new();
        for lease in leases {
            let place = self.place(entries, &lease.name, lease.owner);
            let mut place = place.lock().await;
            nodes.push(place.place().node(session, lease, whose).await.map_err(failed)?);
        }
        loop {
            let asked: Vec<_> = nodes.iter().flatten().map(String::as_str).collect();
            let Some(missing) = session.missing(&asked).await.map_err(failed)? else { break };
            let Some(node) = nodes.iter_mut().filter(|node| node.is_some()).nth(missing) else { break };
            *node = None;
        }
        let lasts = session.lasts().await.map_err(failed)?;
        Ok((nodes.iter().map(Option::is_some).collect(), lasts))
    }

    async fn check(&self, lease: &Lease) -> Result<Fenced, BackendError> {
        let failed = |failure| error::of(Operation::Fence, failure);
        if self.known(std::slice::from_ref(lease), Whose::Anybody, Operation::Fence).await?.0 == [true] {
            return Ok(Fenced::Acknowledged);
        }
        let current = self.session().await?;
        let place = self.place(&current.entries, &lease.name, lease.owner);
        let higher = place.lock().await.place().higher(&current.session, lease.tokens).await.map_err(failed)?;
        Ok(higher.map_or(Fenced::NotHeld, Fenced::Higher))
    }

    async fn within<T>(
        operation: Operation,
        within: Duration,
        run: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        tokio::time::timeout(within, run).await.unwrap_or_else(|_| Err(error::timeout(operation, within)))
    }
}

impl Backend for Store {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(BACKEND, Waiting::QueueWithPush, Durability::Durable)
            .with_ordering(RequestOrder::Unordered)
            .with_isolation(Isolation::Isolated)
            .with_modes(&[ModeKind::Exclusive])
            .with_entries_end(EntriesEnd::WithSession)
    }

    fn listen(&self, sink: EventSink) {
        self.listeners.add(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        Some(Location { store: self.config.place(), key: self.config.prefix().key(name.as_str()) })
    }

    fn end_session(&self) {
        let ended = lock(&self.sessions).current.take();
        if let Some(current) = ended {
            current.session.end();
        }
    }
}

#[async_trait]
impl AsyncBackend for Store {
    /// The same: one session is one fate, and its connection has a thread of its own.
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        self
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        Self::within(Operation::Acquire, within, self.claim(claim)).await
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let (known, lasts) =
            Self::within(Operation::Renew, within, self.known(leases, Whose::Session, Operation::Renew)).await?;
        let renewed = |lease: &Lease| Renewed::Renewed { valid_for: lasts.min(lease.terms.ttl.get()), wanted: false };
        let answers =
            leases.iter().zip(known).map(|(lease, known)| if known { renewed(lease) } else { Renewed::NotHeld });
        Ok(answers.collect())
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        Self::within(Operation::Release, within, self.give_up(request)).await
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        Self::within(Operation::Fence, within, self.check(lease)).await
    }
}

impl Drop for Store {
    /// Has the session closed, so that its entries end now and not with its timeout.
    fn drop(&mut self) {
        let (Some(current), bridge) = (lock(&self.sessions).current.take(), self.bridge.clone()) else { return };
        current.session.abandon();
        let mut states = current.session.client().state_watcher();
        drop(current);
        self.bridge.handle().spawn(async move {
            let closed = async { while !states.changed().await.is_terminated() {} };
            _ = tokio::time::timeout(CLOSE_WITHIN, closed).await;
            drop(bridge);
        });
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.config).finish()
    }
}
