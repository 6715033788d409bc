//! The least that a lock in ZooKeeper needs: a node of one's own, the list of all nodes, and a watch of the one before. Creation and list are
//! sent together.

use std::sync::Arc;

use anyhow::{Context, Result};
use bench_measure::{Client, Lock, Plan};
use zookeeper_client::{Acls, CreateMode};

/// Whether the plan is about ZooKeeper.
pub(super) fn is_wanted_by(plan: &Plan) -> bool {
    address(plan).is_some()
}

fn address(plan: &Plan) -> Option<&str> {
    let url = plan.server().ok()?.strip_prefix("zookeeper://")?;
    Some(url.split_once('?').map_or(url, |(address, _)| address))
}

/// A session.
pub(super) struct Bare(Arc<zookeeper_client::Client>);

/// One lock in it.
pub(super) struct BareLock {
    client: Arc<zookeeper_client::Client>,
    directory: String,
}

impl Bare {
    pub(super) async fn connect(plan: &Plan) -> Result<Self> {
        let address = address(plan).context("no address")?;
        let connector = zookeeper_client::Client::connector().with_session_timeout(plan.ttl);
        Ok(Self(Arc::new(connector.connect(address).await?)))
    }
}

impl Client for Bare {
    type Lock = BareLock;

    fn lock(&self, name: &str) -> Result<BareLock> {
        Ok(BareLock { client: Arc::clone(&self.0), directory: format!("/bare-{name}") })
    }
}

impl BareLock {
    /// Waits until the node before this one has gone. Returns at once if this is the first.
    async fn wait_behind(&self, mut children: Vec<String>, own: &str) -> Result<()> {
        loop {
            children.sort_unstable();
            let place = children.iter().position(|child| child == own).context("the node is gone")?;
            let Some(before) = place.checked_sub(1) else { return Ok(()) };
            let path = format!("{}/{}", self.directory, children[before]);
            if let (Some(_), ended) = self.client.check_and_watch_stat(&path).await? {
                ended.changed().await;
            }
            children = self.client.list_children(&self.directory).await?;
        }
    }
}

impl Lock for BareLock {
    type Held = String;
    const RENEWS_BY_ITSELF: bool = true;

    async fn acquire(&self) -> Result<String> {
        let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let prefix = format!("{}/lock-", self.directory);
        let (created, listed) =
            tokio::join!(self.client.create(&prefix, b"", &options), self.client.list_children(&self.directory),);
        let (created, children) = match created {
            Ok((_, sequence)) => (sequence, listed?),
            Err(zookeeper_client::Error::NoNode) => {
                let container = CreateMode::Container.with_acls(Acls::anyone_all());
                self.client.mkdir(&self.directory, &container).await?;
                let (_, sequence) = self.client.create(&prefix, b"", &options).await?;
                (sequence, self.client.list_children(&self.directory).await?)
            }
            Err(failure) => return Err(failure.into()),
        };
        let own = format!("lock-{created}");
        self.wait_behind(children, &own).await?;
        Ok(own)
    }

    async fn release(&self, own: String) -> Result<()> {
        Ok(self.client.delete(&format!("{}/{own}", self.directory), None).await?)
    }
}
