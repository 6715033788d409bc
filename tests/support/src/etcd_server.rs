//! A real etcd server on its own loopback ports.

pub(crate) mod secured;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::bounds::Finish;
use crate::etcd_member::{EtcdMember, EtcdVersion};
use crate::process::Process;
use crate::redis_server::free_port;
use crate::{must, temp_dir};

/// How long a server may take to answer. Chosen: even a loaded machine starts one within a few seconds.
const START_WITHIN: Duration = Duration::from_secs(30);
/// How often to retry on other ports, because a free port may be taken before the server binds it.
const START_TRIES: u32 = 5;
/// How long an answer may take. A server without a leader takes its time.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
const LOG: &str = "etcd.log";
const DATA: &str = "data";

/// A running etcd server that is a cluster of its own. Its leases last for a second at least. Dropping this kills it and removes its data, and
/// so does the end of the process.
#[derive(Debug)]
pub struct EtcdServer {
    process: Process,
    directory: TempDir,
    port: u16,
    version: EtcdVersion,
    /// `None` if it is alone.
    member: Option<EtcdMember>,
}

impl EtcdServer {
    /// Starts a server and waits until it answers.
    pub fn start() -> Self {
        Self::start_version(EtcdVersion::default())
    }

    /// Starts a server of this version and waits until it answers.
    pub fn start_version(version: EtcdVersion) -> Self {
        for _ in 0..START_TRIES {
            let mut server = Self::spawn(version, None);
            if server.answers() {
                return server;
            }
        }
        panic!("the server did not start on {START_TRIES} ports in a row");
    }

    /// Starts a server, alone or in a cluster, and does not wait.
    pub(crate) fn spawn(version: EtcdVersion, member: Option<EtcdMember>) -> Self {
        let (directory, port) = (temp_dir(), free_port());
        let process = spawn(&directory, port, version, member.as_ref());
        Self { process, directory, port, version, member }
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("etcd://127.0.0.1:{}", self.port)
    }

    /// The version of the server.
    pub fn version(&self) -> String {
        let told = self.run(&["endpoint", "status", "--write-out", "fields"]);
        let version = told.lines().find_map(|line| line.strip_prefix("\"Version\" : "));
        version.unwrap_or_default().trim_matches('"').to_owned()
    }

    /// Runs a command of the client program, such as `&["get", "--prefix", "key"]`, and returns what it prints.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> String {
        let output = self.etcdctl(words).finish();
        assert!(output.status.success(), "etcdctl {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A command of the client program.
    pub fn etcdctl(&self, words: &[&str]) -> Command {
        self.etcdctl_at(self.port, words)
    }

    /// The same over another port, such as that of a proxy.
    pub fn etcdctl_at(&self, port: u16, words: &[&str]) -> Command {
        let mut command = Command::new(self.version.program("etcdctl"));
        command.args(["--endpoints", &format!("127.0.0.1:{port}")]).args(words).env("ETCDCTL_API", "3");
        command
    }

    /// Has its cluster refuse what needs room, as it does when the file of a server is as large as its quota. `etcdctl alarm disarm` ends that.
    pub fn raise_no_space(&self) {
        let told = self.run(&["endpoint", "status", "--write-out", "fields"]);
        let member = told.lines().find_map(|line| line.strip_prefix("\"MemberID\" : "));
        let member = must("find the number of the server", member.ok_or(&told));
        let alarm = format!(r#"{{"action":"ACTIVATE","memberID":"{member}","alarm":"NOSPACE"}}"#);
        let answer = ask(self.port, "POST", "/v3/maintenance/alarm", &alarm);
        assert!(answer.as_ref().is_some_and(|answer| answer.contains(" 200 ")), "raise an alarm: {answer:?}");
    }

    /// Suspends the server (`SIGSTOP`): connections are accepted but nothing answers.
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Resumes a suspended server.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Kills the server and waits until it is gone.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Kills the server and restarts it on the same port with its data on disk. In a cluster, this does not wait until it serves clients,
    /// for which it needs a majority.
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

    /// Kills the server and restarts it on the same port with what this snapshot has.
    pub fn restart_from(&mut self, snapshot: &Path) {
        self.kill();
        self.directory = temp_dir();
        let mut command = Command::new(self.version.program("etcdctl"));
        command.args(["snapshot", "restore"]).arg(snapshot).arg("--data-dir").arg(self.directory.path().join(DATA));
        command.args(self.member.iter().flat_map(EtcdMember::identity)).env("ETCDCTL_API", "3");
        let restored = command.finish();
        assert!(restored.status.success(), "{command:?}: {}", String::from_utf8_lossy(&restored.stderr));
        self.restart();
    }

    fn restart(&mut self) {
        self.process = spawn(&self.directory, self.port, self.version, self.member.as_ref());
        let is_up = self.member.is_some() || self.answers();
        assert!(is_up, "the server did not start again:\n{}", self.log());
    }

    /// Whether the server belongs to a majority.
    pub fn is_serving(&self) -> bool {
        is_healthy(self.port)
    }

    /// Whether the server takes itself for the leader of its cluster.
    pub(crate) fn leads(&self) -> bool {
        get(self.port, "/metrics").is_some_and(|told| told.lines().any(|line| line == "etcd_server_is_leader 1"))
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// Waits until the server answers; returns false if it exited instead.
    fn answers(&mut self) -> bool {
        let deadline = Instant::now() + START_WITHIN;
        while Instant::now() < deadline {
            if !self.process.is_running() {
                return false;
            }
            if self.is_serving() {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server on port {} did not answer within {START_WITHIN:?}:\n{}", self.port, self.log());
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join(LOG)).unwrap_or_default()
    }
}

fn spawn(directory: &TempDir, port: u16, version: EtcdVersion, member: Option<&EtcdMember>) -> Process {
    let place = directory.path();
    let log = must("open the log of the server", File::options().create(true).append(true).open(place.join(LOG)));
    let clients = format!("http://127.0.0.1:{port}");
    let mut command = Command::new(version.program("etcd"));
    command
        .args(["--data-dir", DATA, "--log-level", "warn"])
        .args(version.without_sync())
        .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
        .current_dir(place)
        .stdin(Stdio::null())
        .stderr(must("share the log of the server", log.try_clone()))
        .stdout(log);
    match member {
        Some(member) => member.configure(&mut command),
        None => {
            let peers = format!("http://127.0.0.1:{}", free_port());
            command.args(["--listen-peer-urls", &peers, "--heartbeat-interval", "10", "--election-timeout", "100"]);
        }
    }
    Process::start(&mut command, place)
}

/// Whether a server that answers at this port has a leader.
fn is_healthy(port: u16) -> bool {
    get(port, "/health").is_some_and(|told| told.contains("\"health\":\"true\""))
}

fn get(port: u16, path: &str) -> Option<String> {
    ask(port, "GET", path, "")
}

/// Sends an HTTP request to a server and returns the whole response; `None` if it does not answer.
fn ask(port: u16, method: &str, path: &str, body: &str) -> Option<String> {
    let asked = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
        write!(stream, "{method} {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
        let mut told = String::new();
        stream.read_to_string(&mut told)?;
        Ok(told)
    };
    asked().ok()
}
