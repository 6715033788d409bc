//! The sessions of one client: one at a time, which is opened when a request needs it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use lock_core::{BackendError, Effect, ErrorKind, EventSink, Listeners, Operation, Ttl};
use lock_host::Bridge;
use lock_rules::SessionProof;
use zookeeper_client::OneshotWatcher;

use crate::ZookeeperConfig;
use crate::connect::{close, in_time};
use crate::entries::Entries;
use crate::error;
use crate::session::Session;

/// The current session, and what is needed to open the next one. Dropping this has the session closed.
pub(crate) struct Sessions {
    config: ZookeeperConfig,
    bridge: Bridge,
    listeners: Arc<Listeners>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    current: Option<Arc<Current>>,
    /// All requests that need a session wait for the same one. It is opened even if none of them has the time to wait for it.
    opening: Option<Opening>,
    /// How long the latest session lasts.
    timeout: Option<Duration>,
}

type Opening = Shared<BoxFuture<'static, Result<Arc<Current>, BackendError>>>;

/// A session, and what this client has in it.
pub(crate) struct Current {
    pub(crate) session: Arc<Session>,
    pub(crate) entries: Entries,
}

impl Sessions {
    pub(crate) fn new(config: &ZookeeperConfig, bridge: Bridge) -> Self {
        Self { config: config.clone(), bridge, listeners: Arc::default(), state: Arc::default() }
    }

    pub(crate) fn listen(&self, sink: EventSink) {
        self.listeners.add(sink);
    }

    /// The session, which is opened if there is none, or it has ended.
    pub(crate) async fn current(&self) -> Result<Arc<Current>, BackendError> {
        let opening = {
            let mut state = lock(&self.state);
            if let Some(current) = state.current.as_ref().filter(|current| !current.session.is_over()) {
                return Ok(Arc::clone(current));
            }
            let in_flight = state.opening.take().filter(|opening| opening.peek().is_none());
            let ending = state.current.clone();
            state.opening.insert(in_flight.unwrap_or_else(|| self.open(ending))).clone()
        };
        opening.await
    }

    /// Opens the next session, once the listeners know that this one has ended.
    fn open(&self, ending: Option<Arc<Current>>) -> Opening {
        let (config, listeners, state) = (self.config.clone(), Arc::clone(&self.listeners), Arc::clone(&self.state));
        let opened = self.bridge.handle().spawn(async move {
            ending.into_iter().for_each(|ending| ending.session.await_told());
            let opened = in_time(&config, &config.servers(), Session::open(&config, listeners)).await;
            let mut locked = lock(&state);
            locked.opening = None;
            let (session, rebased) = opened?;
            locked.timeout = Some(session.client().session_timeout());
            let current = Arc::new(Current { session, entries: Entries::default() });
            locked.current = Some(Arc::clone(&current));
            tokio::spawn(end_with_base(rebased, Arc::downgrade(&current), Arc::downgrade(&state)));
            Ok(current)
        });
        let ended = |failure| {
            let message = "the task that connects has ended";
            let told = error::new(Operation::Connect, ErrorKind::Unavailable, Effect::None, message);
            Err(told.with_source(failure))
        };
        opened.map(move |opened| opened.unwrap_or_else(ended)).boxed().shared()
    }

    /// How long a lease lasts at most: as long as the servers agreed to, or were asked for.
    pub(crate) fn lease_max(&self) -> Ttl {
        let asked = self.config.session().get();
        let timeout = lock(&self.state).timeout.unwrap_or(asked);
        let proved = SessionProof::proved(timeout, self.config.tick());
        Ttl::new(proved).unwrap_or(Ttl::MIN)
    }

    /// Ends the session, and tells the listeners.
    pub(crate) fn end(&self) {
        let current = lock(&self.state).current.clone();
        current.into_iter().for_each(|current| end_of(&current, &self.state));
    }
}

impl Drop for Sessions {
    /// Has the session closed, so that its entries end now and not with its timeout.
    fn drop(&mut self) {
        let (Some(current), bridge) = (lock(&self.state).current.take(), self.bridge.clone()) else { return };
        current.session.abandon();
        let client = current.session.client().clone();
        drop(current);
        self.bridge.handle().spawn(async move {
            close(client).await;
            drop(bridge);
        });
    }
}

/// The thread that connections belong to.
pub(crate) fn bridge() -> Result<Bridge, BackendError> {
    let failed = |failure| {
        let message = "a thread for connections cannot be started";
        error::new(Operation::Connect, ErrorKind::Unavailable, Effect::None, message).with_source(failure)
    };
    Bridge::start().map_err(failed)
}

/// Ends the session when the base of the tokens changes: the next one has tokens above the new base.
async fn end_with_base(rebased: OneshotWatcher, current: Weak<Current>, state: Weak<Mutex<State>>) {
    rebased.changed().await;
    let (Some(current), Some(state)) = (current.upgrade(), state.upgrade()) else { return };
    end_of(&current, &state);
}

fn end_of(current: &Arc<Current>, state: &Mutex<State>) {
    current.session.end();
    lock(state).current.take_if(|now| Arc::ptr_eq(now, current));
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
