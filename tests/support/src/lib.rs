//! Real servers, a faulty proxy and processes for tests.
//!
//! Everything here panics instead of returning errors: a server that is missing or does not start fails the test, and never
//! skips it. Nothing here uses tokio, so async and blocking tests can both use it.

#![allow(clippy::panic, reason = "a part of a test that cannot be set up fails the test")]

mod account;
pub mod bounds;
mod bus;
mod certificates;
mod cluster;
mod cluster_node;
mod detour;
mod etcd_cluster;
mod etcd_member;
mod etcd_server;
mod go_peer;
mod links;
mod machine;
mod migration;
mod mysql_server;
pub mod pages;
mod permit;
mod pooler;
mod postgres_server;
mod process;
mod proxy;
mod redis_answers;
mod redis_server;
pub mod sentinels;
mod shared;
pub mod signals;
#[cfg(feature = "suite")]
pub mod suite;
mod temp;
mod template;
mod turn;
mod zookeeper_server;

pub use bounds::Finish;
pub use bus::Bus;
pub use certificates::Certificates;
pub use cluster::Cluster;
pub use detour::Detour;
pub use etcd_cluster::EtcdCluster;
pub use etcd_member::EtcdVersion;
pub use etcd_server::EtcdServer;
pub use etcd_server::secured::{EtcdOptions, SecuredEtcd};
pub use go_peer::{GoLock, GoPeer};
pub use machine::Machine;
pub use migration::Migration;
pub use mysql_server::{MysqlOptions, MysqlServer, Product};
pub use pooler::Pooler;
pub use postgres_server::{PostgresOptions, PostgresServer};
pub use proxy::{AfterDrop, Fault, Proxy};
pub use redis_server::{DataCopy, RedisOptions, RedisServer, RedisVersion};
pub use sentinels::{Sentinel, Trio};
pub use shared::Shared;
pub use temp::temp_dir;
pub use turn::PeerTurn;
pub use zookeeper_server::ZookeeperServer;
pub use zookeeper_server::answers::{CuratorAnswer, CuratorClaim, CuratorLock, CuratorState};
pub use zookeeper_server::curator::CuratorPeer;
pub use zookeeper_server::ensemble::ZookeeperEnsemble;
pub use zookeeper_server::options::ZookeeperOptions;
pub use zookeeper_server::programs::four_letter;

/// Runs something that must succeed for the test to be meaningful.
#[track_caller]
fn must<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error}"),
    }
}
