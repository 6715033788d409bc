//! The network between a client and the server: slow, and failing on command.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lock_core::latch::ArrivalId;
use lock_core::{BackendError, Effect, ErrorKind, LockName, Operation};
use lock_rules::window::{Commit, Committed, LatchCommit, LatchWindow, Needs, Window, WindowStore};

use crate::BACKEND;
use crate::server::{ClientId, Server};

/// The longest that a message takes.
const SLOWEST: Duration = Duration::from_micros(500);
/// One of so many commits finds a conflict although nothing has changed.
const CONFLICTS: u32 = 6;

/// How the network fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Messages do not leave.
    Cut,
    /// Messages arrive, and their answers are lost.
    LostReplies,
    /// Messages do not arrive, and nobody is told.
    Silent,
}

/// What the clients of a server share. Cloning gives another handle to the same network.
#[derive(Clone, Debug, Default)]
pub struct Network(Arc<State>);

#[derive(Debug, Default)]
struct State {
    failure: Mutex<Option<Failure>>,
    failed: AtomicU64,
}

impl Network {
    /// Fails from now on in this way, or no longer.
    pub fn set(&self, failure: Option<Failure>) {
        *self.0.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// How many messages have failed.
    pub fn failed(&self) -> u64 {
        self.0.failed.load(Ordering::SeqCst)
    }

    fn failure(&self) -> Option<Failure> {
        let failure = *self.0.failure.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.failed.fetch_add(failure.is_some().into(), Ordering::SeqCst);
        failure
    }

    /// Carries a message to the server, and its answer back.
    async fn carry<T>(&self, message: impl FnOnce() -> T + Send) -> Result<T, BackendError>
    where
        T: Send,
    {
        let failure = self.failure();
        match failure {
            Some(Failure::Cut) => return Err(failed(ErrorKind::Unreachable, Effect::None, "the network is cut")),
            Some(Failure::Silent) => pending().await,
            Some(Failure::LostReplies) | None => travel().await,
        }
        let answer = message();
        match failure {
            Some(_) => Err(failed(ErrorKind::Timeout, Effect::Unknown, "the answer was lost")),
            None => {
                travel().await;
                Ok(answer)
            }
        }
    }
}

async fn travel() {
    tokio::time::sleep(SLOWEST.mul_f64(fastrand::f64())).await;
}

fn failed(kind: ErrorKind, effect: Effect, message: &str) -> BackendError {
    BackendError::new(BACKEND, Operation::Connect, kind, effect, message)
}

/// The server, as one client reaches it.
pub(crate) struct Remote {
    pub(crate) server: Arc<Server>,
    pub(crate) network: Network,
}

impl WindowStore for Remote {
    const BACKEND: &'static str = BACKEND;
    type Client = ClientId;
    type Error = BackendError;

    async fn load(&self, name: &LockName, needs: Needs) -> Result<Window<ClientId>, BackendError> {
        self.network.carry(|| self.server.load(name, needs)).await
    }

    async fn commit(&self, name: &LockName, commit: Commit<ClientId>) -> Result<Committed, BackendError> {
        let conflicts = fastrand::u32(..CONFLICTS) == 0;
        let message = || if conflicts { Committed::Conflict } else { self.server.commit(name, commit) };
        self.network.carry(message).await
    }

    async fn load_latch(&self, name: &LockName, arrival: Option<&ArrivalId>) -> Result<LatchWindow, BackendError> {
        self.network.carry(|| self.server.load_latch(name, arrival)).await
    }

    async fn commit_latch(&self, name: &LockName, commit: LatchCommit) -> Result<Committed, BackendError> {
        self.network.carry(|| self.server.commit_latch(name, commit)).await
    }
}
