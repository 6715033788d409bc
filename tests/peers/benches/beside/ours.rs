//! Our lock, in the form in which the bench measures all of them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bench_measure::{Client, Lock, Plan, Subject};
use leasehold::{BackendConfig, Guard};
use lock_etcd::EtcdConfig;

/// A client of leasehold.
pub(crate) struct Ours {
    client: leasehold::Client,
    ttl: Duration,
}

impl Ours {
    /// Connects. Without local hand-over, every one of them goes through the server, as with the other library.
    pub(crate) async fn connect(plan: &Plan) -> Result<Self> {
        let builder = match EtcdConfig::from_url(plan.server()?) {
            // leasehold does not open it yet.
            Ok(config) => lock_async::Client::builder(Arc::new(lock_etcd::nonblocking::connect(&config).await?)),
            Err(_) => leasehold::builder(&BackendConfig::from_url(plan.server()?)?).await?,
        };
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
