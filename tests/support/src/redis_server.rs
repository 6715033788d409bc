//! A real redis-server on its own loopback port.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{Finish, Machine, must, signals, temp_dir};

/// What clients keep at each server, whatever they lock.
const KEPT_BY_CLIENTS: [&str; 5] =
    ["leasehold:counter", "leasehold:dwell", "leasehold:incarnation", "leasehold:max_ttl", "leasehold:tombstones"];
/// How long a server may take to answer. Chosen: even a loaded machine starts one in well under a second.
const START_WITHIN: Duration = Duration::from_secs(20);
/// How often to retry on another port, because a free port may be taken before the server binds it.
const START_TRIES: u32 = 5;

/// Where servers listen. Chosen: below the ports of outgoing connections of every common system.
const PORTS: Range<u16> = 20_000..32_000;

/// How to start a server. By default it writes nothing to disk and requires no password.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    password: Option<String>,
    arguments: Vec<String>,
    environment: Vec<(String, OsString)>,
    version: RedisVersion,
    clustered: bool,
}

/// Which server to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedisVersion {
    /// The one installed on the system.
    #[default]
    Installed,
    /// Redis 6.2, the oldest supported version.
    Oldest,
    /// Valkey 9.1.
    Valkey,
}

impl RedisVersion {
    fn program(self) -> OsString {
        match self {
            Self::Installed => installed(),
            Self::Oldest => OLDEST.into(),
            Self::Valkey => VALKEY.into(),
        }
    }

    fn how_to_get_it(self) -> &'static str {
        match self {
            Self::Installed => {
                "install it with: apt-get install redis-server, or name another in LEASEHOLD_REDIS_SERVER"
            }
            Self::Oldest | Self::Valkey => "get it with: cargo xtask servers",
        }
    }
}

impl RedisOptions {
    /// A server of this version.
    #[must_use]
    pub fn version(self, version: RedisVersion) -> Self {
        Self { version, ..self }
    }

