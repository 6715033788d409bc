//! The nodes of a redlock URL, and whether all clients reach the same servers under their addresses.

use std::fmt;
use std::net::IpAddr;

use lock_core::{Invalid, StoreUrl, UrlForm, UrlHost};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// The port of a node whose URL names none.
const PORT: u16 = 6379;
pub(super) const FORM: UrlForm = UrlForm {
    what: "redlock URL",
    host: "a node",
    remedy: "write redlock://HOST:PORT,HOST:PORT,HOST:PORT/DB or redlock://?node=URL&node=URL&node=URL",
};

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
        let form = UrlForm { what: "node URL", ..FORM };
        let url = match url.split_once(":/") {
            None => format!("redis://{url}"),
            Some((_, rest)) if rest.starts_with('/') => url.to_owned(),
            Some(_) => return Err(Invalid::new(form.what, "(hidden)", "it names no host", form.remedy)),
        };
        let parsed = StoreUrl::read(&url, form)?;
        if let Some(option) = ["prefix", "op_timeout"].into_iter().find(|option| parsed.option(option).is_some()) {
            let problem = format!("it has an option that all nodes share (\"{option}\"): write it after the last node");
            return Err(parsed.refuse_form(problem));
        }
        let (address, is_here) = match parsed.hosts() {
            [] if parsed.scheme().contains("unix") => (parsed.path().to_owned(), true),
            [host] => (address(host, &parsed)?, is_here(&host.name)),
            [] => return Err(parsed.refuse_form("it names no host")),
            [_, _, ..] => return Err(parsed.refuse_form("it names several hosts")),
        };
        let Some(prefix) = prefix else { return Ok(Self { url, address, is_here }) };
        let separator = if url.contains('?') { '&' } else { '?' };
        let prefix = utf8_percent_encode(prefix, NON_ALPHANUMERIC);
        Ok(Self { url: format!("{url}{separator}prefix={prefix}"), address, is_here })
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

/// Host, port and database of a node.
fn address(host: &UrlHost, url: &StoreUrl) -> Result<String, Invalid> {
    let host = UrlHost { port: Some(host.port.unwrap_or(PORT)), ..host.clone() };
    match url.path().trim_matches('/') {
        "" | "0" => Ok(host.to_string()),
        database if database.parse::<u32>().is_ok() => Ok(format!("{host}/{database}")),
        _ => Err(url.refuse_form("its database is not a number")),
    }
}

/// Whether this name means the local host, on every host.
fn is_here(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback() || ip.is_unspecified();
    name == "localhost" || name.ends_with(".localhost") || name.parse().is_ok_and(is_loopback)
}

pub(super) fn refuse(problem: impl Into<String>, remedy: impl Into<String>) -> Invalid {
    Invalid::new(FORM.what, "redlock://...", problem, remedy)
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
