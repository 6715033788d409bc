//! The settings: a store, how it is run, and which faults can hit it.

use test_support::{MysqlServer, PostgresServer};

use crate::deployments::etcd::Etcd;
use crate::deployments::file::SqliteFile;
use crate::deployments::redis::{Alone, RedisCluster, RedisQuorum, Sentinels};
use crate::deployments::sql::Sql;
use crate::deployments::zookeeper::Zookeeper;
use crate::deployments::{Deployment, boxed};
use crate::fault::Fault;

/// A way to run a store.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) start: fn() -> Box<dyn Deployment>,
    pub(crate) faults: &'static [Fault],
}

const OF_CLIENTS: [Fault; 2] = [Fault::KillClient, Fault::StopClient];
const OF_ONE_SERVER: [Fault; 7] = [
    Fault::KillClient,
    Fault::StopClient,
    Fault::KillServer,
    Fault::StopServer,
    Fault::Cut,
    Fault::Delay,
    Fault::HalfOpen,
];
const WITH_MEMORY: [Fault; 8] = [
    Fault::KillClient,
    Fault::StopClient,
    Fault::KillServer,
    Fault::StopServer,
    Fault::Cut,
    Fault::Delay,
    Fault::HalfOpen,
    Fault::Full,
];
const OF_SEVERAL: [Fault; 8] = [
    Fault::KillClient,
    Fault::StopClient,
    Fault::KillServer,
    Fault::StopServer,
    Fault::Cut,
    Fault::Delay,
    Fault::HalfOpen,
    Fault::FailOver,
];
/// Clients ask the sentinels where the primary is, and reach it without a proxy.
const WITHOUT_PROXIES: [Fault; 6] =
    [Fault::KillClient, Fault::StopClient, Fault::KillServer, Fault::StopServer, Fault::Cut, Fault::FailOver];

pub(crate) const SETTINGS: [Setting; 9] = [
    Setting { name: "sqlite", start: boxed::<SqliteFile>, faults: &OF_CLIENTS },
    Setting { name: "redis", start: boxed::<Alone>, faults: &WITH_MEMORY },
    Setting { name: "sentinels", start: boxed::<Sentinels>, faults: &WITHOUT_PROXIES },
    Setting { name: "cluster", start: boxed::<RedisCluster>, faults: &OF_SEVERAL },
    Setting { name: "quorum", start: boxed::<RedisQuorum>, faults: &OF_ONE_SERVER },
    Setting { name: "postgres", start: boxed::<Sql<PostgresServer>>, faults: &OF_ONE_SERVER },
    Setting { name: "mariadb", start: boxed::<Sql<MysqlServer>>, faults: &OF_ONE_SERVER },
    Setting { name: "etcd", start: boxed::<Etcd>, faults: &OF_SEVERAL },
    Setting { name: "zookeeper", start: boxed::<Zookeeper>, faults: &OF_SEVERAL },
];
