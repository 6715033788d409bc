//! What is measured: the scenarios, by name.

use bench_measure::{Ending, Runtime};

use crate::figures::Figure;
use crate::kind::{Database, Fault, Kind};
use crate::scale::Scale;

use Runtime::{Blocking, CurrentThread, TwoThreads};

/// How many nodes a quorum has.
pub(crate) const NODES: usize = 5;

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// What stands above its table.
    pub(crate) title: &'static str,
    pub(crate) kind: Kind,
}

const fn pairs(tasks: u32, runtime: Runtime) -> Kind {
    Kind::Pairs { tasks, runtime, ending: Ending::Awaited }
}

const fn dropped(runtime: Runtime) -> Kind {
    Kind::Pairs { tasks: 1, runtime, ending: Ending::Dropped }
}

const fn held(runtime: Runtime) -> Kind {
    Kind::Held { tasks: 64, runtime }
}

const fn in_sqlite(tasks: u32, runtime: Runtime) -> Kind {
    Kind::DatabasePairs { database: Database::Sqlite, tasks, runtime }
}

const fn in_postgres(tasks: u32, runtime: Runtime) -> Kind {
    Kind::DatabasePairs { database: Database::Postgres, tasks, runtime }
}

const fn wait_in_postgres(waiters: u32) -> Kind {
    Kind::DatabaseContend { database: Database::Postgres, waiters }
}

const fn in_mysql(tasks: u32, runtime: Runtime) -> Kind {
    Kind::DatabasePairs { database: Database::Mysql, tasks, runtime }
}

const fn wait_in_mysql(waiters: u32) -> Kind {
    Kind::DatabaseContend { database: Database::Mysql, waiters }
}

const fn in_zookeeper(tasks: u32) -> Kind {
    Kind::DatabasePairs { database: Database::Zookeeper, tasks, runtime: CurrentThread }
}

const fn wait_in_zookeeper(waiters: u32) -> Kind {
    Kind::DatabaseContend { database: Database::Zookeeper, waiters }
}

const fn in_etcd(tasks: u32) -> Kind {
    Kind::DatabasePairs { database: Database::Etcd, tasks, runtime: CurrentThread }
}

const fn wait_in_etcd(waiters: u32) -> Kind {
    Kind::DatabaseContend { database: Database::Etcd, waiters }
}

const fn scenario(name: &'static str, title: &'static str, kind: Kind) -> Scenario {
    Scenario { name, title, kind }
}

