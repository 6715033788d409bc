//! A real etcd server on its own loopback ports.

pub(crate) mod secured;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::bounds::Finish;
use crate::must;
use crate::process::Process;

/// The programs, which come from a Python package.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/servers/etcd-3.5");
/// How long a server may take to answer. Chosen: even a loaded machine starts one within a few seconds.
const START_WITHIN: Duration = Duration::from_secs(30);
/// How often to retry on other ports, because a free port may be taken before the server binds it.
const START_TRIES: u32 = 5;
const LOG: &str = "etcd.log";

/// A running etcd server that is a cluster of its own. Its leases last for a second at least. Dropping this kills it and removes its data, and
/// so does the end of the process.
#[derive(Debug)]
pub struct EtcdServer {
    process: Process,
    directory: TempDir,
    port: u16,
}

impl EtcdServer {
    /// Starts a server and waits until it answers.
    pub fn start() -> Self {
        for _ in 0..START_TRIES {
            let directory = must("make a directory for the server", TempDir::new());
            let port = free_port();
            let mut server = Self { process: spawn(&directory, port), directory, port };
            if server.answers() {
                return server;
            }
        }
        panic!("the server did not start on {START_TRIES} ports in a row");
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        format!("etcd://127.0.0.1:{}", self.port)
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
        let mut command = Command::new(Path::new(PROGRAMS).join("etcdctl"));
        command.args(["--endpoints", &format!("127.0.0.1:{}", self.port)]).args(words).env("ETCDCTL_API", "3");
        command
    }

    /// Suspends the server (`SIGSTOP`): connections are accepted but nothing answers.
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Resumes a suspended server.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Kills the server and restarts it on the same port with its data on disk.
    pub fn restart_with_data(&mut self) {
        self.process.kill();
        self.process = spawn(&self.directory, self.port);
        assert!(self.answers(), "the server did not start again:\n{}", self.log());
    }

    /// Kills the server and restarts it on the same port without data.
    pub fn restart_empty(&mut self) {
        self.process.kill();
        self.directory = must("make a directory for the server", TempDir::new());
        self.process = spawn(&self.directory, self.port);
        assert!(self.answers(), "the server did not start again:\n{}", self.log());
    }

    /// Waits until the server answers; returns false if it exited instead.
    fn answers(&mut self) -> bool {
        let deadline = Instant::now() + START_WITHIN;
        while Instant::now() < deadline {
            if !self.process.is_running() {
                return false;
            }
            if is_healthy(self.port) {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server on port {} did not answer within {START_WITHIN:?}:\n{}", self.port, self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join(LOG)).unwrap_or_default()
    }
}

fn spawn(directory: &TempDir, port: u16) -> Process {
    let (place, program) = (directory.path(), Path::new(PROGRAMS).join("etcd"));
    assert!(program.exists(), "there is no etcd; get it with: cargo xtask servers");
    let log = must("open the log of the server", File::options().create(true).append(true).open(place.join(LOG)));
    let (clients, peers) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{}", free_port()));
    let mut command = Command::new(program);
    command
        .args(["--data-dir", "data", "--log-level", "warn", "--unsafe-no-fsync"])
        .args(["--heartbeat-interval", "10", "--election-timeout", "100"])
        .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
        .args(["--listen-peer-urls", &peers])
        .current_dir(place)
        .stdin(Stdio::null())
        .stderr(must("share the log of the server", log.try_clone()))
        .stdout(log);
    Process::start(&mut command, place)
}

fn free_port() -> u16 {
    let listener = must("bind a port", TcpListener::bind(("127.0.0.1", 0)));
    must("read the port", listener.local_addr()).port()
}

fn is_healthy(port: u16) -> bool {
    let asked = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
        let mut told = String::new();
        stream.read_to_string(&mut told)?;
        Ok(told)
    };
    asked().is_ok_and(|told| told.contains("\"health\":\"true\""))
}
