//! The network between a client and the server: slow, and failing on command.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lock_core::latch::{self, LatchState};
use lock_core::{BackendError, Effect, ErrorKind, LockName, Operation};
use lock_rules::window::{Committed, Request, Step, WindowStore, ask_latch};

use crate::server::{ClientId, Server};

/// The name of the store in errors.
pub(crate) const BACKEND: &str = "window";
/// The longest that a message takes.
const SLOWEST: Duration = Duration::from_micros(500);
/// One commit in this many reports a spurious conflict.
const CONFLICTS: u32 = 6;

/// How the network fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Messages do not leave.
    Cut,
    /// The last answer of each request is lost, after which its client knows nothing.
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

    /// Carries a message to the server, and its answer back.
    async fn carry<T: Send>(&self, message: impl FnOnce() -> T + Send) -> Result<T, BackendError> {
        if self.fails_by(Failure::Cut) {
            return Err(failed(ErrorKind::Unreachable, Effect::None, "the network is cut"));
        }
        if self.fails_by(Failure::Silent) {
            pending::<()>().await;
        }
        travel().await;
        let answer = message();
        travel().await;
        Ok(answer)
    }

    /// The answer to a request that was carried out.
    fn deliver<T>(&self, answer: T) -> Result<T, BackendError> {
        match self.fails_by(Failure::LostReplies) {
            true => Err(failed(ErrorKind::Timeout, Effect::Unknown, "the answer was lost")),
            false => Ok(answer),
        }
    }

    fn fails_by(&self, failure: Failure) -> bool {
        let fails = *self.0.failure.lock().unwrap_or_else(PoisonError::into_inner) == Some(failure);
        self.0.failed.fetch_add(fails.into(), Ordering::SeqCst);
        fails
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
}

impl Remote {
    /// Runs a request until it is answered.
    pub(crate) async fn run<T>(&self, name: &LockName, mut request: Request<'_, Self, T>) -> Result<T, BackendError> {
        let mut step = request.begin();
        loop {
            step = match step {
                Step::Load(needs) => request.loaded(self.network.carry(|| self.server.load(name, needs)).await?),
                Step::Commit(commit) => request.committed(self.commit(|| self.server.commit(name, commit)).await?),
                Step::Done(answer) => return self.network.deliver(answer)?,
            };
        }
    }

    pub(crate) async fn ask_latch(&self, request: &latch::Request) -> Result<Option<LatchState>, BackendError> {
        let name = &request.name;
        loop {
            let window = self.network.carry(|| self.server.load_latch(request)).await?;
            let ((state, _), commit) = ask_latch(window, request);
            let Some(commit) = commit else { return self.network.deliver(state) };
            if self.commit(|| self.server.commit_latch(name, commit)).await? == Committed::Written {
                return self.network.deliver(state);
            }
        }
    }

    async fn commit(&self, message: impl FnOnce() -> Committed + Send) -> Result<Committed, BackendError> {
        let conflicts = fastrand::u32(..CONFLICTS) == 0;
        self.network.carry(|| if conflicts { Committed::Conflict } else { message() }).await
    }
}
