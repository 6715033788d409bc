//! An etcd server with TLS, with users, and with other options of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{START_TRIES, START_WITHIN, is_healthy};
use crate::bounds::Finish;
use crate::etcd_member::EtcdVersion;
use crate::process::Process;
use crate::redis_server::free_port;
use crate::{Certificates, temp_dir};

/// The user that may do everything, once there are users.
const ROOT: &str = "root:open";

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct EtcdOptions {
    arguments: Vec<String>,
    /// The authority, and the certificate of the server and its key.
    tls: Option<[PathBuf; 3]>,
}

impl EtcdOptions {
    /// Adds arguments of the program, such as `&["--auth-token-ttl", "1"]`.
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    /// Has clients connect with TLS.
    pub fn tls(mut self, certificates: &Certificates) -> Self {
        let [certificate, key] = certificates.of_server();
        self.tls = Some([certificates.authority(), certificate, key]);
        self
    }

    /// Serves only clients with a certificate of this authority.
    pub fn client_certificates(self, certificates: &Certificates) -> Self {
        let authority = certificates.authority().display().to_string();
        self.arguments(&["--client-cert-auth", "--trusted-ca-file", &authority])
    }
}

/// A running etcd server that is a cluster of its own. Dropping this kills it and removes its data.
#[derive(Debug)]
pub struct SecuredEtcd {
    _process: Process,
    _directory: TempDir,
    options: EtcdOptions,
    port: u16,
}

impl SecuredEtcd {
    /// Starts a server and waits until it answers.
    pub fn start(options: EtcdOptions) -> Self {
        for _ in 0..START_TRIES {
            let (directory, port) = (temp_dir(), free_port());
            if let Some(process) = spawn(&directory, port, &options) {
                return Self { _process: process, _directory: directory, options, port };
            }
        }
        panic!("the server did not start on {START_TRIES} ports in a row");
    }

    /// The port for clients on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Has the servers ask for users. Makes the user `app`, who may use the keys that begin with this.
    pub fn enable_users(&self, password: &str, beginning: &str) {
        self.run(&["user", "add", ROOT]);
        self.run(&["user", "grant-role", "root", "root"]);
        self.run(&["role", "add", "app"]);
        self.run(&["role", "grant-permission", "app", "--prefix=true", "readwrite", beginning]);
        self.run(&["user", "add", &format!("app:{password}")]);
        self.run(&["user", "grant-role", "app", "app"]);
        self.run(&["auth", "enable"]);
    }

    /// Runs a command of the client program as the user that may do everything, and returns what it prints.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> String {
        let mut command = Command::new(EtcdVersion::default().program("etcdctl"));
        command.args(["--endpoints", &format!("127.0.0.1:{}", self.port), "--user", ROOT]).env("ETCDCTL_API", "3");
        if let Some([authority, certificate, key]) = &self.options.tls {
            command.arg("--cacert").arg(authority).arg("--cert").arg(certificate).arg("--key").arg(key);
        }
        let output = command.args(words).finish();
        assert!(output.status.success(), "etcdctl {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// Starts a server. `None` if it exited instead of answering, because one of its ports was taken.
fn spawn(directory: &TempDir, port: u16, options: &EtcdOptions) -> Option<Process> {
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let (clients, health) = (format!("{scheme}://127.0.0.1:{port}"), free_port());
    let mut command = Command::new(EtcdVersion::default().program("etcd"));
    command
        .args(["--data-dir", "data", "--log-level", "error", "--unsafe-no-fsync", "--bcrypt-cost", "4"])
        .args(["--heartbeat-interval", "10", "--election-timeout", "100"])
        .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
        .args(["--listen-metrics-urls", &format!("http://127.0.0.1:{health}")])
        .args(["--listen-peer-urls", &format!("http://127.0.0.1:{}", free_port())])
        .args(&options.arguments);
    if let Some([_, certificate, key]) = &options.tls {
        command.arg("--cert-file").arg(certificate).arg("--key-file").arg(key);
    }
    command.current_dir(directory.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Process::start(&mut command, directory.path());
    let deadline = Instant::now() + START_WITHIN;
    while Instant::now() < deadline {
        if !process.is_running() {
            return None;
        }
        if is_healthy(health) {
            return Some(process);
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the server on port {port} did not answer within {START_WITHIN:?}");
}
