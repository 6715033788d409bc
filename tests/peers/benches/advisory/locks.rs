//! The two locks, in the form in which the bench measures all of them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use bench_measure::{Client, Lock, Plan, Subject};
use leasehold::{BackendConfig, Guard};
use sqlx::Connection;
use sqlx::postgres::{PgAdvisoryLock, PgAdvisoryLockGuard, PgConnection};

/// What the bench calls a lock without a token, a queue of its own, and renewals.
pub(crate) const THEIRS: Subject = Subject::Bare;

/// A client of leasehold.
pub(crate) struct Ours {
    client: leasehold::Client,
    ttl: Duration,
}

impl Ours {
    /// Connects. Without local hand-over, every one of them goes through the server, as with an advisory lock.
    pub(crate) async fn connect(plan: &Plan) -> Result<Self> {
        let builder = leasehold::builder(&BackendConfig::from_url(plan.server()?)?).await?;
        let builder = if plan.subject == Subject::Chain0 { builder.chain(0) } else { builder };
        Ok(Self { client: builder.build()?, ttl: plan.ttl })
    }
}

impl Client for Ours {
    type Lock = OurLock;

    fn lock(&self, name: &str) -> Result<OurLock> {
        Ok(OurLock(self.client.mutex(name).ttl(self.ttl)))
    }
}

/// A lock of it.
pub(crate) struct OurLock(leasehold::Mutex);

impl Lock for OurLock {
    type Held = Guard;
    const RENEWS_BY_ITSELF: bool = true;

    async fn acquire(&self) -> Result<Guard> {
        Ok(self.0.acquire().await?)
    }

    async fn release(&self, guard: Guard) -> Result<()> {
        Ok(guard.release().await?)
    }
}

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
