//! Where the sentinels are that name a primary: a URL, or a table of a configuration file.

use lock_core::Invalid;
use redis::{ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};
use serde::Deserialize;
use url::Url;

use crate::hosts::{Form, Hosts, at, listed, log_in};
use crate::url_parts::refuse;

const FORM: Form = Form {
    remedy: "write redis+sentinel://HOST:PORT,HOST:PORT,HOST:PORT/NAME/DB, with the name of the primary",
    node: "a sentinel",
    port: 26379,
};

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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct SentinelTable {
    /// The sentinels, each as HOST or HOST:PORT.
    #[cfg_attr(feature = "schema", schemars(length(min = 1), inner(regex(pattern = "^[^@?#/]+$"))))]
    nodes: Vec<String>,
    /// The name under which the sentinels know the primary.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[A-Za-z0-9._-]+$")))]
    master: String,
    /// The number of the database.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("maximum" = u32::MAX)))]
    database: u32,
    /// The user at the servers.
    username: Option<String>,
    /// The password of the servers.
    password: Option<String>,
    /// The user at the sentinels.
    sentinel_username: Option<String>,
    /// The password of the sentinels.
    sentinel_password: Option<String>,
    /// Whether to use TLS, for the servers and the sentinels.
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
        let all = Hosts::of(scheme, rest, &FORM)?;
        let nodes = all.nodes()?;
        let names = all.path.strip_prefix('/').unwrap_or(all.path).trim_end_matches('/');
        let (master, database) = names.split_once('/').unwrap_or((names, ""));
        let (servers, shown) = (all.server(servers, database)?, all.shown());
        check_master(master, &shown)?;
        if !database.is_empty() && database.parse::<u32>().is_err() {
            return Err(refuse(&shown, "its database is not a number", FORM.remedy));
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
        let nodes = nodes.map_err(|_| refuse(&self.shown, "an address is not usable", FORM.remedy))?;
        Ok(Sentinels { nodes, master: self.master })
    }
}

impl SentinelTable {
    /// The URL that says the same, and the login for the sentinels. The URL holds the secrets.
    pub(crate) fn into_url(self) -> Result<(SentinelUrl, Option<String>, Option<String>), Invalid> {
        let servers = if self.ssl { "rediss" } else { "redis" };
        let scheme = format!("{servers}+sentinel");
        let place = listed(&scheme, &self.nodes, &format!("/{}/{}", self.master, self.database))?;
        let mut url = SentinelUrl::taken_apart(&scheme, servers, &place)?;
        log_in(&mut url.servers, &url.shown, self.username.as_deref(), self.password.as_deref())?;
        Ok((url, self.sentinel_username, self.sentinel_password))
    }
}

/// Sentinels accept no other names, and so none of them needs an escape.
fn check_master(master: &str, shown: &str) -> Result<(), Invalid> {
    if master.is_empty() {
        return Err(refuse(shown, "it does not name the primary", FORM.remedy));
    }
    if !master.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
        return Err(refuse(shown, "the name of the primary has characters that sentinels do not accept", FORM.remedy));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redis::ConnectionAddr;

    use crate::RedisConfig;
    use crate::deployment::Deployment;

    use super::*;

    const PORT: u16 = FORM.port;

    fn sentinels(config: &RedisConfig) -> &Sentinels {
        let Deployment::Sentinels(sentinels) = config.deployment() else { panic!("{config:?}") };
        sentinels
    }

    fn refusal(url: &str) -> String {
        RedisConfig::from_url(url).map(|config| config.shown_url().to_owned()).unwrap_err().to_string()
    }

    #[test]
    fn urls_of_sentinels_are_read_in_full() {
        let config = RedisConfig::from_url(
            "redis+sentinel://app:se%23same@h1:7000,[::1],H3/orders/2?sentinel_username=s&sentinel_password=g%40&prefix=p&op_timeout=1s",
        )
        .unwrap();
        let (sentinels, server) = (sentinels(&config), config.server().redis_settings());
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
        for (bad, given) in [
            (r#"{"prefix":"p"}"#, "(no server)"),
            (r#"{"url":"redis://h","sentinel":{"nodes":["h"],"master":"m"}}"#, "url, sentinel"),
        ] {
            let refused = serde_json::from_str::<RedisConfig>(bad).unwrap_err().to_string();
            let expected =
                format!("redis configuration \"{given}\" is not valid: exactly one of url, sentinel and cluster");
            assert!(refused.contains(&expected), "{refused}");
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
            ("redis+sentinel://h1/m?sentinel_password=a&sesame", "write ? as %3F, and & as %26"),
            ("redis://h1?sentinel_password=sesame", "its option \"sentinel_password\" is unknown"),
        ] {
            let refusal = refusal(url);
            assert!(refusal.contains(expected), "{url}: {refusal}");
            assert!(!refusal.contains("sesame"), "{refusal}");
        }
    }
}
