//! One run of one subject with a database: a SQLite file, or a server of PostgreSQL, MariaDB, ZooKeeper or etcd.

use std::any::Any;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use bench_measure::{Ending, Names, Plan, Runtime, Subject, Work};
use test_support::{EtcdServer, EtcdVersion, MysqlServer, PostgresServer, ZookeeperServer};

use crate::figures::{Figure, Figures};
use crate::kind::Database;
use crate::runs::{Ground, TTL};
use crate::scale::Scale;

/// The lock that one process holds and another waits for: the first that a holder holds.
const LOCK: &str = "bench:0";

impl Ground<'_> {
    /// Tasks or threads of one process; if there are many, also what they reach compared with one of them.
    pub(crate) fn database_pairs(
        &mut self,
        database: Database,
        subject: Subject,
        tasks: u32,
        runtime: Runtime,
    ) -> Result<Figures> {
        let figures = self.pairs_in(database, subject, tasks, runtime)?;
        if tasks == 1 || subject != Subject::Leasehold {
            return Ok(figures);
        }
        let one = self.pairs_in(database, subject, 1, runtime)?;
        let rates = figures.get(Figure::Rate).zip(one.get(Figure::Rate));
        Ok(rates.map_or(figures.clone(), |(many, one)| figures.with(Figure::ToOne, many / one)))
    }

    /// The processor time of a waiter, without what it takes to begin.
    pub(crate) fn database_wait(&mut self, database: Database, subject: Subject) -> Result<Figures> {
        let place = self.new_place(database)?;
        let plan = |work| at(&place.url, subject, Runtime::CurrentThread, work);
        let _holder = self.holder(&plan(Work::Hold { locks: 1, span: Duration::MAX }))?;
        let mut waiter = self.start(&plan(Work::Wait { waiters: 1, names: Names::One(LOCK.to_owned()) }))?;
        waiter.go_on()?;
        waiter.halted()?;
        let before = waiter.processor()?;
        thread::sleep(self.scale.watched_for);
        let spent = waiter.processor()?.saturating_sub(before);
        let share = 100.0 * spent.as_secs_f64() / self.scale.watched_for.as_secs_f64();
        Ok(Figures::default().with(Figure::WaiterShare, share))
    }

    /// Waiters of two processes for one lock.
    pub(crate) fn database_contend(&mut self, database: Database, subject: Subject, waiters: u32) -> Result<Figures> {
        let place = self.new_place(database)?;
        self.contend_at(vec![place.url.clone()], subject, waiters, 2, Runtime::CurrentThread)
    }

    fn pairs_in(&self, database: Database, subject: Subject, tasks: u32, runtime: Runtime) -> Result<Figures> {
        let Scale { warm_up, span, .. } = self.scale;
        let work = Work::Pairs { tasks, ending: Ending::Awaited, warm_up, span };
        let place = self.new_place(database)?;
        self.pairs_alone(&at(&place.url, subject, runtime, work))
    }

    fn new_place(&self, database: Database) -> Result<Place> {
        Ok(match database {
            Database::Sqlite => {
                let folder = tempfile::tempdir_in(self.folder.path())?.keep();
                Place { url: format!("sqlite:{}", folder.join("locks.db").display()), _server: Box::new(()) }
            }
            Database::Postgres => {
                let server = PostgresServer::start();
                Place { url: server.url(), _server: Box::new(server) }
            }
            Database::Mysql => {
                let server = MysqlServer::start();
                Place { url: server.url(), _server: Box::new(server) }
            }
            Database::Etcd => {
                let server = EtcdServer::start_version(EtcdVersion::V3_4);
                Place { url: server.url(), _server: Box::new(server) }
            }
            Database::Zookeeper => {
                let server = ZookeeperServer::start();
                Place { url: format!("zookeeper://{}?tick=500ms", server.address()), _server: Box::new(server) }
            }
        })
    }
}

/// A database in which nothing was locked yet.
struct Place {
    url: String,
    /// The server, if it has one, until this is dropped.
    _server: Box<dyn Any>,
}

fn at(url: &str, subject: Subject, runtime: Runtime, work: Work) -> Plan {
    Plan { subject, servers: vec![url.to_owned()], ttl: TTL, runtime, work }
}
