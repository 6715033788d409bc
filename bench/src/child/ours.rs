//! This library.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bench_measure::{Client, Lock, Plan};
use leasehold::guard::Exclusive;
use leasehold::{FromRedis, Guard, Mutex, NamedLock, ReadLock, Semaphore};
use lock_redis::RedisConfig;
use lock_redis::nonblocking::Redis;

/// The URL of one server, or of the quorum of several.
pub(crate) fn url(servers: &[String]) -> String {
    match servers {
        [server] => server.clone(),
        nodes => format!("redlock://?node={}", nodes.join("&node=")),
    }
}

/// Makes a lock of one kind by its name.
type Make<M> = fn(&leasehold::Client, &str) -> NamedLock<M>;

/// A lock of one holder.
pub(super) fn mutex(client: &leasehold::Client, name: &str) -> Mutex {
    client.mutex(name)
}

/// The side of the readers.
pub(super) fn read(client: &leasehold::Client, name: &str) -> ReadLock {
    client.rw_lock(name).read()
}

/// A semaphore with one permit, so that it is handed over as often as a lock.
pub(super) fn permit(client: &leasehold::Client, name: &str) -> Semaphore {
    client.semaphore(name, 1)
}

/// A client, and which locks of it are used.
pub(super) struct Ours<M> {
    client: leasehold::Client,
    make: Make<M>,
    ttl: Duration,
}

/// A lock of it.
pub(super) struct OurLock<M>(NamedLock<M>);

impl<M> Ours<M> {
    /// Connects, with another length of the local chain than the usual where one is given.
    pub(super) async fn connect(plan: &Plan, make: Make<M>, chain: Option<u32>) -> Result<Self> {
        let client = match chain {
            None => leasehold::connect(&url(&plan.servers)).await?,
            Some(chain) => {
                let backend = Redis::connect(&RedisConfig::from_url(plan.server()?)?).await?;
                leasehold::Client::builder(Arc::new(backend)).chain(chain).build()?
            }
        };
        Ok(Self { client, make, ttl: plan.ttl })
    }
}

impl Ours<Exclusive> {
    /// Connects over a pool as a service would have it.
    pub(super) async fn pooled(plan: &Plan) -> Result<Self> {
        let url = plan.server()?;
        let pool = deadpool_redis::Config::from_url(url).create_pool(Some(deadpool_redis::Runtime::Tokio1))?;
        let client = leasehold::Client::from_pool(pool).push(url).connect().await?;
        Ok(Self { client, make: mutex, ttl: plan.ttl })
    }
}

impl<M: Send + Sync + 'static> Client for Ours<M> {
    type Lock = OurLock<M>;

    fn lock(&self, name: &str) -> Result<OurLock<M>> {
        Ok(OurLock((self.make)(&self.client, name).ttl(self.ttl)))
    }
}

impl<M: Send + Sync + 'static> Lock for OurLock<M> {
    type Held = Guard<M>;
    const RENEWS_BY_ITSELF: bool = true;

    async fn acquire(&self) -> Result<Guard<M>> {
        Ok(self.0.acquire().await?)
    }

    async fn try_acquire(&self) -> Result<Option<Guard<M>>> {
        Ok(self.0.try_acquire().await?)
    }

    async fn release(&self, guard: Guard<M>) -> Result<()> {
        guard.release().await?;
        Ok(())
    }

    async fn let_go(&self, guard: Guard<M>) -> Result<()> {
        drop(guard);
        Ok(())
    }

    fn is_held(&self, guard: &Guard<M>) -> bool {
        guard.check().is_ok()
    }
}
