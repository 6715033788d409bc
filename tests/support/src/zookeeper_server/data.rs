//! The directory of a server.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::options::ZookeeperOptions;
use crate::redis_server::free_port;
use crate::{must, temp_dir};

/// The configuration, in the directory of a server.
pub(super) const CONFIGURATION: &str = "zoo.cfg";
/// Who may log in.
const JAAS: &str = "jaas.conf";
/// The certificate with its key, and the certificate of the authority.
const TLS: [&str; 2] = ["server.pem", "ca.pem"];

/// What every server is told.
const LINES: [&str; 4] =
    ["clientPortAddress=127.0.0.1", "admin.enableServer=false", "maxClientCnxns=0", "4lw.commands.whitelist=*"];
/// What one is told that offers TLS.
const LINES_FOR_TLS: [&str; 4] = [
    "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
    "ssl.clientAuth=none",
    "ssl.keyStore.type=PEM",
    "ssl.trustStore.type=PEM",
];

/// Where a server listens for clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) client: u16,
    /// For those with TLS.
    pub(super) secure: u16,
}

/// What a server of an ensemble knows of the others.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    /// Its number, from 1.
    pub(super) id: usize,
    /// The ports of each server, in the order of their numbers: one for followers, and one for elections.
    pub(super) ports: Vec<[u16; 2]>,
    /// The proxy through which it reaches the others.
    pub(super) way: u16,
}

impl Ports {
    pub(super) fn free() -> Self {
        Self { client: free_port(), secure: free_port() }
    }
}

/// Makes the directory of a server that has no data yet.
pub(super) fn new(options: &ZookeeperOptions, membership: Option<&Membership>) -> TempDir {
    let directory = temp_dir();
    let write =
        |name: &str, text: &str| must("write a file of the server", fs::write(directory.path().join(name), text));
    if let Some(membership) = membership {
        write("myid", &membership.id.to_string());
    }
    if let Some(sasl) = &options.sasl {
        write(JAAS, &sasl.jaas());
    }
    if let Some(tls) = &options.tls {
        write(TLS[0], &tls.identity);
        write(TLS[1], &tls.authority);
    }
    directory
}

/// Writes the configuration of a server with these ports.
pub(super) fn configure(directory: &Path, ports: Ports, options: &ZookeeperOptions, membership: Option<&Membership>) {
    let mut lines: Vec<_> = LINES.map(str::to_owned).into();
    lines.extend([format!("dataDir={}", directory.display()), format!("clientPort={}", ports.client)]);
    if options.tls.is_some() {
        let file = |store: &str, name: &str| format!("ssl.{store}.location={}", directory.join(name).display());
        lines.extend(LINES_FOR_TLS.map(str::to_owned));
        lines.extend([file("keyStore", TLS[0]), file("trustStore", TLS[1])]);
        lines.push(format!("secureClientPort={}", ports.secure));
        lines.push("secureClientPortAddress=127.0.0.1".to_owned());
    }
    for (number, [followers, elections]) in (1..).zip(membership.into_iter().flat_map(|member| &member.ports)) {
        lines.push(format!("server.{number}=127.0.0.1:{followers}:{elections}"));
    }
    lines.extend(options.lines());
    must("write the configuration", fs::write(directory.join(CONFIGURATION), lines.join("\n") + "\n"));
}

/// The properties of Java that a server is started with.
pub(super) fn properties(directory: &Path, options: &ZookeeperOptions, membership: Option<&Membership>) -> Vec<String> {
    let mut properties = options.properties.clone();
    if options.sasl.is_some() {
        properties.push(format!("java.security.auth.login.config={}", directory.join(JAAS).display()));
    }
    if let Some(membership) = membership {
        // It would reach this machine without a proxy unless it is told so.
        properties.extend(["socksProxyHost=127.0.0.1", "socksNonProxyHosts="].map(str::to_owned));
        properties.push(format!("socksProxyPort={}", membership.way));
    }
    properties
}
