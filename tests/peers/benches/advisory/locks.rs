//! The advisory lock, in the form in which the bench measures all locks.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use bench_measure::{Client, Lock, Plan};
use sqlx::Connection;
use sqlx::postgres::{PgAdvisoryLock, PgAdvisoryLockGuard, PgConnection};

/// Where advisory locks are taken.
pub(crate) struct Theirs(Arc<str>);

impl Theirs {
    /// Connects to nothing yet: each lock has its own connection.
    pub(crate) async fn connect(plan: &Plan) -> Result<Self> {
        Ok(Self(plan.server()?.into()))
    }
}

impl Client for Theirs {
    type Lock = TheirLock;

    fn lock(&self, name: &str) -> Result<TheirLock> {
        Ok(TheirLock { url: Arc::clone(&self.0), lock: PgAdvisoryLock::new(name), idle: Mutex::default() })
    }
}

/// An advisory lock, and the connection that it is taken on, except while it is held.
pub(crate) struct TheirLock {
    url: Arc<str>,
    lock: PgAdvisoryLock,
    idle: Mutex<Option<PgConnection>>,
}

impl TheirLock {
    fn take_idle(&self) -> Option<PgConnection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Lock for TheirLock {
    type Held = PgAdvisoryLockGuard<PgConnection>;
    const RENEWS_BY_ITSELF: bool = false;

    async fn acquire(&self) -> Result<Self::Held> {
        let connection = match self.take_idle() {
            Some(connection) => connection,
            None => PgConnection::connect(&self.url).await?,
        };
        Ok(self.lock.acquire(connection).await?)
    }

    async fn release(&self, held: Self::Held) -> Result<()> {
        let connection = held.release_now().await?;
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
        Ok(())
    }
}
