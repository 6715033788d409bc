//! Where a cluster is: a URL, or a table of a configuration file.

use lock_core::Invalid;
use serde::Deserialize;
use url::Url;

use super::redirect::Address;
use crate::hosts::{Form, Hosts, listed, log_in};
use crate::url_parts::refuse;

const FORM: Form = Form {
    remedy: "write redis+cluster://HOST:PORT,HOST:PORT, with a few servers of the cluster",
    node: "a server of the cluster",
    port: 6379,
};

/// The servers of a cluster that are known from the start, in the order of asking.
#[derive(Clone)]
pub(crate) struct Seeds(pub(crate) Vec<Address>);

/// A URL of a cluster, taken apart.
pub(crate) struct ClusterUrl {
    /// The same for one server, whose host is not known yet.
    pub(crate) servers: Url,
    /// The URL without secrets and options.
    pub(crate) shown: String,
    pub(crate) seeds: Seeds,
}

/// A cluster in a configuration file.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterTable {
    /// A few of its servers, each as HOST or HOST:PORT. They name the others.
    #[cfg_attr(feature = "schema", schemars(length(min = 1), inner(regex(pattern = "^[^@?#/]+$"))))]
    nodes: Vec<String>,
    /// The user at all servers.
    username: Option<String>,
    /// The password at all servers.
    password: Option<String>,
    /// Whether to use TLS.
    #[serde(default)]
    ssl: bool,
}

impl ClusterUrl {
    /// Takes a URL apart if it is one of a cluster.
    pub(crate) fn read(url: &str) -> Option<Result<Self, Invalid>> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let servers = scheme.strip_suffix("+cluster")?;
        ["redis", "rediss"].contains(&servers).then(|| Self::taken_apart(&scheme, servers, rest))
    }

    fn taken_apart(scheme: &str, servers: &str, rest: &str) -> Result<Self, Invalid> {
        let all = Hosts::of(scheme, rest, &FORM)?;
        let (nodes, shown) = (all.nodes()?, all.shown());
        if !["", "/", "/0"].contains(&all.path) {
            let remedy = "write redis+cluster://HOST:PORT,HOST:PORT without a path, and use a prefix";
            return Err(refuse(&shown, "a cluster has no databases but 0", remedy));
        }
        let seeds = Seeds(nodes.into_iter().map(|(host, port)| Address { host, port }).collect());
        Ok(Self { servers: all.server(servers, "")?, shown, seeds })
    }
}

impl ClusterTable {
    /// The URL that says the same. It holds the secrets.
    pub(crate) fn into_url(self) -> Result<ClusterUrl, Invalid> {
        let servers = if self.ssl { "rediss" } else { "redis" };
        let scheme = format!("{servers}+cluster");
        let mut url = ClusterUrl::taken_apart(&scheme, servers, &listed(&scheme, &self.nodes, "")?)?;
        log_in(&mut url.servers, &url.shown, self.username.as_deref(), self.password.as_deref())?;
        Ok(url)
    }
}

impl Seeds {
    /// The cluster, as all clients with the same list of servers name it.
    pub(crate) fn store(&self) -> String {
        let mut all: Vec<_> = self.0.iter().map(Address::to_string).collect();
        all.sort();
        all.dedup();
        format!("redis+cluster://{}", all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::deployment::Deployment;
    use crate::{OnFailover, RedisConfig};

    use super::*;

    fn seeds(config: &RedisConfig) -> &Seeds {
        let Deployment::Cluster(seeds) = config.deployment() else { panic!("{config:?}") };
        seeds
    }

    fn refusal(url: &str) -> String {
        RedisConfig::from_url(url).map(|config| config.shown_url().to_owned()).unwrap_err().to_string()
    }

    #[test]
    fn urls_of_clusters_are_read_in_full() {
        let url = "redis+cluster://app:se%23same@h1:7000,[::1],H3/?prefix=p&op_timeout=1s&max_ttl=6s&replicas=1";
        let config = RedisConfig::from_url(url).unwrap();
        let (seeds, server) = (seeds(&config), config.server().redis_settings());
        let addresses: Vec<_> = seeds.0.iter().map(Address::to_string).collect();
        assert_eq!(addresses, ["h1:7000", "[::1]:6379", "h3:6379"]);
        assert_eq!(seeds.store(), "redis+cluster://[::1]:6379,h1:7000,h3:6379");
        assert_eq!((server.username(), server.password(), server.db()), (Some("app"), Some("se#same"), 0));
        assert_eq!((config.prefix(), config.op_timeout()), (Some("p"), Some(Duration::from_secs(1))));
        assert_eq!((config.on_failover(), config.max_ttl()), (OnFailover::Dwell, Some(Duration::from_secs(6))));
        assert_eq!(config.copies().unwrap().replicas(), 1);
        assert_eq!(config.shown_url(), "redis+cluster://***@h1:7000,[::1],H3/");
        assert!(!format!("{config:?}").contains("same"));
    }

    #[test]
    fn tables_of_clusters_are_read_like_urls() {
        let read = |text: &str| serde_json::from_str::<RedisConfig>(text);
        let text = r#"{"cluster":{"nodes":["h1","h2:7000"],"username":"app","password":"se@same"},"prefix":"p"}"#;
        let config = read(text).unwrap();
        assert_eq!(seeds(&config).store(), "redis+cluster://h1:6379,h2:7000");
        assert_eq!(config.server().redis_settings().password(), Some("se@same"));
        assert_eq!((config.prefix(), config.max_ttl()), (Some("p"), Some(Duration::from_secs(60))));
        for (bad, expected) in [
            (r#"{"cluster":{"nodes":["app:sesame@h1"]}}"#, "fields of their own"),
            (r#"{"cluster":{"nodes":[]}}"#, "it names no host"),
            (r#"{"cluster":{"nodes":["h1"],"database":1}}"#, "unknown field"),
            (r#"{"cluster":{"nodes":["h1"]},"url":"redis://h"}"#, "exactly one of url, sentinel and cluster"),
        ] {
            let refused = read(bad).unwrap_err().to_string();
            assert!(refused.contains(expected) && !refused.contains("sesame"), "{refused}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused_without_the_password() {
        for (url, expected) in [
            (
                "redis+cluster://u:sesame@h1,h2/1",
                "redis+cluster://***@h1,h2/1\" is not valid: a cluster has no databases",
            ),
            ("redis+cluster://", "it names no host"),
            ("redis+cluster://h1,,h2", "it names no host"),
            ("redis+cluster://u:sesame@h1:x", "the address of a server of the cluster is not valid"),
            ("redis+cluster://u:sesame/@h1", "it has an @ after the hosts"),
            ("redis+cluster://u:12?sesame@h1", "\"redis+cluster://...\""),
            ("redis+cluster://h1?sentinel_password=sesame", "its option \"sentinel_password\" is unknown"),
            ("redis+cluster://h1?replicas=0", "it is not a number from 1"),
            ("redis+cluster://u:sesame@h1#x", "fragment"),
        ] {
            let refusal = refusal(url);
            assert!(refusal.contains(expected), "{url}: {refusal}");
            assert!(!refusal.contains("sesame"), "{refusal}");
        }
    }

    #[test]
    #[cfg(not(feature = "tls"))]
    fn tls_is_refused_where_it_was_not_built_in() {
        assert!(refusal("rediss+cluster://h1").contains("this build has no TLS"));
    }
}
