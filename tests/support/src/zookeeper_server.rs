//! A real ZooKeeper server on its own loopback ports.

pub(crate) mod answers;
pub(crate) mod curator;
mod data;
pub(crate) mod ensemble;
pub(crate) mod options;
pub(crate) mod programs;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use self::data::{Membership, Ports};
use self::options::ZookeeperOptions;
use self::programs::{four_letter, jar};
use crate::must;
use crate::process::Process;

/// How long a server may take to answer. Chosen: even a loaded machine starts one within a few seconds.
const START_WITHIN: Duration = Duration::from_secs(30);
/// How often to retry on other ports, because a free port may be taken before the server binds it.
const START_TRIES: u32 = 5;
const LOG: &str = "zookeeper.log";

/// A running ZooKeeper server. Dropping this kills it and removes its data, and so does the end of the process.
#[derive(Debug)]
pub struct ZookeeperServer {
    process: Process,
    directory: TempDir,
    ports: Ports,
    options: ZookeeperOptions,
    /// `None` if it is alone.
    membership: Option<Membership>,
}

impl ZookeeperServer {
    /// Starts a server of its own with the defaults and waits until it answers.
    pub fn start() -> Self {
        Self::start_with(ZookeeperOptions::default())
    }

    /// Starts a server of its own and waits until it answers.
    pub fn start_with(options: ZookeeperOptions) -> Self {
        let mut server = Self::spawn(options, None);
        for _ in 1..START_TRIES {
            if server.answers() {
                return server;
            }
            server.ports = Ports::free();
            server.process = server.process_of_its_own();
        }
        assert!(server.answers(), "the server did not start on {START_TRIES} ports in a row:\n{}", server.log());
        server
    }

    /// Starts a server, alone or in an ensemble, and does not wait.
    fn spawn(options: ZookeeperOptions, membership: Option<Membership>) -> Self {
        let (directory, ports) = (data::new(&options, membership.as_ref()), Ports::free());
        let process = spawn(&directory, ports, &options, membership.as_ref());
        Self { process, directory, ports, options, membership }
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.ports.client
    }

    /// The host and the port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// The port for clients with TLS, if it is offered.
    pub fn secure_port(&self) -> u16 {
        assert!(self.options.tls.is_some(), "the server has no certificate");
        self.ports.secure
    }

    /// The directory of its data and its log.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The process id of the server.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Runs a command of the client program, such as `&["create", "/path", "data"]`, and returns what it prints. Takes half a
    /// second, because it is in Java too.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> String {
        must(&format!("run {words:?}"), programs::run_command(&self.address(), self.directory.path(), &[], words))
    }

    /// Whether the server takes requests that write: it is up, and if it is in an ensemble, it belongs to a majority.
    pub fn is_serving(&self) -> bool {
        !matches!(self.mode().as_str(), "" | "read-only")
    }

    /// What the server is in its ensemble: `leader`, `follower`, `read-only`, or `standalone` if it is in none. Empty if it does not
    /// answer, or serves nobody.
    fn mode(&self) -> String {
        let told = four_letter(self.port(), "srvr");
        told.lines().find_map(|line| line.strip_prefix("Mode: ")).unwrap_or_default().to_owned()
    }

    /// Kills the server (`SIGKILL`) and waits until it is gone. Its clients' sessions last on, if they find another server or this
    /// one again.
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

    /// Kills the server and restarts it on the same port with its data on disk. In an ensemble, this does not wait for a majority.
    pub fn restart_with_data(&mut self) {
        self.kill();
        self.restart();
    }

    /// Kills the server and restarts it on the same port without data. In an ensemble, it gets data from the others.
    pub fn restart_empty(&mut self) {
        self.kill();
        self.directory = data::new(&self.options, self.membership.as_ref());
        self.restart();
    }

    fn restart(&mut self) {
        for _ in 0..START_TRIES {
            self.process = self.process_of_its_own();
            if self.answers() {
                return;
            }
        }
        panic!("the server did not start again on port {}:\n{}", self.port(), self.log());
    }

    /// Waits until the server answers; returns false if it exited instead.
    fn answers(&mut self) -> bool {
        let deadline = Instant::now() + START_WITHIN;
        while Instant::now() < deadline {
            if !self.process.is_running() {
                return false;
            }
            if self.is_at(self.port()) && (self.membership.is_some() || self.is_serving()) {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server on port {} did not answer within {START_WITHIN:?}:\n{}", self.port(), self.log());
    }

    /// Whether this server, and not another one that took the port first, answers clients at a port.
    fn is_at(&self, port: u16) -> bool {
        let directory = format!("java.io.tmpdir={}", self.directory.path().display());
        four_letter(port, "envi").lines().any(|line| line == directory)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join(LOG)).unwrap_or_default()
    }

    fn process_of_its_own(&self) -> Process {
        spawn(&self.directory, self.ports, &self.options, self.membership.as_ref())
    }
}

fn spawn(directory: &TempDir, ports: Ports, options: &ZookeeperOptions, membership: Option<&Membership>) -> Process {
    let place = directory.path();
    let log = must("open the log of the server", File::options().create(true).append(true).open(place.join(LOG)));
    let program = jar("zookeeper");
    programs::check(&program);
    data::configure(place, ports, options, membership);
    let mut command = programs::java(&[program], place, &data::properties(place, options, membership));
    command
        .args(["org.apache.zookeeper.server.quorum.QuorumPeerMain", data::CONFIGURATION])
        .envs(options.environment.clone())
        .stdin(Stdio::null())
        .stderr(must("share the log of the server", log.try_clone()))
        .stdout(log);
    Process::start(&mut command, place)
}
