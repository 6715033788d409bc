//! Requests that are no part of a client of locks: each has a connection of its own.

use std::time::Duration;

use futures_util::future::BoxFuture;
use lock_core::{BackendError, Operation};
use lock_host::Bridge;
use tokio::time::timeout;
use tonic::{Code, Status};

use crate::EtcdConfig;
use crate::client::Client;
use crate::cluster::Cluster;
use crate::error;

/// How long all of it may take.
const WITHIN: Duration = Duration::from_secs(5);

/// Asks each server until one answers.
pub(crate) async fn ask<T>(
    config: &EtcdConfig,
    bridge: Bridge,
    run: impl Fn(&Cluster) -> BoxFuture<'_, Result<T, Status>> + Send + Sync,
) -> Result<T, BackendError> {
    let (client, servers) = (Client::new(config, bridge), config.servers().collect::<Vec<_>>());
    let asked = async {
        for _ in 1..servers.len() {
            match run(&client.cluster).await {
                Err(status) if status.code() == Code::Unavailable => {}
                told => return told,
            }
        }
        run(&client.cluster).await
    };
    match timeout(WITHIN, asked).await {
        Ok(told) => told.map_err(|status| error::of_opening(&servers.join(", "), status)),
        Err(_) => Err(error::timeout(Operation::Connect, WITHIN)),
    }
}
