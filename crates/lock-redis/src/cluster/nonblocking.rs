//! A cluster for tokio.

mod verbs;

use std::fmt;
use std::sync::Arc;

use lock_core::{BackendError, LockName, Operation};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout_at;

use super::client::{Client, Inbox, Shard};
use super::redirect::Address;
use super::routing::{Asked, Form, Step};
use super::topology::Topology;
use crate::RedisConfig;
use crate::channel::Channel;
use crate::failure::Failure;
use crate::nonblocking::Redis;
use crate::span::Span;
use crate::target::Target;
use crate::wire::Question;

/// A Redis Cluster, used from tokio over one connection to each primary, and another one for renewals.
///
/// Requests for locks in different hash slots may take effect in any order.
pub struct Cluster {
    client: Client<Redis>,
    /// One task asks for the map at a time.
    refreshing: Mutex<()>,
    warnings: Vec<String>,
}

impl Cluster {
    /// Connects to the cluster of `config`: its servers are asked who serves what, and one of its primaries is greeted. Others are
    /// connected when they are first needed.
    ///
    /// # Errors
    /// If no server of the cluster can be reached, they refuse the client, or they are no cluster. Nothing was changed.
    ///
    /// # Cancel safety
    /// Can be dropped at any point.
    pub async fn connect(config: &RedisConfig) -> Result<Self, BackendError> {
        Self::try_connect(config).await.map_err(|failure| failure.into_error(Operation::Connect))
    }

    async fn try_connect(config: &RedisConfig) -> Result<Self, Failure> {
        let client = Client::<Redis>::new(config)?;
        in_background(&client.topology, |topology| topology.refresh_first()).await?;
        let mut last = None;
        for address in client.topology.primaries() {
            let node = client.node(&address)?;
            match node.greet(config).await {
                // If the servers cannot push messages, waiters are not notified.
                Ok(warnings) if node.hears() => return Ok(Self::of(client, warnings)),
                Ok(warnings) => return Ok(Self::of(client.with_inbox(Inbox::None), warnings)),
                Err(failure) if failure.may_pass() => last = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        Err(last.unwrap_or_else(Failure::strange_answer))
    }

    fn of(client: Client<Redis>, warnings: Vec<String>) -> Self {
        Self { client, refreshing: Mutex::default(), warnings }
    }

    /// The same cluster over connections of its own, on which nobody waits.
    fn another(&self) -> Self {
        Self::of(self.client.with_inbox(Inbox::None), Vec::new())
    }

    fn node(&self, address: &Arc<Address>) -> Result<Arc<Redis>, Failure> {
        self.client.node(address)
    }

    /// Asks the server that has a lock.
    async fn answer<Q: Question + Sync>(
        &self,
        name: &LockName,
        question: &Q,
        span: Span,
    ) -> Result<Q::Answer, Failure> {
        let mut routing = self.client.routing(name, span);
        loop {
            let (address, form) = match routing.step() {
                Step::Send(address, form) => (address, form),
                Step::Refresh => {
                    Box::pin(self.refresh(span)).await;
                    continue;
                }
                Step::Fail(failure) => return Err(failure),
            };
            let node = self.node(&address)?;
            let answer = match form {
                Form::Plain => node.answer(question, span).await,
                // Boxed: most requests do not need this space.
                Form::Asking => Box::pin(node.answer(&Asked(question), span)).await,
            };
            match answer {
                Ok(answer) => return Ok(answer),
                Err(failure) => routing.failed(address, failure),
            }
        }
    }

    /// Asks for the map, or waits for the task that does. Whether that helped shows in the map.
    async fn refresh(&self, span: Span) {
        let refresh = async {
            let _one_at_a_time = self.refreshing.lock().await;
            in_background(&self.client.topology, move |topology| topology.refresh(span)).await
        };
        _ = timeout_at(span.until.into(), refresh).await;
    }
}

/// The servers are asked in blocking code, for both facades.
async fn in_background(
    topology: &Arc<Topology>,
    ask: impl FnOnce(&Topology) -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    let topology = Arc::clone(topology);
    spawn_blocking(move || ask(&topology)).await.unwrap_or_else(|_| Err(Failure::runtime_gone()))
}

impl Shard for Redis {
    fn shard(target: Target, config: &RedisConfig, channel: Option<Arc<Channel>>) -> Self {
        Self::shard(target, config, channel)
    }

    fn forget_verified(&self) {
        self.forget_verified();
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}
