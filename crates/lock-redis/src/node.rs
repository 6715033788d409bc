//! A Redis as one node of a quorum: what it keeps is described in `docs/wire.md`, under "A node of a quorum".
//!
//! The contract is that of [`lock_core::node`]. Each request names the run of the server for which it is meant: the run
//! that the connection found. The server compares that, and the history of its data. So a server that was restarted,
//! promoted, or demoted and promoted again is never mistaken for the earlier one.
//!
//! **Not guaranteed:** a server that becomes a replica, loads somebody else's data, and becomes a primary again, all in
//! one run, may have lost grants. It still votes if no client marks it before its replication backlog expires
//! (`repl-backlog-ttl`, an hour by default). A node should have no replicas.
//!
//! A replica, and a server of a cluster, are refused with an error of kind `Config`. Errors name the node's address. A
//! node has its own connections, which are opened at the first request and replaced when they break.

mod ask;
pub mod blocking;
mod inspection;
#[cfg(feature = "async")]
pub mod nonblocking;
mod told;

use lock_core::{BackendError, Effect, ErrorKind, Operation};

use crate::RedisConfig;
use crate::channel::Channel;
use crate::failure::Failure;
use crate::servers::{Own, Server};
use crate::target::Target;

/// Where a node is. Nothing is connected yet.
fn open<O: Own>(config: &RedisConfig, address: &str) -> Result<Server<O>, BackendError> {
    let refused = |failure: Failure| failure.of_node(address).into_error(Operation::Connect);
    if let Some(copies) = config.copies() {
        let (message, remedy) = if copies.replicas() > 0 {
            (
                "its URL has the option replicas, which is for a server that has replicas",
                "remove it: the nodes of a quorum stand in for each other, and have no replicas",
            )
        } else {
            (
                "its URL has the option fsync, which is for a server on its own",
                "remove it: a node that was restarted does not vote until leases that it may have forgotten have ended",
            )
        };
        return Err(refused(Failure::new(ErrorKind::Config, Effect::None, message).remedy(remedy)));
    }
    let target = Target::of(config).map_err(refused)?.in_quorum();
    Ok(Server::new(target, Channel::new(), &config.prefix, None))
}
