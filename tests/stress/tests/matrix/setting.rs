//! The settings: a store, how it is run, and which faults can hit it.

use test_support::{MysqlServer, PostgresServer};

use crate::deployments::etcd::Etcd;
use crate::deployments::file::SqliteFile;
use crate::deployments::redis::Redis;
use crate::deployments::redis::alone::Alone;
use crate::deployments::redis::cluster::Clustered;
use crate::deployments::redis::quorum::Quorum;
use crate::deployments::redis::sentinels::Sentinels;
use crate::deployments::sql::Sql;
use crate::deployments::zookeeper::Zookeeper;
use crate::deployments::{Deployment, boxed};
use crate::fault::Fault;

/// A way to run a store.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) start: fn() -> Box<dyn Deployment>,
    faults: &'static [&'static [Fault]],
}

impl Setting {
    /// Whether the matrix has this setting under this fault.
    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.faults.concat().contains(&fault)
    }
}

const CLIENTS: &[Fault] = &[Fault::KillClient, Fault::StopClient, Fault::StepClient];
const SERVERS: &[Fault] = &[Fault::KillServer, Fault::StopServer, Fault::Cut, Fault::Delay, Fault::HalfOpen];
const MEMORY: &[Fault] = &[Fault::FullMemory, Fault::Eviction];
const DISK: &[Fault] = &[Fault::FullDisk];
/// A library is preloaded to step clocks, which a server in Go ignores.
const CLOCK: &[Fault] = &[Fault::StepServer];
const LEADER: &[Fault] = &[Fault::FailOver];

pub(crate) const SETTINGS: [Setting; 9] = [
    Setting { name: "sqlite", start: boxed::<SqliteFile>, faults: &[CLIENTS, DISK] },
    Setting { name: "redis", start: boxed::<Redis<Alone>>, faults: &[CLIENTS, SERVERS, MEMORY, DISK, CLOCK] },
    Setting {
        name: "sentinels",
        start: boxed::<Redis<Sentinels>>,
        faults: &[CLIENTS, SERVERS, MEMORY, DISK, CLOCK, LEADER],
    },
    Setting {
        name: "cluster",
        start: boxed::<Redis<Clustered>>,
        faults: &[CLIENTS, SERVERS, MEMORY, DISK, CLOCK, LEADER],
    },
    Setting { name: "quorum", start: boxed::<Redis<Quorum>>, faults: &[CLIENTS, SERVERS, MEMORY, DISK, CLOCK] },
    Setting { name: "postgres", start: boxed::<Sql<PostgresServer>>, faults: &[CLIENTS, SERVERS, DISK, CLOCK] },
    Setting { name: "mariadb", start: boxed::<Sql<MysqlServer>>, faults: &[CLIENTS, SERVERS, DISK, CLOCK] },
    Setting { name: "etcd", start: boxed::<Etcd>, faults: &[CLIENTS, SERVERS, DISK, LEADER] },
    Setting { name: "zookeeper", start: boxed::<Zookeeper>, faults: &[CLIENTS, SERVERS, DISK, CLOCK, LEADER] },
];
