//! A session: its connection, and what proves that it lives.

mod nodes;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Listeners, Moment, Operation, StoreEvent};
use lock_host::{Clock, HostClock};
use lock_rules::SessionProof;
use tokio::runtime::Handle;
use zookeeper_client::{Acls, Client, Error, OneshotWatcher, SessionState, StateWatcher};

use crate::ZookeeperConfig;
use crate::connect::connect;
use crate::error;
use crate::tokens::Base;

/// One session of one client.
pub(crate) struct Session {
    client: Client,
    base: Base,
    acls: Acls<'static>,
    /// Those of nodes that every client reads.
    readable: Acls<'static>,
    proof: Mutex<SessionProof>,
    is_over: AtomicBool,
    /// Read-locked while an event is delivered, so that the end is delivered last.
    telling: RwLock<()>,
    listeners: Arc<Listeners>,
    runtime: Handle,
}

impl Session {
    /// Opens a session. Also returns what learns of another base of the tokens, with which the session has to end.
    pub(crate) async fn open(
        config: &ZookeeperConfig,
        listeners: Arc<Listeners>,
    ) -> Result<(Arc<Self>, OneshotWatcher), BackendError> {
        let asked = HostClock.now();
        let client = connect(config, &config.servers()).await?;
        let tick = config.tick();
        check_tick(client.session_timeout(), tick)?;
        let proof = SessionProof::new(asked, client.session_timeout(), tick);
        let (acls, readable) = (config.acls(), config.readable());
        let failed = |failure| error::of_opening(&config.servers().join(","), failure);
        let (base, rebased) = Base::read(&client, readable).await.map_err(failed)?;
        let (proof, runtime) = (Mutex::new(proof), Handle::current());
        let (states, is_over, telling) = (client.state_watcher(), AtomicBool::new(false), RwLock::default());
        let session = Arc::new(Self { client, base, acls, readable, proof, is_over, telling, listeners, runtime });
        tokio::spawn(follow(states, Arc::downgrade(&session)));
        tokio::spawn(touch(tick / TOUCHES_PER_TICK, Arc::downgrade(&session)));
        Ok((session, rebased))
    }

    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) const fn base(&self) -> Base {
        self.base
    }

    /// Whether it has ended, or was given up.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Notifies the listeners that it has ended, once. Nothing more of it is delivered.
    pub(crate) fn end(&self) {
        // Waits until nothing else is being delivered.
        let _telling = self.telling.write();
        if !self.is_over.swap(true, Ordering::SeqCst) {
            self.listeners.deliver(&StoreEvent::SessionEnded);
        }
    }

    /// Waits until the listeners have been notified of the end of a session that is over.
    pub(crate) fn await_told(&self) {
        drop(self.telling.write());
    }

    /// Ends it without telling anybody: its store is being dropped, perhaps by a listener.
    pub(crate) fn abandon(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Tells the listeners something, unless it has ended.
    pub(crate) fn tell(&self, event: &StoreEvent) {
        let _telling = self.telling.read();
        if !self.is_over() {
            self.listeners.deliver(event);
        }
    }

    /// Runs a task beside the connection.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// What the nodes of this session name as their owner.
    pub(crate) fn id(&self) -> i64 {
        self.client.session_id().0
    }

    /// Sends a request that a follower may answer.
    pub(crate) async fn read<'a, F: Future<Output = Result<T, Error>>, T>(
        &'a self,
        ask: impl FnOnce(&'a Client) -> F,
    ) -> Result<T, Error> {
        self.ask(ask, SessionProof::answer).await
    }

    /// Sends a request that the leader orders.
    pub(crate) async fn write<'a, F: Future<Output = Result<T, Error>>, T>(
        &'a self,
        ask: impl FnOnce(&'a Client) -> F,
    ) -> Result<T, Error> {
        self.ask(ask, SessionProof::write).await
    }

    /// Sends a request. If the server answers, `hear` learns when it was sent and when it was answered.
    async fn ask<'a, F: Future<Output = Result<T, Error>>, T>(
        &'a self,
        ask: impl FnOnce(&'a Client) -> F,
        hear: fn(&mut SessionProof, Moment, Moment),
    ) -> Result<T, Error> {
        let sent = HostClock.now();
        let answer = ask(&self.client).await;
        if is_answer(answer.as_ref().err()) {
            hear(&mut lock(&self.proof), sent, HostClock.now());
        }
        answer
    }

    /// How long the session is sure to last. Waits for a proof if that is little of its timeout.
    pub(crate) async fn lasts(&self) -> Result<Duration, Error> {
        let little = self.client.session_timeout() / 4;
        while self.lasts_now() < little {
            self.catch_up().await?;
            if self.lasts_now() < little {
                tokio::time::sleep(little / 4).await;
            }
        }
        Ok(self.lasts_now())
    }

    /// The same, as it is known now.
    fn lasts_now(&self) -> Duration {
        lock(&self.proof).lasts(HostClock.now())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("timeout", &self.client.session_timeout()).finish_non_exhaustive()
    }
}

/// How often the server is shown a sign of life in each tick. Chosen: so a proof is little older than a tick.
const TOUCHES_PER_TICK: u32 = 4;

/// Refuses a session in which too little would be proved.
fn check_tick(session: Duration, tick: Duration) -> Result<(), BackendError> {
    if tick.saturating_mul(2) <= session {
        return Ok(());
    }
    let message = format!("the servers agree to a session of {session:?}, which is less than two ticks of {tick:?}");
    let told = error::new(Operation::Connect, ErrorKind::Config, Effect::None, message);
    Err(told.with_remedy("write tick=TIME into the URL, with the tickTime of the servers, or a longer session"))
}

/// Follows the states of the session until it ends.
async fn follow(mut states: StateWatcher, session: Weak<Session>) {
    loop {
        let state = states.changed().await;
        let Some(session) = session.upgrade() else { return };
        match state {
            SessionState::Disconnected => lock(&session.proof).disconnect(HostClock.now()),
            SessionState::SyncConnected | SessionState::ConnectedReadOnly => {
                // Of states that follow each other quickly, only the last one is seen.
                lock(&session.proof).disconnect(HostClock.now());
                session.tell(&StoreEvent::RecheckAll);
                session.tell(&StoreEvent::RecheckHolds);
            }
            SessionState::AuthFailed | SessionState::Expired | SessionState::Closed => return session.end(),
        }
    }
}

/// Shows the server signs of life, so that it has one to report whenever a lease is granted or renewed. Ends the session if there was no
/// proof of it for so long that it must be over, whatever the client says.
async fn touch(pause: Duration, session: Weak<Session>) {
    loop {
        tokio::time::sleep(pause).await;
        let Some(session) = session.upgrade().filter(|session| !session.is_over()) else { return };
        let shown = session.read(|client| client.check_stat("/")).await;
        if shown.is_err() && lock(&session.proof).is_long_over(HostClock.now()) {
            return session.end();
        }
    }
}

/// Whether the server has answered.
const fn is_answer(failure: Option<&Error>) -> bool {
    matches!(
        failure,
        None | Some(Error::NoNode | Error::NodeExists | Error::BadVersion | Error::NotEmpty | Error::NoAuth)
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
