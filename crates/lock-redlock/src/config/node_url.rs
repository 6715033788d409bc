//! The nodes of a redlock URL, and whether all clients reach the same servers under their addresses.

use std::fmt;
use std::net::IpAddr;

use lock_core::Invalid;
use url::{Host, Url};

/// The port of a node whose URL names none.
const PORT: u16 = 6379;
pub(super) const FORM: &str =
    "write redlock://HOST:PORT,HOST:PORT,HOST:PORT/DB or redlock://?node=URL&node=URL&node=URL";

/// Where one node is.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeUrl {
    url: String,
    address: String,
    /// Whether its name means the local host, on every host.
    is_here: bool,
}

impl NodeUrl {
    /// Takes the URL of one node, or its host and port, and the prefix that all of them share.
    pub(super) fn new(url: &str, prefix: Option<&str>) -> Result<Self, Invalid> {
        let bad = |problem: &str| Invalid::new("node URL", "(hidden)", problem, FORM);
        let url = if url.contains(":/") { url.to_owned() } else { format!("redis://{url}") };
        let mut parsed = Url::parse(&url).map_err(|error| bad(&error.to_string()))?;
        if let Some((option, _)) = parsed.query_pairs().find(|(key, _)| key == "prefix" || key == "op_timeout") {
            return Err(bad(&format!(
                "it has an option that all nodes share (\"{option}\"): write it after the last node"
            )));
        }
        if parsed.fragment().is_some() {
            return Err(bad("it has a fragment (#...)"));
        }
        let database = parsed.path().trim_matches('/');
        if parsed.has_host() && !database.is_empty() && database.parse::<u32>().is_err() {
            return Err(bad("its database is not a number"));
        }
        let address = match parsed.host_str() {
            Some(host) => {
                let (host, port) = (host.to_ascii_lowercase(), parsed.port().unwrap_or(PORT));
                let database = if database.is_empty() { "0" } else { database };
                if database == "0" { format!("{host}:{port}") } else { format!("{host}:{port}/{database}") }
            }
            None if parsed.scheme().contains("unix") => format!("/{database}"),
            None => return Err(bad("it names no host")),
        };
        let is_here = parsed.host().map_or(parsed.scheme().contains("unix"), |host| is_here(&host));
        if let Some(prefix) = prefix {
            parsed.query_pairs_mut().append_pair("prefix", prefix);
        }
        Ok(Self { url: parsed.into(), address, is_here })
    }

    /// The URL of the server as a single store, with its secrets and the deployment's prefix.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Host, port and database, without secrets: the node as its deployment lists it.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl fmt::Debug for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)
    }
}

/// If nodes are on several hosts, none may be named as the local host: on each host, that name means a different
/// server.
pub(super) fn check_hosts(nodes: &[NodeUrl]) -> Result<(), Invalid> {
    let (here, elsewhere): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| node.is_here);
    let (Some(here), Some(elsewhere)) = (here.first(), elsewhere.first()) else { return Ok(()) };
    let problem =
        format!("{} means a different server on each host, and {} is elsewhere", here.address, elsewhere.address);
    Err(refuse(problem, "name each node by an address under which all clients reach it"))
}

/// Whether this name means the local host, on every host.
fn is_here(host: &Host<&str>) -> bool {
    let is_loopback = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost") || name.parse().is_ok_and(is_loopback)
        }
        Host::Ipv4(ip) => is_loopback((*ip).into()),
        Host::Ipv6(ip) => is_loopback(ip.to_canonical()),
    }
}

pub(super) fn refuse(problem: impl Into<String>, remedy: impl Into<String>) -> Invalid {
    Invalid::new("redlock URL", "redlock://...", problem, remedy)
}

#[cfg(test)]
mod tests {
    use super::super::RedlockConfig;

    #[test]
    fn a_list_is_of_one_host_or_of_several() {
        for mixed in [
            "redlock://localhost,db2,db3",
            "redlock://db1,db2,127.0.0.9:7003",
            "redlock://db1,[::1],db3",
            "redlock://db1,[::ffff:127.0.0.1],db3",
            "redlock://db1,db2,0.0.0.0",
            "redlock://db1,db2,LocalHost.",
            "redlock://?node=unix:///run/redis.sock&node=redis://db2&node=redis://db3",
            "redlock://?node=redis://db1&node=rediss://127.0.0.1:1&node=redis://db3",
        ] {
            let refusal = RedlockConfig::from_url(mixed).unwrap_err().to_string();
            assert!(refusal.contains("means a different server on each host"), "{mixed}: {refusal}");
        }
        for one in ["redlock://localhost:1,127.0.0.1:2,[::1]:3", "redlock://db1,localhost.example,10.0.0.1"] {
            assert!(RedlockConfig::from_url(one).is_ok(), "{one}");
        }
    }
}