    /// Writes every change to an append-only file at once, so that a killed server comes back with its data.
    #[must_use]
    pub fn append_only(self) -> Self {
        self.arguments(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// Requires this password from every client.
    #[must_use]
    pub fn require_password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Makes the server a node of a cluster, which is not one yet.
    #[must_use]
    pub(crate) fn clustered(self) -> Self {
        Self { clustered: true, ..self }
    }

    /// Adds arguments to the server's command line, such as `--maxmemory 2mb`.
    #[must_use]
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    /// Runs it on this machine.
    #[must_use]
    pub fn on(mut self, machine: &Machine) -> Self {
        self.environment = machine.environment();
        self
    }
}

/// A running redis-server. Dropping this kills it and removes its data.
#[derive(Debug)]
pub struct RedisServer {
    process: Child,
    directory: TempDir,
    port: u16,
    /// Where the other nodes of its cluster reach it, if it has a cluster.
    bus: u16,
    options: RedisOptions,
}

/// A snapshot of a server's data, to restore later.
#[derive(Debug)]
pub struct DataCopy(TempDir);

impl RedisServer {
    /// Starts a server with the defaults and waits until it answers.
    pub fn start() -> Self {
        Self::start_with(RedisOptions::default())
    }

    /// Starts a server and waits until it answers.
    pub fn start_with(options: RedisOptions) -> Self {
        for _ in 0..START_TRIES {
            let directory = temp_dir();
            let (port, bus) = (free_port(), free_port());
            let process = spawn(directory.path(), port, bus, &options);
            let mut server = Self { process, directory, port, bus, options: options.clone() };
            if server.answers() {
                return server;
            }
        }
        panic!("redis-server did not start on {START_TRIES} ports in a row");
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port for the other nodes of its cluster.
    pub(crate) fn bus(&self) -> u16 {
        self.bus
    }

    /// The URL of the server, with its password.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// The URL of this server when reached through another port, such as that of a proxy.
    pub fn url_at(&self, port: u16) -> String {
        match &self.options.password {
            Some(password) => format!("redis://:{password}@127.0.0.1:{port}"),
            None => format!("redis://127.0.0.1:{port}"),
        }
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The directory of its data and its log.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Whether its process runs.
    pub fn is_running(&mut self) -> bool {
        must("look at redis-server", self.process.try_wait()).is_none()
    }

    /// Kills the server (`SIGKILL`) and waits until it is gone.
    pub fn kill(&mut self) {
        self.process.kill().ok();
        must("wait for the killed redis-server", self.process.wait());
    }

    /// Suspends the server (`SIGSTOP`): it accepts connections and requests but never answers.
    pub fn stop(&self) {
        signals::stop(self.pid());
    }

    /// Resumes a suspended server, which then runs the requests it got meanwhile.
    pub fn resume(&self) {
        signals::resume(self.pid());
    }

    /// Kills the server and restarts it on the same port with its data on disk.
    pub fn restart_with_data(&mut self) {
        self.kill();
        self.restart();
    }

    /// Kills the server and restarts it on the same port without data.
    pub fn restart_empty(&mut self) {
        self.kill();
        self.directory = temp_dir();
        self.restart();
    }

    /// Kills the server and restarts it on the same port with a snapshot.
    pub fn restart_from(&mut self, copy: &DataCopy) {
        self.kill();
        self.directory = temp_dir();
        copy_tree(copy.0.path(), self.directory.path());
        self.restart();
    }

    /// Copies the server's current data on disk.
    pub fn copy_data(&self) -> DataCopy {
        let copy = temp_dir();
        copy_tree(self.directory.path(), copy.path());
        DataCopy(copy)
    }

    /// Makes a backup over the network, like a nightly job: to the server it looks like a replica.
    pub fn back_up(&self) {
        let folder = temp_dir();
        let mut backup = Command::new("redis-cli");
        backup.envs(self.options.password.as_ref().map(|password| ("REDISCLI_AUTH", password)));
        backup.args(["-p", &self.port.to_string(), "--rdb"]).arg(folder.path().join("backup.rdb"));
        let done = backup.finish();
        assert!(done.status.success(), "redis-cli made no backup: {done:?}");
    }

    /// A plain connection of the redis crate to this server.
    pub fn connection(&self) -> redis::Connection {
        let client = must("read the server's own URL", redis::Client::open(self.url()));
        must("connect to redis-server", client.get_connection_with_timeout(START_WITHIN))
    }

    /// All keys, sorted, but those that clients keep at each server.
    #[track_caller]
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.command(&["KEYS", "*"]);
        keys.retain(|key| !KEPT_BY_CLIENTS.contains(&key.as_str()));
        keys.sort();
        keys
    }

    /// Runs one command, such as `&["SET", "key", "value"]`, on a new connection.
    pub fn command<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        must(&format!("run {words:?}"), request(words).query(&mut self.connection()))
    }

    fn restart(&mut self) {
        for _ in 0..START_TRIES {
            self.process = spawn(self.directory.path(), self.port, self.bus, &self.options);
            if self.answers() {
                return;
            }
        }
        panic!("redis-server did not start again on port {}:\n{}", self.port, self.log());
    }

    /// Waits until the server answers; returns false if it exited instead.
    fn answers(&mut self) -> bool {
        let deadline = Instant::now() + START_WITHIN;
        while Instant::now() < deadline {
            if self.process.try_wait().is_ok_and(|ended| ended.is_some()) {
                return false;
            }
            if self.answers_once() {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("redis-server on port {} did not answer within {START_WITHIN:?}:\n{}", self.port, self.log());
    }

    fn answers_once(&self) -> bool {
        let Ok(client) = redis::Client::open(self.url()) else { return false };
        let Ok(mut connection) = client.get_connection_with_timeout(Duration::from_secs(1)) else { return false };
        // Another server may have taken the port first; ours tells of itself before it has read its data.
        let ready = [format!("process_id:{}", self.pid()), "loading:0".to_owned()];
        let told = redis::cmd("INFO").query::<String>(&mut connection);
        told.is_ok_and(|told| ready.iter().all(|word| told.lines().any(|line| line == word)))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join(LOG)).unwrap_or_default()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

const LOG: &str = "redis.log";
/// Where `cargo xtask test` puts the oldest server ...
const OLDEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/servers/redis-6.2/redis-server");
/// ... and Valkey.
const VALKEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/servers/valkey-9.1/valkey-server");

fn spawn(directory: &Path, port: u16, bus: u16, options: &RedisOptions) -> Child {
    let log = must("make the log of redis-server", File::create(directory.join(LOG)));
    let program = options.version.program();
    let mut command = Command::new(&program);
    command
        .current_dir(directory)
        .args(["--bind", "127.0.0.1", "--save", "", "--daemonize", "no"])
        .args(["--port", &port.to_string()])
        .args(&options.arguments)
        .envs(options.environment.clone())
        .stdin(Stdio::null())
        .stderr(must("share the log of redis-server", log.try_clone()))
        .stdout(log);
    if let Some(password) = &options.password {
        command.args(["--requirepass", password]);
    }
    if options.clustered {
        command.args(["--cluster-enabled", "yes", "--cluster-port", &bus.to_string()]);
    }
    match command.spawn() {
        Ok(process) => process,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            panic!("there is no {}; {}", program.display(), options.version.how_to_get_it())
        }
        Err(error) => panic!("start redis-server: {error}"),
    }
}

/// The server that tests start unless they ask for another one.
pub(crate) fn installed() -> OsString {
    env::var_os("LEASEHOLD_REDIS_SERVER").unwrap_or_else(|| "redis-server".into())
}

/// A port outside the range of outgoing connections, so it is still free when a killed server restarts.
pub(crate) fn free_port() -> u16 {
    loop {
        let chance = RandomState::new().hash_one(()) % u64::from(PORTS.end - PORTS.start);
        let port = PORTS.start + must("draw a port", u16::try_from(chance));
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

fn request(words: &[&str]) -> redis::Cmd {
    let mut request = redis::Cmd::new();
    for word in words {
        request.arg(word);
    }
    request
}

fn copy_tree(from: &Path, to: &Path) {
    for entry in must("list the data of redis-server", fs::read_dir(from)) {
        let entry = must("list the data of redis-server", entry);
        let target = to.join(entry.file_name());
        if must("look at the data of redis-server", entry.file_type()).is_dir() {
            must("copy the data of redis-server", fs::create_dir(&target));
            copy_tree(&entry.path(), &target);
        } else if entry.file_name() != OsStr::new(LOG) {
            must("copy the data of redis-server", fs::copy(entry.path(), &target));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_keeps_or_loses_its_data_as_asked() {
        let mut server = RedisServer::start_with(RedisOptions::default().append_only().require_password("sesame"));
        server.command::<()>(&["SET", "key", "one"]);
        let early = server.copy_data();
        server.command::<()>(&["SET", "key", "two"]);
        server.restart_with_data();
        assert_eq!(server.command::<String>(&["GET", "key"]), "two");
        server.restart_from(&early);
        assert_eq!(server.command::<String>(&["GET", "key"]), "one");
        server.restart_empty();
        assert_eq!(server.command::<Option<String>>(&["GET", "key"]), None);
    }
}
