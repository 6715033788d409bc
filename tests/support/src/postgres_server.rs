//! A real PostgreSQL server on its own loopback port.

mod data;
mod options;
mod processes;
pub(crate) mod programs;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::must;
use crate::redis_server::free_port;

pub use options::PostgresOptions;

/// How long a server may take to answer. Chosen: even a loaded machine starts one within a few seconds.
const START_WITHIN: Duration = Duration::from_secs(20);
/// How long a server may take to end by itself before it is killed.
const END_WITHIN: Duration = Duration::from_secs(5);
/// How often to retry on another port, because a free port may be taken before the server binds it.
const START_TRIES: u32 = 5;
/// The database that every server has.
const DATABASE: &str = "postgres";
const LOG: &str = "postgres.log";

/// What every server is told. Its memory for parallel queries is in its directory, so that nothing of it outlives a kill.
const ARGUMENTS: [&str; 12] = [
    "-c",
    "listen_addresses=127.0.0.1",
    "-c",
    "unix_socket_directories=",
    "-c",
    "max_connections=300",
    "-c",
    "wal_level=replica",
    "-c",
    "max_wal_senders=5",
    "-c",
    "dynamic_shared_memory_type=mmap",
];

/// A running PostgreSQL server. Dropping this ends it and removes its data.
#[derive(Debug)]
pub struct PostgresServer {
    process: Child,
    directory: TempDir,
    port: u16,
    options: PostgresOptions,
}

impl PostgresServer {
    /// Starts a server with the defaults and waits until it answers.
    pub fn start() -> Self {
        Self::start_with(PostgresOptions::default())
    }

    /// Starts a server and waits until it answers.
    pub fn start_with(options: PostgresOptions) -> Self {
        Self::start_in(data::new(&options), options)
    }

    /// Starts a server that follows this one: it replays what this one writes, and answers queries that only read.
    pub fn standby(&self) -> Self {
        Self::start_in(data::following(&self.url()), self.options.clone())
    }

    fn start_in(directory: TempDir, options: PostgresOptions) -> Self {
        let port = free_port();
        let mut server = Self { process: spawn(&directory, port, &options), directory, port, options };
        for _ in 1..START_TRIES {
            if server.answers() {
                return server;
            }
            server.port = free_port();
            server.process = spawn(&server.directory, server.port, &server.options);
        }
        assert!(server.answers(), "postgres did not start on {START_TRIES} ports in a row:\n{}", server.log());
        server
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of the database `postgres`, with the password. It says nothing of TLS if the server offers it.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// The URL of this server when reached through another port, such as that of a proxy.
    pub fn url_at(&self, port: u16) -> String {
        self.options.url(port, DATABASE)
    }

    /// Creates a database and returns its URL.
    #[track_caller]
    pub fn database(&self, name: &str) -> String {
        self.psql(&format!("CREATE DATABASE \"{name}\""));
        self.options.url(self.port, name)
    }

    /// Where its data and its log are.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The process id of the server, which has a child for each connection.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Runs SQL in the database `postgres` and returns the rows: one a line, with `|` between the columns. Several
    /// statements are one transaction.
    #[track_caller]
    pub fn psql(&self, sql: &str) -> String {
        self.psql_in(DATABASE, sql)
    }

    /// The same in another database.
    #[track_caller]
    pub fn psql_in(&self, database: &str, sql: &str) -> String {
        let ran = programs::run_sql(&self.options.url(self.port, database), sql);
        assert!(ran.status.success(), "run {sql}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).trim_end().to_owned()
    }

    /// Kills the server with all its processes (`SIGKILL`) and waits until they are gone.
    pub fn kill(&mut self) {
        if self.is_running() {
            processes::stop(self.pid());
            processes::kill_all(self.pid());
            must("wait for the killed postgres", self.process.wait());
        }
        data::clear_away(&self.directory);
    }

    /// Suspends the server with all its processes (`SIGSTOP`): connections are accepted but nothing answers.
    pub fn stop(&self) {
        processes::stop(self.pid());
    }

    /// Resumes a suspended server, which then runs the requests it got meanwhile.
    pub fn resume(&self) {
        processes::resume(self.pid());
    }

    /// Kills the server and restarts it on the same port with its data on disk.
    pub fn restart_with_data(&mut self) {
        self.kill();
        self.restart();
    }

    /// Kills the server and restarts it on the same port without data. A standby follows nobody then.
    pub fn restart_empty(&mut self) {
        self.kill();
        self.directory = data::new(&self.options);
        self.restart();
    }

    /// Makes a standby a server of its own, which takes writes. Returns when it does.
    #[track_caller]
    pub fn promote(&self) {
        assert_eq!(self.psql("SELECT pg_promote()"), "t", "the standby was not promoted:\n{}", self.log());
    }

    fn restart(&mut self) {
        for _ in 0..START_TRIES {
            self.process = spawn(&self.directory, self.port, &self.options);
            if self.answers() {
                return;
            }
        }
        panic!("postgres did not start again on port {}:\n{}", self.port, self.log());
    }

    fn is_running(&mut self) -> bool {
        must("look at postgres", self.process.try_wait()).is_none()
    }

    /// Waits until the server answers; returns false if it exited instead.
    fn answers(&mut self) -> bool {
        let deadline = Instant::now() + START_WITHIN;
        while Instant::now() < deadline {
            if !self.is_running() {
                return false;
            }
            if self.is_at(&self.url()) {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("postgres on port {} did not answer within {START_WITHIN:?}:\n{}", self.port, self.log());
    }

    /// Whether this server, and not another one that took the port first, answers at a URL.
    pub(crate) fn is_at(&self, url: &str) -> bool {
        let told = programs::run_sql(url, "SHOW data_directory");
        let data = data::data_in(&self.directory).display().to_string();
        told.status.success() && String::from_utf8_lossy(&told.stdout).trim_end() == data
    }

    /// The password that it requires.
    pub(crate) fn password(&self) -> Option<&str> {
        self.options.password.as_deref()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join(LOG)).unwrap_or_default()
    }
}

impl Drop for PostgresServer {
    /// A server that ends by itself gives back its memory, which outlives one that is killed.
    fn drop(&mut self) {
        processes::send(self.pid(), Signal::SIGQUIT);
        processes::resume(self.pid());
        let deadline = Instant::now() + END_WITHIN;
        while Instant::now() < deadline && self.is_running() {
            thread::sleep(Duration::from_millis(2));
        }
        self.kill();
    }
}

fn spawn(directory: &TempDir, port: u16, options: &PostgresOptions) -> Child {
    let log =
        must("open the log of postgres", File::options().create(true).append(true).open(directory.path().join(LOG)));
    let mut command = programs::program_of_server("postgres");
    command
        .current_dir(directory.path())
        .arg("-D")
        .arg(data::data_in(directory))
        .args(["-p", &port.to_string()])
        .args(ARGUMENTS)
        .args(&options.arguments)
        .envs(options.environment.clone())
        .stdin(Stdio::null())
        .stderr(must("share the log of postgres", log.try_clone()))
        .stdout(log);
    if options.tls.is_some() {
        command.args(["-c", "ssl=on", "-c", "ssl_cert_file=server.pem", "-c", "ssl_key_file=server.key"]);
    }
    must("start postgres", command.spawn())
}
