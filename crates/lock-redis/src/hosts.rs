//! A URL of several hosts, taken apart: the URL type of the library knows only one.

use lock_core::Invalid;
use redis::{ConnectionAddr, ConnectionInfo};
use url::Url;

use crate::url_parts::refuse;

/// Stands for the host in the URL of one server.
const SERVER: &str = "primary";

/// What the URLs of a deployment with several hosts are like.
pub(crate) struct Form {
    /// How to write one.
    pub(crate) remedy: &'static str,
    /// What each host is.
    pub(crate) node: &'static str,
    /// The port of a host whose address names none.
    pub(crate) port: u16,
}

/// The parts of `SCHEME://USER:PASSWORD@HOST:PORT,HOST:PORT/PATH?QUERY`.
pub(crate) struct Hosts<'a> {
    scheme: &'a str,
    login: &'a str,
    hosts: &'a str,
    /// With its leading slash, if there is one.
    pub(crate) path: &'a str,
    query: &'a str,
    form: &'static Form,
}

impl<'a> Hosts<'a> {
    /// Takes apart what is behind `SCHEME://`.
    pub(crate) fn of(scheme: &'a str, rest: &'a str, form: &'static Form) -> Result<Self, Invalid> {
        let (place, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
        let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let all = Self { scheme, login, hosts, path, query, form };
        // It may be the rest of a password.
        if path.contains('@') {
            let remedy = "write / and @ in a password as %2F and %40";
            return Err(refuse(&all.hidden(), "it has an @ after the hosts", remedy));
        }
        Ok(all)
    }

    /// Where the hosts are.
    pub(crate) fn nodes(&self) -> Result<Vec<(String, u16)>, Invalid> {
        self.hosts.split(',').map(|node| self.address(node)).collect()
    }

    /// The URL of one server, whose host is not known yet, with the login and the options.
    pub(crate) fn server(&self, scheme: &str, database: &str) -> Result<Url, Invalid> {
        let login = if self.login.is_empty() { String::new() } else { format!("{}@", self.login) };
        let server = format!("{scheme}://{login}{SERVER}/{database}{}", self.query);
        Url::parse(&server).map_err(|error| refuse(&self.hidden(), error.to_string(), self.form.remedy))
    }

    /// The URL without secrets and options.
    pub(crate) fn shown(&self) -> String {
        // Without a login, what is in front of a ? may be the beginning of one.
        if self.query.contains('@') {
            return self.hidden();
        }
        let login = if self.login.is_empty() { "" } else { "***@" };
        format!("{}://{login}{}{}", self.scheme, self.hosts, self.path)
    }

    fn hidden(&self) -> String {
        hidden(self.scheme)
    }

    /// Reads `HOST` or `HOST:PORT`.
    fn address(&self, node: &str) -> Result<(String, u16), Invalid> {
        let Form { remedy, node: what, port } = self.form;
        let refused = |problem: String| refuse(&self.hidden(), problem, *remedy);
        let parsed = Url::parse(&format!("redis://{node}"));
        let parsed = parsed.map_err(|error| refused(format!("the address of {what} is not valid: {error}")))?;
        let host = parsed.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| refused("it names no host".to_owned()))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        Ok((host, parsed.port().unwrap_or(*port)))
    }
}

/// Only the scheme.
pub(crate) fn hidden(scheme: &str) -> String {
    format!("{scheme}://...")
}

/// The nodes of a table as the hosts of a URL with this scheme, and what comes after them.
pub(crate) fn listed(scheme: &str, nodes: &[String], path: &str) -> Result<String, Invalid> {
    let place = format!("{}{path}", nodes.join(","));
    if place.contains(['@', '?', '#']) {
        let remedy = "write HOST:PORT for each node; user and password have fields of their own";
        return Err(refuse(&hidden(scheme), "a node or a name contains @, ? or #", remedy));
    }
    Ok(place)
}

/// Adds the login of a table.
pub(crate) fn log_in(
    url: &mut Url,
    shown: &str,
    username: Option<&str>,
    password: Option<&str>,
) -> Result<(), Invalid> {
    let login = url.set_username(username.unwrap_or_default()).and_then(|()| url.set_password(password));
    login.map_err(|()| refuse(shown, "user and password cannot be used", "write them in other characters"))
}

/// The address of a host, with TLS if the other server is reached with TLS.
pub(crate) fn at(server: &ConnectionInfo, host: &str, port: u16) -> ConnectionAddr {
    let host = host.to_owned();
    match server.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
        }
        ConnectionAddr::Tcp(..) | ConnectionAddr::Unix(_) | _ => ConnectionAddr::Tcp(host, port),
    }
}
