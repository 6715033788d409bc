//! A real MariaDB or MySQL server on its own loopback port.

mod data;
mod options;
mod programs;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use self::options::{DATABASE, USER};

use crate::must;
use crate::process::Process;
use crate::redis_server::free_port;

pub use options::{MysqlOptions, Product};

/// How long a server may take to answer. Chosen: even a loaded machine starts one within a few seconds.
const START_WITHIN: Duration = Duration::from_secs(20);
/// How often to retry on another port, because a free port may be taken before the server binds it.
const START_TRIES: u32 = 5;
const LOG: &str = "server.log";

/// What every server is told.
const ARGUMENTS: [&str; 5] = [
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--max-connections=300",
    "--performance-schema=OFF",
    "--skip-log-bin",
];

/// A running MariaDB server, or MySQL server if that is tested. Dropping this kills it and removes its data, and so does the end of the process.
#[derive(Debug)]
pub struct MysqlServer {
    process: Process,
    directory: TempDir,
    port: u16,
    options: MysqlOptions,
    /// How many databases were made without a name.
    databases: AtomicU32,
}

impl MysqlServer {
    /// Starts a server with the defaults and waits until it answers.
    pub fn start() -> Self {
        Self::start_with(MysqlOptions::default())
    }

    /// Starts a server and waits until it answers.
    pub fn start_with(options: MysqlOptions) -> Self {
        let (directory, port) = (data::new(&options), free_port());
        let process = spawn(&directory, port, &options);
        let mut server = Self { process, directory, port, options, databases: AtomicU32::new(0) };
        for _ in 1..START_TRIES {
            if server.answers() {
                return server;
            }
            server.port = free_port();
            server.process = spawn(&server.directory, server.port, &server.options);
        }
        assert!(server.answers(), "the server did not start on {START_TRIES} ports in a row:\n{}", server.log());
        server
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of the database `test_locks`, for a user who may do everything there. It has the password, and says nothing
    /// of TLS.
    pub fn url(&self) -> String {
        self.url_of(DATABASE)
    }

    /// The URL of another database.
    pub fn url_of(&self, database: &str) -> String {
        self.options.url(self.port, database)
    }

    /// The URL of this server when reached through another port, such as that of a proxy.
    pub fn url_at(&self, port: u16) -> String {
        self.options.url(port, DATABASE)
    }

    /// Creates a database, where the user may do everything too, and returns its URL.
    #[track_caller]
    pub fn database(&self, name: &str) -> String {
        self.execute(&options::sql_for_database(name));
        self.url_of(name)
    }

    /// Creates a database that no other test has, and returns its URL.
    #[track_caller]
    pub fn new_database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        self.database(&format!("{DATABASE}_{number}"))
    }

    /// Where its data and its log are.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The process id of the server.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Runs SQL in the database `test_locks` as an administrator and returns the rows: one a line, with tabs between the
    /// columns. Each statement is a transaction of its own.
    #[track_caller]
    pub fn execute(&self, sql: &str) -> String {
        self.execute_in(DATABASE, sql)
    }

    /// The same in another database.
    #[track_caller]
    pub fn execute_in(&self, database: &str, sql: &str) -> String {
        let socket = format!("--socket={}", data::socket_in(&self.directory).display());
        let ran = programs::run_sql(&["--protocol=socket", &socket, "--user=root", database], sql);
        assert!(ran.status.success(), "run {sql}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).trim_end().to_owned()
    }

    /// Closes all connections of clients, and returns how many there were.
    #[track_caller]
    pub fn end_sessions(&self) -> u64 {
        let count = "SELECT count(*) FROM information_schema.processlist WHERE user";
        let ended = self.execute(&format!("{count} = '{USER}'; KILL USER {USER}"));
        must("count the sessions", ended.parse())
    }

    /// Kills the server (`SIGKILL`) and waits until it is gone.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Suspends the server (`SIGSTOP`): connections are accepted but nothing answers.
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Resumes a suspended server, which then runs the requests it got meanwhile.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Kills the server and restarts it on the same port with its data on disk.
    pub fn restart_with_data(&mut self) {
        self.kill();
        self.restart();
    }

    /// Kills the server and restarts it on the same port without data.
    pub fn restart_empty(&mut self) {
        self.kill();
        self.directory = data::new(&self.options);
        self.restart();
    }

    fn restart(&mut self) {
        for _ in 0..START_TRIES {
            self.process = spawn(&self.directory, self.port, &self.options);
            if self.answers() {
                return;
            }
        }
        panic!("the server did not start again on port {}:\n{}", self.port, self.log());
    }

    /// Waits until the server answers; returns false if it exited instead.
    fn answers(&mut self) -> bool {
        let deadline = Instant::now() + START_WITHIN;
        while Instant::now() < deadline {
            if !self.process.is_running() {
                return false;
            }
            if self.is_at(self.port) {
                data::ran_first(&self.directory);
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server on port {} did not answer within {START_WITHIN:?}:\n{}", self.port, self.log());
    }

    /// Whether this server, and not another one that took the port first, answers clients at a port.
    fn is_at(&self, port: u16) -> bool {
        let told = programs::run_sql(&self.options.login(port, DATABASE), "SELECT @@socket");
        let socket = data::socket_in(&self.directory).display().to_string();
        told.status.success() && String::from_utf8_lossy(&told.stdout).trim_end() == socket
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join(LOG)).unwrap_or_default()
    }
}

fn spawn(directory: &TempDir, port: u16, options: &MysqlOptions) -> Process {
    let place = directory.path();
    let log = must("open the log of the server", File::options().create(true).append(true).open(place.join(LOG)));
    let mut command = programs::server(Product::tested());
    command
        .current_dir(place)
        .arg(format!("--port={port}"))
        .args(data::arguments(directory, options))
        .args(Product::tested().innodb())
        .args(ARGUMENTS)
        .args(Product::tested().arguments(options))
        .args(&options.arguments)
        .envs(options.environment.clone())
        .stdin(Stdio::null())
        .stderr(must("share the log of the server", log.try_clone()))
        .stdout(log);
    Process::start(&mut command, place)
}
