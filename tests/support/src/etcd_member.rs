//! The programs of etcd, and what a server of a cluster is told about the others.

use std::path::PathBuf;
use std::process::Command;

/// Where the servers are that `cargo xtask servers` gets.
const SERVERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/servers");

/// The address that the servers tell each other. They reach it through their proxies only: those look at the port, and Go asks no proxy for an
/// address of the loopback network.
const ADVERTISED: &str = "192.0.2.1";

/// A version of etcd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EtcdVersion {
    /// 3.4.23, from Debian.
    V3_4,
    /// 3.5.1, from a Python package. A server that has been deposed answers renewals of leases.
    #[default]
    V3_5,
}

impl EtcdVersion {
    /// A program of this version: `etcd` or `etcdctl`.
    pub(crate) fn program(self, name: &str) -> PathBuf {
        let place = match self {
            Self::V3_4 => "etcd-3.4",
            Self::V3_5 => "etcd-3.5",
        };
        let program = PathBuf::from(SERVERS).join(place).join(name);
        assert!(program.exists(), "there is no {}; get it with: cargo xtask servers", program.display());
        program
    }

    /// What keeps the server from waiting for the disk: tests kill processes, and not machines.
    pub(crate) const fn without_sync(self) -> &'static [&'static str] {
        match self {
            Self::V3_4 => &[],
            Self::V3_5 => &["--unsafe-no-fsync"],
        }
    }
}

/// What a server of a cluster knows of the others.
#[derive(Clone, Debug)]
pub(crate) struct EtcdMember {
    pub(crate) number: usize,
    /// Where each server listens for the others.
    pub(crate) ports: Vec<u16>,
    /// The proxy through which it reaches the others.
    pub(crate) way: u16,
    /// What else it is told.
    pub(crate) arguments: Vec<String>,
}

impl EtcdMember {
    /// Its name, its address, and those of all servers.
    pub(crate) fn identity(&self) -> [String; 6] {
        let name = |number: usize| format!("server-{number}");
        let url = |number: usize| format!("http://{ADVERTISED}:{}", self.ports[number]);
        let all: Vec<_> = (0..self.ports.len()).map(|number| format!("{}={}", name(number), url(number))).collect();
        [
            "--name",
            &name(self.number),
            "--initial-advertise-peer-urls",
            &url(self.number),
            "--initial-cluster",
            &all.join(","),
        ]
        .map(str::to_owned)
    }

    /// Tells a server what it has to know.
    pub(crate) fn configure(&self, command: &mut Command) {
        let listens = format!("http://127.0.0.1:{}", self.ports[self.number]);
        let proxy = format!("socks5://127.0.0.1:{}", self.way);
        command.args(self.identity()).args(["--listen-peer-urls", &listens]).args(&self.arguments);
        command.env("HTTP_PROXY", proxy).env_remove("NO_PROXY").env_remove("no_proxy");
    }
}
