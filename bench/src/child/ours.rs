//! This library.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bench_measure::{Client, Lock, Plan};
use leasehold::{FromRedis, Guard, Mutex};
use lock_redis::RedisConfig;
use lock_redis::nonblocking::Redis;

/// The URL of one server, or of the quorum of several.
pub(crate) fn url(servers: &[String]) -> String {
    match servers {
        [server] => server.clone(),
        nodes => format!("redlock://?node={}", nodes.join("&node=")),
    }
}

/// A client.
pub(super) struct Ours {
    client: leasehold::Client,
    ttl: Duration,
}

/// A lock of it.
pub(super) struct OurLock(Mutex);

impl Ours {
    /// Connects, with another length of the local chain than the usual where one is given.
    pub(super) async fn connect(plan: &Plan, chain: Option<u32>) -> Result<Self> {
        let client = match chain {
            None => leasehold::connect(&url(&plan.servers)).await?,
            Some(chain) => {
                let backend = Redis::connect(&RedisConfig::from_url(plan.server()?)?).await?;
                leasehold::Client::builder(Arc::new(backend)).chain(chain).build()?
            }
        };
        Ok(Self { client, ttl: plan.ttl })
    }

    /// Connects over a pool as a service would have it.
    pub(super) async fn pooled(plan: &Plan) -> Result<Self> {
        let url = plan.server()?;
        let pool = deadpool_redis::Config::from_url(url).create_pool(Some(deadpool_redis::Runtime::Tokio1))?;
        let client = leasehold::Client::from_pool(pool).push(url).connect().await?;
        Ok(Self { client, ttl: plan.ttl })
    }
}

impl Client for Ours {
    type Lock = OurLock;

    fn lock(&self, name: &str) -> Result<OurLock> {
        Ok(OurLock(self.client.mutex(name).ttl(self.ttl)))
    }
}

impl Lock for OurLock {
    type Held = Guard;
    const RENEWS_BY_ITSELF: bool = true;

    async fn acquire(&self) -> Result<Guard> {
        Ok(self.0.acquire().await?)
    }

    async fn try_acquire(&self) -> Result<Option<Guard>> {
        Ok(self.0.try_acquire().await?)
    }

    async fn release(&self, guard: Guard) -> Result<()> {
        guard.release().await?;
        Ok(())
    }

    async fn let_go(&self, guard: Guard) -> Result<()> {
        drop(guard);
        Ok(())
    }

    fn is_held(&self, guard: &Guard) -> bool {
        guard.check().is_ok()
    }
}
