//! Servers of SQL databases, and the tests that are the same for all of them: a storm, and whether its checks find a mistake.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use test_support::{Machine, MysqlOptions, MysqlServer, PostgresOptions, PostgresServer, Proxy};

use crate::cast::{Cast, Mistake};
use crate::crew::{Crew, Post};
use crate::nemesis::{Effect, Server, rage};
use crate::part::Facade;
use crate::run::{await_deeds, await_that, await_workers, calm_down, find_an_overlap, ground, judge, machine, storm};

/// How long faults are injected, unless the environment says otherwise.
const STORM: Duration = Duration::from_secs(8);

/// What the processes of the storm use: locks of all kinds, or only those that are held alone. Chosen: twice as many processes on two cores that
/// others use too wait for longer than the checks allow.
const CREW: [Cast; 6] = [Cast::Kinds, Cast::Kinds, Cast::Locks, Cast::Locks, Cast::Kinds, Cast::Kinds];

/// A server of a database with our tables.
pub trait SqlServer: Sized {
    /// What the names of the tables begin with.
    const TABLES: &'static str;
    /// The clock of leases, as an expression.
    const CLOCK: &'static str;

    /// Starts one. If every change waited for the disk, there would be too few turns for all that workers can do, where other
    /// tests write too. A server that is killed keeps its data also like this.
    fn start() -> Self;

    /// The same, on this machine.
    fn start_on(machine: &Machine) -> Self;

    /// Where its data is.
    fn directory(&self) -> &Path;

    /// Where it listens.
    fn port(&self) -> u16;

    /// The URL through this port.
    fn url_at(&self, port: u16) -> String;

    /// Runs SQL, and returns the rows: one a line.
    fn ask(&self, sql: &str) -> String;

    /// Ends the sessions of all clients, and returns how many there were.
    fn end_sessions(&self) -> u64;

    /// Suspends it.
    fn suspend(&self);

    /// Ends that.
    fn resume(&self);

    /// Kills it, and starts it with what it has stored.
    fn restart_with_data(&mut self);
}

impl SqlServer for PostgresServer {
    const TABLES: &'static str = "leasehold.";
    const CLOCK: &'static str = "leasehold.clock()";

    fn start() -> Self {
        Self::start_with(PostgresOptions::default().volatile())
    }

    fn start_on(machine: &Machine) -> Self {
        Self::start_with(PostgresOptions::default().volatile().on(machine))
    }

    fn directory(&self) -> &Path {
        self.directory()
    }

    fn port(&self) -> u16 {
        self.port()
    }

    fn url_at(&self, port: u16) -> String {
        self.url_at(port)
    }

    fn ask(&self, sql: &str) -> String {
        self.psql(sql)
    }

    fn end_sessions(&self) -> u64 {
        let ended = self.psql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        );
        ended.parse().unwrap()
    }

    fn suspend(&self) {
        self.stop();
    }

    fn resume(&self) {
        self.resume();
    }

    fn restart_with_data(&mut self) {
        self.restart_with_data();
    }
}

impl SqlServer for MysqlServer {
    const TABLES: &'static str = "leasehold_";
    const CLOCK: &'static str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
    fn start() -> Self {
        Self::start_with(MysqlOptions::default().volatile())
    }

    fn start_on(machine: &Machine) -> Self {
        Self::start_with(MysqlOptions::default().volatile().on(machine))
    }

    fn directory(&self) -> &Path {
        self.directory()
    }

    fn port(&self) -> u16 {
        self.port()
    }

    fn url_at(&self, port: u16) -> String {
        self.url_at(port)
    }

    fn ask(&self, sql: &str) -> String {
        self.execute(sql)
    }

    fn end_sessions(&self) -> u64 {
        self.end_sessions()
    }

    fn suspend(&self) {
        self.stop();
    }

    fn resume(&self) {
        self.resume();
    }

    fn restart_with_data(&mut self) {
        self.restart_with_data();
    }
}

/// The kinds of faults that only these servers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Own {
    /// The server closes all connections.
    EndSessions,
}

impl<S: SqlServer> Server for S {
    type Own = Own;
    const OWN: &'static [Own] = &[Own::EndSessions];
    const SUSPENDED_FOR: Range<Duration> = Duration::from_secs(1)..Duration::from_secs(2);

    fn notes(&self, lock: &str) -> Vec<String> {
        let (tables, clock) = (S::TABLES, S::CLOCK);
        let notes = self.ask(&format!("SELECT note FROM {tables}hold WHERE name = '{lock}' AND until > {clock}"));
        notes.lines().map(str::to_owned).collect()
    }

    fn suspend(&mut self) {
        SqlServer::suspend(self);
    }

    fn resume(&mut self) {
        SqlServer::resume(self);
    }

    fn restart_with_data(&mut self) {
        SqlServer::restart_with_data(self);
    }

    fn begin(&mut self, own: Own) -> Effect {
        match own {
            Own::EndSessions => Effect::Times(self.end_sessions()),
        }
    }

    /// Nothing lasts.
    fn end(&mut self, _: Own) -> u64 {
        0
    }
}

/// Workers with both facades in turn, each behind a proxy if faults of the network are to be injected. `program` is the worker.
pub(crate) fn crew(
    program: &'static str,
    server: &impl SqlServer,
    casts: impl IntoIterator<Item = (Cast, Mistake)>,
    is_behind_proxies: bool,
) -> Crew {
    let facades = [Facade::Async, Facade::Blocking].into_iter().cycle();
    let post = |((cast, mistake), facade)| {
        let proxies: Vec<_> = is_behind_proxies.then(|| Proxy::start(server.port())).into_iter().collect();
        let url = server.url_at(proxies.first().map_or(server.port(), Proxy::port));
        Post { facade, url, proxies, cast, mistake }
    };
    let posts = casts.into_iter().zip(facades).map(post).collect();
    Crew::start(ground(program), posts)
}

/// Workers on locks of all kinds, while everything breaks: turns never overlap, tokens rise, and nobody starves.
///
/// # Panics
/// If something is wrong, or left in the tables.
pub fn play_storm<S: SqlServer>(program: &'static str) {
    let _machine = machine();
    let mut server = S::start();
    let mut crew = crew(program, &server, CREW.iter().map(|cast| (*cast, Mistake::None)), true);
    await_workers(&crew);
    rage(&mut server, &mut crew, storm(STORM));
    await_deeds(&crew);
    let problems = calm_down(&mut crew, &[]);
    judge(crew, &problems);
    await_that("nothing is left", || left(&server) == 0);
}

/// How many leases and places there are that are not over: a row that is over stays until the lock is used again.
fn left<S: SqlServer>(server: &S) -> u64 {
    let (tables, clock) = (S::TABLES, S::CLOCK);
    let count = |table| format!("(SELECT count(*) FROM {tables}{table} WHERE until > {clock})");
    server.ask(&format!("SELECT {} + {}", count("hold"), count("place"))).parse().unwrap()
}

/// A process that does not look whether it holds is found.
///
/// # Panics
/// If it is not.
pub fn play_mistake<S: SqlServer>(program: &'static str) {
    let server = S::start();
    let casts = [(Cast::Writers, Mistake::Believes), (Cast::Writers, Mistake::None)];
    find_an_overlap(crew(program, &server, casts, false));
}
