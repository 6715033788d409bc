//! Where servers listen.

use std::fmt;

use redis::ConnectionAddr;

/// The host and the port of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// That of a server that is reached over the network.
    pub(crate) fn of(addr: &ConnectionAddr) -> Option<Self> {
        match addr {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Some(Self { host: host.clone(), port: *port })
            }
            ConnectionAddr::Unix(_) | _ => None,
        }
    }

    /// Reads `HOST:PORT`. An IPv6 address may be without brackets, and the host may be missing.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        Some(Self { host, port: port.parse().ok()? })
    }

    /// The same at the host of another server, if this one does not know its own.
    pub(crate) fn beside(mut self, other: &Self) -> Self {
        if ["", "?"].contains(&self.host.as_str()) {
            self.host.clone_from(&other.host);
        }
        self
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}