/// All scenarios, in the order of the tables.
pub(crate) const ALL: [Scenario; 58] = [
    scenario("one", "One task, a free lock", pairs(1, CurrentThread)),
    scenario("one-mt", "One task, a free lock, two worker threads", pairs(1, TwoThreads)),
    scenario("dropped", "One task, a free lock, the guard is dropped", dropped(CurrentThread)),
    scenario("dropped-mt", "One task, a free lock, the guard is dropped, two worker threads", dropped(TwoThreads)),
    scenario("tasks-64", "64 tasks, a free lock each, one client", pairs(64, CurrentThread)),
    scenario("tasks-64-mt", "64 tasks, a free lock each, one client, two worker threads", pairs(64, TwoThreads)),
    scenario("tasks-1000", "1000 tasks, a free lock each, one client", pairs(1000, CurrentThread)),
    scenario("tasks-1000-mt", "1000 tasks, a free lock each, one client, two worker threads", pairs(1000, TwoThreads)),
    scenario("read", "One task, a free lock, as a reader", Kind::Read),
    scenario("permit", "One task, a free semaphore", Kind::Permit),
    scenario("held", "64 tasks that try, with one lock in sixteen held", held(CurrentThread)),
    scenario("held-mt", "64 tasks that try, with one lock in sixteen held, two worker threads", held(TwoThreads)),
    scenario("blocking", "One plain thread, a free lock", pairs(1, Blocking)),
    scenario(
        "blocking-64",
        "64 plain threads, a free lock each; each thread of the bare pair has its own connection",
        pairs(64, Blocking),
    ),
    scenario("waiters-8", "8 waiters for one lock, one process", Kind::Contend { waiters: 8, processes: 1 }),
    scenario("waiters-64", "64 waiters for one lock, one process", Kind::Contend { waiters: 64, processes: 1 }),
    scenario("split-2", "2 waiters for one lock, two processes", Kind::Contend { waiters: 2, processes: 2 }),
    scenario("split-8", "8 waiters for one lock, two processes", Kind::Contend { waiters: 8, processes: 2 }),
    scenario("split-64", "64 waiters for one lock, two processes", Kind::Contend { waiters: 64, processes: 2 }),
    scenario(
        "permits-8",
        "8 waiters for the one permit of a semaphore, two processes",
        Kind::Permits { waiters: 8, processes: 2 },
    ),
    scenario("pool", "2 waiters for one lock, two processes, over a deadpool pool", Kind::Pool(CurrentThread)),
    scenario("pool-blocking", "2 threads for one lock, two processes, over an r2d2 pool", Kind::Pool(Blocking)),
    scenario("hold", "Leases that are held and renewed, ttl 10 s", Kind::Hold),
    scenario("memory", "Memory of waiters, each for a lock of its own", Kind::Memory),
    scenario("crash", "A holder with a ttl of 2 s is killed while 8 wait in two processes", Kind::Crash),
    scenario(
        "queue",
        "Steps at a queue of 10,000 that nobody tells, and at most to one of 100 (1,000 or 10,000)",
        Kind::Queue,
    ),
    scenario(
        "readers",
        "Steps of a reader beside 10,000 others, and at most to one beside 10 (1,000 or 10,000)",
        Kind::Readers,
    ),
    scenario("quorum-one", "Five nodes: one task, a free lock", Kind::Quorum { tasks: 1 }),
    scenario("quorum-64", "Five nodes: 64 tasks, a free lock each, one client", Kind::Quorum { tasks: 64 }),
    scenario("quorum-beside", "Five nodes: one task, beside another leasehold process with other locks", Kind::Beside),
    scenario("quorum-killed", "Five nodes, one of them killed: one task, a free lock", Kind::Broken(Fault::Killed)),
    scenario("quorum-hung", "Five nodes, one of them hung: one task, a free lock", Kind::Broken(Fault::Hung)),
    scenario("sqlite-one", "SQLite: one task, a free lock", in_sqlite(1, CurrentThread)),
    scenario("sqlite-thread", "SQLite: one plain thread, a free lock", in_sqlite(1, Blocking)),
    scenario("sqlite-64", "SQLite: 64 tasks, a free lock each, one client", in_sqlite(64, CurrentThread)),
    scenario(
        "sqlite-wait",
        "SQLite: waiting for a lock that another process holds",
        Kind::DatabaseWait { database: Database::Sqlite },
    ),
    scenario("postgres-one", "PostgreSQL: one task, a free lock", in_postgres(1, CurrentThread)),
    scenario("postgres-thread", "PostgreSQL: one plain thread, a free lock", in_postgres(1, Blocking)),
    scenario("postgres-64", "PostgreSQL: 64 tasks, a free lock each, one client", in_postgres(64, CurrentThread)),
    scenario("postgres-waiters-8", "PostgreSQL: 8 waiters for one lock, two processes", wait_in_postgres(8)),
    scenario("postgres-waiters-64", "PostgreSQL: 64 waiters for one lock, two processes", wait_in_postgres(64)),
    scenario("mysql-one", "MariaDB: one task, a free lock", in_mysql(1, CurrentThread)),
    scenario("mysql-thread", "MariaDB: one plain thread, a free lock", in_mysql(1, Blocking)),
    scenario("mysql-64", "MariaDB: 64 tasks, a free lock each, one client", in_mysql(64, CurrentThread)),
    scenario("mysql-waiters-8", "MariaDB: 8 waiters for one lock, two processes", wait_in_mysql(8)),
    scenario("mysql-waiters-64", "MariaDB: 64 waiters for one lock, two processes", wait_in_mysql(64)),
    scenario("zookeeper-one", "ZooKeeper: one task, a free lock", in_zookeeper(1)),
    scenario("zookeeper-64", "ZooKeeper: 64 tasks, a free lock each, one client", in_zookeeper(64)),
    scenario("zookeeper-waiters-8", "ZooKeeper: 8 waiters for one lock, two processes", wait_in_zookeeper(8)),
    scenario("zookeeper-waiters-64", "ZooKeeper: 64 waiters for one lock, two processes", wait_in_zookeeper(64)),
    scenario("etcd-one", "etcd: one task, a free lock", in_etcd(1)),
    scenario("etcd-64", "etcd: 64 tasks, a free lock each, one client", in_etcd(64)),
    scenario("etcd-waiters-8", "etcd: 8 waiters for one lock, two processes", wait_in_etcd(8)),
    scenario("etcd-waiters-64", "etcd: 64 waiters for one lock, two processes", wait_in_etcd(64)),
    scenario(
        "reads",
        "A thousand reads of a lock that the process reads already; the bare pair is tokio's `RwLock`",
        Kind::Reads,
    ),
    scenario("replicas", "Two replicas: one task, a free lock", Kind::Replicated { tasks: 1 }),
    scenario("replicas-64", "Two replicas: 64 tasks, a free lock each, one client", Kind::Replicated { tasks: 64 }),
    scenario(
        "failover",
        "A primary is killed, and replaced by sentinels that miss it for 700 ms; `max_ttl=2s`",
        Kind::FailOver,
    ),
];

