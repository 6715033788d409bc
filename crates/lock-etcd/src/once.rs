//! Requests that are no part of a client of locks: each has a connection of its own. And the first request of such a client.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use lock_core::BackendError;
use lock_host::Bridge;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tonic::Status;

use crate::EtcdConfig;
use crate::cluster::Cluster;
use crate::error;
use crate::servers::{Servers, is_of_server};

/// How long all of it may take.
const WITHIN: Duration = Duration::from_secs(5);

/// The cluster of a configuration.
pub(crate) fn cluster(config: &EtcdConfig, runtime: &Handle) -> Result<Cluster, BackendError> {
    let servers = Servers::new(config, runtime)?;
    Ok(Cluster::new(servers, config.root(), config.prefix().clone(), runtime))
}

/// Asks the servers of a configuration.
pub(crate) async fn ask<T>(
    config: &EtcdConfig,
    bridge: Bridge,
    run: impl Fn(&Cluster) -> BoxFuture<'_, Result<T, Status>> + Send + Sync,
) -> Result<T, BackendError> {
    let cluster = cluster(config, bridge.handle())?;
    match timeout(WITHIN, first_answer(&cluster, run)).await {
        Ok(told) => told.map_err(|status| error::of_opening(config, status)),
        Err(_) => Err(error::silence(config, WITHIN)),
    }
}

/// Asks each server until one answers. One that is silent goes on to be asked beside the next ones.
pub(crate) async fn first_answer<'a, T>(
    cluster: &'a Cluster,
    run: impl Fn(&'a Cluster) -> BoxFuture<'a, Result<T, Status>>,
) -> Result<T, Status> {
    let (mut asked, mut failed) = (FuturesUnordered::new(), 0);
    asked.push(run(cluster));
    loop {
        let current = cluster.servers.current();
        tokio::select! {
            Some(told) = asked.next() => match told {
                Err(status) if is_of_server(&status) => {
                    failed += 1;
                    if failed < cluster.servers.count() {
                        asked.push(run(cluster));
                    } else if asked.is_empty() {
                        return Err(status);
                    }
                }
                told => return told,
            },
            () = cluster.servers.left(current) => asked.push(run(cluster)),
        }
    }
}
