//! Where the sentinels are that name a primary: a URL, or a table of a configuration file.

use lock_core::Invalid;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};
use serde::Deserialize;
use url::Url;

use crate::url_parts::refuse;

/// The port of a sentinel whose address names none.
const PORT: u16 = 26379;
/// Stands for the primary in the URL of the servers.
const SERVERS: &str = "primary";
const FORM: &str = "write redis+sentinel://HOST:PORT,HOST:PORT,HOST:PORT/NAME/DB, with the name of the primary";

/// The sentinels of a deployment.
#[derive(Clone)]
pub(crate) struct Sentinels {
    /// How each of them is reached, in the order of asking.
    pub(crate) nodes: Vec<ConnectionInfo>,
    /// The name under which they know the primary.
    pub(crate) master: String,
}

/// A URL of sentinels, taken apart.
pub(crate) struct SentinelUrl {
    /// The same for the servers, whose host is not known yet.
    pub(crate) servers: Url,
    /// The URL without secrets and options.
    pub(crate) shown: String,
    nodes: Vec<(String, u16)>,
    master: String,
}

/// Sentinels in a configuration file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SentinelTable {
    nodes: Vec<String>,
    master: String,
    #[serde(default)]
    database: u32,
    username: Option<String>,
    password: Option<String>,
    sentinel_username: Option<String>,
    sentinel_password: Option<String>,
    #[serde(default)]
    ssl: bool,
}

impl SentinelUrl {
    /// Takes a URL apart if it is one of sentinels.
    pub(crate) fn read(url: &str) -> Option<Result<Self, Invalid>> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let servers = scheme.strip_suffix("+sentinel")?;
        ["redis", "rediss"].contains(&servers).then(|| Self::taken_apart(&scheme, servers, rest))
    }

    fn taken_apart(scheme: &str, servers: &str, rest: &str) -> Result<Self, Invalid> {
        let hidden = format!("{scheme}://...");
        let (place, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
        // It may be the rest of a password.
        if path.contains('@') {
            return Err(refuse(&hidden, "it has an @ after the hosts", "write / and @ in a password as %2F and %40"));
        }
        let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let nodes: Vec<_> = hosts.split(',').map(|node| address(node, &hidden)).collect::<Result<_, _>>()?;
        let names = path.strip_prefix('/').unwrap_or(path).trim_end_matches('/');
        let (master, database) = names.split_once('/').unwrap_or((names, ""));
        let login = if login.is_empty() { String::new() } else { format!("{login}@") };
        let servers = format!("{servers}://{login}{SERVERS}/{database}{query}");
        let servers = Url::parse(&servers).map_err(|error| refuse(&hidden, error.to_string(), FORM))?;
        let login = if login.is_empty() { "" } else { "***@" };
        // Without a login, what is in front of a ? may be the beginning of one.
        let shown = if query.contains('@') { hidden } else { format!("{scheme}://{login}{hosts}{path}") };
        check_master(master, &shown)?;
        if !database.is_empty() && database.parse::<u32>().is_err() {
            return Err(refuse(&shown, "its database is not a number", FORM));
        }
        Ok(Self { servers, shown, nodes, master: master.to_owned() })
    }

    /// The sentinels, with the login for them. `server` says whether to use TLS.
    pub(crate) fn sentinels(
        self,
        server: &ConnectionInfo,
        username: Option<String>,
        password: Option<String>,
    ) -> Result<Sentinels, Invalid> {
        let mut login = RedisConnectionInfo::default();
        if let Some(username) = username {
            login = login.set_username(username);
        }
        if let Some(password) = password {
            login = login.set_password(password);
        }
        let reached = |(host, port): (String, u16)| {
            let info = at(server, &host, port).into_connection_info()?;
            Ok(info.set_redis_settings(login.clone()))
        };
        let nodes: Result<_, redis::RedisError> = self.nodes.into_iter().map(reached).collect();
        let nodes = nodes.map_err(|_| refuse(&self.shown, "an address is not usable", FORM))?;
        Ok(Sentinels { nodes, master: self.master })
    }
}

impl SentinelTable {
    /// The URL that says the same, and the login for the sentinels. The URL holds the secrets.
    pub(crate) fn into_url(self) -> Result<(SentinelUrl, Option<String>, Option<String>), Invalid> {
        let servers = if self.ssl { "rediss" } else { "redis" };
        let scheme = format!("{servers}+sentinel");
        let place = format!("{}/{}/{}", self.nodes.join(","), self.master, self.database);
        if place.contains(['@', '?', '#']) {
            let remedy = "write HOST:PORT for each node; user and password have fields of their own";
            return Err(refuse(&format!("{scheme}://..."), "a node or the master contains @, ? or #", remedy));
        }
        let mut url = SentinelUrl::taken_apart(&scheme, servers, &place)?;
        let login = url.servers.set_username(self.username.as_deref().unwrap_or_default());
        let login = login.and_then(|()| url.servers.set_password(self.password.as_deref()));
        login.map_err(|()| refuse(&url.shown, "user and password cannot be used", FORM))?;
        Ok((url, self.sentinel_username, self.sentinel_password))
    }
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

/// Reads `HOST` or `HOST:PORT`.
fn address(node: &str, hidden: &str) -> Result<(String, u16), Invalid> {
    let parsed = Url::parse(&format!("redis://{node}"));
    let parsed =
        parsed.map_err(|error| refuse(hidden, format!("the address of a sentinel is not valid: {error}"), FORM))?;
    let host = parsed.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| refuse(hidden, "it names no host", FORM))?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    Ok((host, parsed.port().unwrap_or(PORT)))
}