impl Scenario {
    /// The columns of its table.
    pub(crate) fn columns(&self) -> &'static [Figure] {
        use Figure::{
            AfterExpiry, AskAgain, AskAgainGrowth, Batch, ClientLease, ClientShare, ClientTime, ClientWaiter, Commands,
            Failed, Fairness, HandOver, HandOverGrowth, Join, JoinGrowth, LeaveAtOnce, LeaveAtOnceGrowth, Longest,
            LongestOutage, Max, OneRound, Outage, Overlaps, P50, P99, Rate, ReadBegins, ReadBeginsGrowth, ReadEnds,
            ReadEndsGrowth, ReadRenewal, ReadRenewalGrowth, Renewals, Script, ScriptTail, ServerLease, ServerShare,
            ServerTime, ServerWaiter, SlowestScript, ToHealthy, ToOne, ToPair, WaiterShare,
        };
        match self.kind {
            Kind::Pairs { .. } | Kind::Replicated { .. } | Kind::Read | Kind::Permit | Kind::Held { .. } => {
                &[ServerTime, ClientTime, P50, P99, Max, Rate, Commands, ScriptTail, Failed]
            }
            Kind::Contend { .. } | Kind::Permits { .. } | Kind::Pool(_) => {
                &[ServerTime, ClientTime, P50, ToPair, P99, Max, Rate, Commands, Fairness, Overlaps, Failed]
            }
            Kind::Hold => &[
                ServerShare,
                ClientShare,
                Renewals,
                Failed,
                Commands,
                Batch,
                Script,
                SlowestScript,
                ClientLease,
                ServerLease,
            ],
            Kind::Memory => &[ClientWaiter, ServerWaiter],
            Kind::Crash => &[AfterExpiry],
            Kind::Queue => {
                &[AskAgain, AskAgainGrowth, Join, JoinGrowth, LeaveAtOnce, LeaveAtOnceGrowth, HandOver, HandOverGrowth]
            }
            Kind::Readers => &[ReadBegins, ReadBeginsGrowth, ReadRenewal, ReadRenewalGrowth, ReadEnds, ReadEndsGrowth],
            Kind::Quorum { .. } | Kind::Beside => {
                &[ServerTime, ClientTime, P50, P99, Max, Rate, Commands, OneRound, Failed]
            }
            Kind::Broken(_) => &[P50, ToHealthy, Longest, Failed],
            Kind::DatabasePairs { .. } => &[ClientTime, P50, P99, Max, Rate, ToOne, Failed],
            Kind::DatabaseContend { .. } => &[ClientTime, P50, P99, Max, Rate, Fairness, Overlaps, Failed],
            Kind::DatabaseWait { .. } => &[WaiterShare],
            Kind::Reads => &[ClientTime, P50, P99, Max, Failed],
            Kind::FailOver => &[Outage, LongestOutage],
        }
    }

    pub(crate) fn rounds(&self, scale: &Scale) -> u32 {
        match self.kind {
            Kind::FailOver => scale.fail_overs,
            Kind::Pairs { .. }
            | Kind::Replicated { .. }
            | Kind::Read
            | Kind::Permit
            | Kind::Held { .. }
            | Kind::Quorum { .. }
            | Kind::Beside
            | Kind::DatabasePairs { .. }
            | Kind::Reads => scale.rounds,
            Kind::Contend { .. } | Kind::Permits { .. } | Kind::Pool(_) | Kind::DatabaseContend { .. } => {
                scale.contended_rounds
            }
            Kind::Hold
            | Kind::Memory
            | Kind::Crash
            | Kind::Queue
            | Kind::Readers
            | Kind::Broken(_)
            | Kind::DatabaseWait { .. } => scale.long_rounds,
        }
    }

    /// Whether a process spins on each core meanwhile. Not where a thread waits for the disk: in some runs, each commit takes 4 ms, a tick
    /// of the kernel, in place of 0.1 ms, and on a quiet machine this was seen only beside such processes.
    pub(crate) fn keeps_cores_awake(&self) -> bool {
        !matches!(self.kind, Kind::DatabasePairs { .. } | Kind::DatabaseContend { .. })
    }

    /// How many servers it is run with.
    pub(crate) fn servers(&self) -> usize {
        match self.kind {
            Kind::DatabasePairs { .. }
            | Kind::DatabaseContend { .. }
            | Kind::DatabaseWait { .. }
            | Kind::Reads
            | Kind::FailOver => 0,
            Kind::Pairs { .. }
            | Kind::Replicated { .. }
            | Kind::Read
            | Kind::Permit
            | Kind::Held { .. }
            | Kind::Contend { .. }
            | Kind::Permits { .. }
            | Kind::Pool(_)
            | Kind::Hold
            | Kind::Memory
            | Kind::Crash
            | Kind::Queue
            | Kind::Readers => 1,
            Kind::Quorum { .. } | Kind::Beside | Kind::Broken(_) => NODES,
        }
    }

    /// How many replicas each of them has.
    pub(crate) fn replicas(&self) -> usize {
        if matches!(self.kind, Kind::Replicated { .. }) { 2 } else { 0 }
    }

    /// Whether it is only run if it is asked for, and has a page of its own.
    pub(crate) fn is_apart(&self) -> bool {
        matches!(self.kind, Kind::Replicated { .. } | Kind::FailOver)
    }

    /// Its place among all.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|scenario| scenario.name == name)
    }
}
