//! A Redis as one node of a quorum: what it keeps is described in `docs/wire.md`, under "A node of a quorum".
//!
//! The contract is that of [`lock_core::node`]. Each request says for which run of the server it is meant: that of the very
//! connection that carries it. The server compares that, and the history of its data. So one that was restarted, promoted, or
//! demoted and promoted again never passes for the one before it.
//!
//! **Not guaranteed:** a server that becomes a replica, loads somebody else's data, and becomes a primary again, all in one
//! run, may have lost grants. It votes all the same if no client marks it until its replication backlog has expired
//! (`repl-backlog-ttl`, an hour unless set). A node should have no replicas.
//!
//! A replica, and a server of a cluster, are refused with an error of kind `Config`. Errors name the node's address. A
//! node is asked over connections of its own, which are made with the first request and again when they broke.

mod ask;
pub mod blocking;
#[cfg(feature = "async")]
pub mod nonblocking;
mod told;

use lock_core::{BackendError, Operation};
use redis::Client;

use crate::RedisConfig;
use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, connecting};

/// The client of a node. Nothing is connected yet.
fn open(config: &RedisConfig, address: &str) -> Result<Client, BackendError> {
    Client::open(config.server().clone()).map_err(|error| {
        let failure = classify(connecting(config.shown_url(), CONNECT_WITHIN), &error);
        failure.of_node(address).into_error(Operation::Connect)
    })
}