/// Sentinels accept no other names, and so none of them needs an escape.
fn check_master(master: &str, shown: &str) -> Result<(), Invalid> {
    if master.is_empty() {
        return Err(refuse(shown, "it does not name the primary", FORM));
    }
    if !master.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
        return Err(refuse(shown, "the name of the primary has characters that sentinels do not accept", FORM));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::RedisConfig;

    use super::*;

    fn refusal(url: &str) -> String {
        RedisConfig::from_url(url).map(|config| config.shown_url().to_owned()).unwrap_err().to_string()
    }

    #[test]
    fn urls_of_sentinels_are_read_in_full() {
        let config = RedisConfig::from_url(
            "redis+sentinel://app:se%23same@h1:7000,[::1],H3/orders/2?sentinel_username=s&sentinel_password=g%40&prefix=p&op_timeout=1s",
        )
        .unwrap();
        let (sentinels, server) = (config.sentinels().unwrap(), config.server().redis_settings());
        let addresses: Vec<_> = sentinels.nodes.iter().map(|node| node.addr().clone()).collect();
        let tcp = |host: &str, port| ConnectionAddr::Tcp(host.into(), port);
        assert_eq!(addresses, [tcp("h1", 7000), tcp("::1", PORT), tcp("h3", PORT)]);
        let login = sentinels.nodes[0].redis_settings();
        assert_eq!((login.username(), login.password(), login.db()), (Some("s"), Some("g@"), 0));
        assert_eq!((server.username(), server.password(), server.db()), (Some("app"), Some("se#same"), 2));
        assert_eq!((sentinels.master.as_str(), config.prefix()), ("orders", Some("p")));
        assert_eq!(config.op_timeout(), Some(Duration::from_secs(1)));
        assert_eq!(config.shown_url(), "redis+sentinel://***@h1:7000,[::1],H3/orders/2");
        assert!(!format!("{config:?}").contains("same"));
    }

    #[test]
    fn tables_of_sentinels_are_read_like_urls() {
        let read = |text: &str| serde_json::from_str::<SentinelTable>(text).unwrap().into_url();
        let text = r#"{"nodes":["h1","h2:7000"],"master":"orders","database":2,"username":"app","password":"se@same"}"#;
        let (url, ..) = read(text).unwrap();
        assert_eq!(url.servers.as_str(), "redis://app:se%40same@primary/2");
        assert_eq!(url.shown, "redis+sentinel://h1,h2:7000/orders/2");
        let (url, username, password) =
            read(r#"{"nodes":["h1"],"master":"orders","sentinel_username":"s","sentinel_password":"g","ssl":true}"#)
                .unwrap();
        assert_eq!(
            (url.servers.as_str(), username.as_deref(), password.as_deref()),
            ("rediss://primary/0", Some("s"), Some("g"))
        );
        let refused = read(r#"{"nodes":["app:sesame@h1"],"master":"orders"}"#).err().unwrap().to_string();
        assert!(refused.contains("fields of their own") && !refused.contains("sesame"), "{refused}");
        for bad in [r#"{"prefix":"p"}"#, r#"{"url":"redis://h","sentinel":{"nodes":["h"],"master":"m"}}"#] {
            let refused = serde_json::from_str::<RedisConfig>(bad).unwrap_err().to_string();
            assert!(refused.contains("exactly one of url and sentinel"), "{refused}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused_without_the_password() {
        for (url, expected) in [
            ("redis+sentinel://h1,h2", "\"redis+sentinel://h1,h2\" is not valid: it does not name the primary; write"),
            ("redis+sentinel://u:sesame@h1", "redis+sentinel://***@h1"),
            ("redis+sentinel://u:sesame@h1/", "it does not name the primary"),
            ("redis+sentinel://h1//2", "it does not name the primary"),
            ("redis+sentinel:///m", "it names no host"),
            ("redis+sentinel://h1,,h2/m", "it names no host"),
            ("redis+sentinel://u:sesame@h1:x/m", "port"),
            ("redis+sentinel://u:sesame/@h1/m", "it has an @ after the hosts"),
            ("redis+sentinel://u:sesame?@h1/m", "port"),
            ("redis+sentinel://u:12?sesame@h1/m", "\"redis+sentinel://...\""),
            ("redis+sentinel://h1/a%20b", "characters that sentinels do not accept"),
            ("redis+sentinel://u:sesame@h1/m/x", "its database is not a number"),
            ("redis+sentinel://u:sesame@h1/m/1/2", "its database is not a number"),
            ("redis+sentinel://h1/m?sentinel_pasword=sesame", ", sentinel_username, sentinel_password"),
            ("redis+sentinel://u:sesame@h1/m#x", "fragment"),
            ("redis://h1?sentinel_password=sesame", "its option \"sentinel_password\" is unknown"),
        ] {
            let refusal = refusal(url);
            assert!(refusal.contains(expected), "{url}: {refusal}");
            assert!(!refusal.contains("sesame"), "{refusal}");
        }
    }
}
