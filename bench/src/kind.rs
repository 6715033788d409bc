//! The kinds of scenarios.

use bench_measure::{Ending, Runtime};

/// How a scenario is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Tasks that acquire and release, each its own lock, through one client.
    Pairs { tasks: u32, runtime: Runtime, ending: Ending },
    /// One task that acquires and releases: alone, and together with other readers.
    Read,
    /// The same: alone, and with a permit.
    Permit,
    /// Tasks as those of pairs, by tries, with and without locks that another process holds.
    Held { tasks: u32, runtime: Runtime },
    /// Waiters for one lock, shared out over processes.
    Contend { waiters: u32, processes: u32 },
    /// The same for the one permit of a semaphore.
    Permits { waiters: u32, processes: u32 },
    /// Two waiters for one lock, each in a process of its own, over pools.
    Pool(Runtime),
    /// Many leases held for long.
    Hold,
    /// What waiters take of memory.
    Memory,
    /// A holder is killed while others wait.
    Crash,
    /// Steps at queues of different lengths.
    Queue,
    /// Steps of readers beside others.
    Readers,
    /// Tasks that acquire and release, each its own lock, at the nodes of a quorum.
    Quorum { tasks: u32 },
    /// The same with one task, beside another process with one.
    Beside,
    /// The same with one task; one of the nodes breaks after a while.
    Broken(Fault),
    /// Tasks or threads that acquire and release, each its own lock in one database.
    DatabasePairs { database: Database, tasks: u32, runtime: Runtime },
    /// Waiters for one lock in a database, shared out over two processes.
    DatabaseContend { database: Database, waiters: u32 },
    /// A waiter for a lock in a database that another process holds.
    DatabaseWait { database: Database },
    /// A reader that comes and goes while another one of the process reads.
    Reads,
    /// Tasks that acquire and release, each its own lock, at a server with two replicas.
    Replicated { tasks: u32 },
    /// Clients of a server that sentinels replace when it is killed.
    FailOver,
}

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Database {
    /// A file of SQLite.
    Sqlite,
    /// A server of PostgreSQL.
    Postgres,
    /// A server of MariaDB.
    Mysql,
    /// A server of ZooKeeper.
    Zookeeper,
    /// A server of etcd.
    Etcd,
}

/// How a node breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Its process is killed: connections break, and cannot be made again.
    Killed,
    /// Its process is stopped: connections stay, and nothing is answered.
    Hung,
}
