//! The redlock URL: which nodes, and their common settings.

mod node_url;

use std::time::Duration;

use lock_core::{Invalid, Policy, Prefix, Reach, StoreConfig, StoreUrl, Ttl, parse_duration};
use serde::Deserialize;

use crate::DEFAULT_MAX_TTL;
use node_url::{FORM, check_hosts, refuse};

pub use node_url::NodeUrl;

/// Which nodes, and how they are used.
///
/// Read from a URL, or from a table with `nodes` (their URLs), `max_ttl`, `prefix` and `op_timeout`. `Debug` hides
/// users and passwords.
///
/// ```
/// # use lock_redlock::RedlockConfig;
/// let config = RedlockConfig::from_url("redlock://:sesame@a:7001,b:7002,c:7003/1?max_ttl=2m")?;
/// let addresses: Vec<_> = config.nodes().iter().map(|node| node.address()).collect();
/// assert_eq!(addresses, ["a:7001/1", "b:7002/1", "c:7003/1"]);
/// assert!(!format!("{config:?}").contains("sesame"));
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "Table", description = "A quorum of independent Redis servers."))]
#[serde(try_from = "Table")]
#[non_exhaustive]
pub struct RedlockConfig {
    nodes: Vec<NodeUrl>,
    max_ttl: Ttl,
    prefix: Option<String>,
    op_timeout: Option<Duration>,
}

/// The form of the configuration in a file.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("oneOf" = [
    {
        "required": ["url"],
        "properties": {
            "url": { "not": { "type": "null" } },
            "nodes": { "maxItems": 0 },
            "max_ttl": { "type": "null" },
            "prefix": { "type": "null" },
            "op_timeout": { "type": "null" },
        },
    },
    { "required": ["nodes"], "properties": { "nodes": { "minItems": 3 }, "url": { "type": "null" } } },
])))]
#[serde(deny_unknown_fields)]
struct Table {
    /// All of it as a URL: `redlock://HOST:PORT,HOST:PORT,HOST:PORT/DB`. Then there is no other field.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^redlock://")))]
    url: Option<String>,
    /// The servers, three or five, each as a URL or as HOST:PORT.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("uniqueItems" = true)))]
    nodes: Vec<String>,
    /// The longest ttl that clients may ask for; the same for all clients.
    max_ttl: Option<Ttl>,
    #[cfg_attr(feature = "schema", schemars(with = "Option<Prefix>"))]
    prefix: Option<String>,
    /// How long one request may take.
    #[serde(default, with = "lock_core::human_duration::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<lock_core::schema::PositiveDuration>"))]
    op_timeout: Option<Duration>,
}

impl RedlockConfig {
    /// Reads `redlock://HOST:PORT,HOST:PORT,HOST:PORT/DB`, or `redlock://?node=URL&node=URL&node=URL` if nodes differ
    /// in their passwords, databases or TLS; with `max_ttl`, `prefix` and `op_timeout` in the query.
    ///
    /// A user and password before the first host apply to all nodes. In a node's URL, write `&` as `%26` and `#` as
    /// `%23`.
    ///
    /// # Errors
    /// `Invalid`, without users and passwords, for anything else; also for fewer than three nodes, or for one that is listed
    /// twice.
    pub fn from_url(url: &str) -> Result<Self, Invalid> {
        if StoreUrl::scheme_of(url) != "redlock" {
            return Err(refuse("its scheme is not redlock://", FORM.remedy));
        }
        let parsed = StoreUrl::read(url, FORM)?;
        parsed.check_options(&["node"], &["max_ttl", "prefix", "op_timeout"])?;
        let listed = parsed.hosts().iter().map(|host| parsed.of_host("redis", host));
        Self::try_from(Table {
            url: None,
            nodes: listed.chain(parsed.all("node").map(str::to_owned)).collect(),
            max_ttl: parsed.option("max_ttl").map(str::parse).transpose()?,
            prefix: parsed.option("prefix").map(str::to_owned),
            op_timeout: parsed.option("op_timeout").map(|text| parse_duration("op_timeout", text)).transpose()?,
        })
    }

    /// The nodes, in the order in which they are named.
    pub fn nodes(&self) -> &[NodeUrl] {
        &self.nodes
    }

    /// The longest ttl that clients may ask for.
    pub fn max_ttl(&self) -> Ttl {
        self.max_ttl
    }

    /// The prefix of lock names, if there is one.
    pub fn prefix(&self) -> Option<&str> {
        self.prefix.as_deref()
    }

    /// How long one request may take, if the URL sets it.
    pub fn op_timeout(&self) -> Option<Duration> {
        self.op_timeout
    }
}

impl StoreConfig for RedlockConfig {
    fn from_url(url: &str) -> Result<Self, Invalid> {
        Self::from_url(url)
    }

    fn shown(&self) -> String {
        let nodes: Vec<_> = self.nodes.iter().map(|node| node.address().to_string()).collect();
        format!("redlock://{}", nodes.join(","))
    }

    fn reach(&self) -> Reach {
        Reach::Network
    }

    fn promise(&self) -> String {
        let longest = self.max_ttl;
        format!("at most one holder, even if a minority of nodes fails or forgets; the longest ttl is {longest}")
    }

    fn op_timeout(&self) -> Option<Duration> {
        self.op_timeout
    }

    fn longest_ttl(&self) -> Option<Ttl> {
        Some(self.max_ttl)
    }
}

impl TryFrom<Table> for RedlockConfig {
    type Error = Invalid;

    fn try_from(table: Table) -> Result<Self, Invalid> {
        if let Some(url) = &table.url {
            if table.nodes.is_empty() && table.max_ttl.is_none() && table.prefix.is_none() && table.op_timeout.is_none()
            {
                return Self::from_url(url);
            }
            return Err(refuse(
                "there are settings next to it",
                "write all of them in the URL, or all of them next to `nodes`",
            ));
        }
        if let Some(prefix) = &table.prefix {
            prefix.parse::<Prefix>()?;
        }
        let prefix = table.prefix.as_deref();
        let nodes = table.nodes.iter().map(|url| NodeUrl::new(url, prefix)).collect::<Result<Vec<_>, _>>()?;
        if nodes.len() < 3 {
            let problem = format!("it names {} node(s), and a quorum needs at least three", nodes.len());
            return Err(refuse(problem, "name three or five independent servers; for one, use its own URL"));
        }
        for (index, node) in nodes.iter().enumerate() {
            if nodes[..index].iter().any(|other| other.address() == node.address()) {
                return Err(refuse(format!("it names {} twice", node.address()), "name each node once"));
            }
        }
        check_hosts(&nodes)?;
        let op_timeout = Policy::check_op_timeout(table.op_timeout)?;
        let max_ttl = table.max_ttl.map_or_else(|| Ttl::new(DEFAULT_MAX_TTL), Ok)?;
        Ok(Self { nodes, max_ttl, prefix: table.prefix, op_timeout })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(url: &str) -> Vec<String> {
        RedlockConfig::from_url(url).unwrap().nodes().iter().map(|node| node.address().to_owned()).collect()
    }

    #[test]
    fn both_forms_name_the_same_nodes() {
        let short = "redlock://u:p%40ss@a,b:7002,[fd00::1]:7003/2";
        let long = "redlock://?node=redis://u:x@A/2&node=rediss://b:7002/2&node=redis://[fd00::1]:7003/2";
        assert_eq!(addresses(short), ["a:6379/2", "b:7002/2", "[fd00::1]:7003/2"]);
        assert_eq!(addresses(short), addresses(long));
        let config = RedlockConfig::from_url(short).unwrap();
        assert_eq!(config.nodes()[1].url(), "redis://u:p%40ss@b:7002/2");
        assert_eq!(config.max_ttl().get(), DEFAULT_MAX_TTL);
    }

    #[test]
    fn options_belong_to_all_nodes() {
        let config = RedlockConfig::from_url("redlock://a,b,c?max_ttl=90s&prefix=shop&op_timeout=200ms").unwrap();
        assert_eq!(config.max_ttl().get(), Duration::from_secs(90));
        assert_eq!((config.prefix(), config.op_timeout()), (Some("shop"), Some(Duration::from_millis(200))));
        assert_eq!(config.nodes()[0].url(), "redis://a/?prefix=shop");
    }

    #[test]
    fn what_is_wrong_is_refused_without_the_password() {
        for (url, expected) in [
            ("redlock://:sesame@a,b", "2 node(s)"),
            ("redlock://", "0 node(s)"),
            ("redlock://:sesame@a,b,b:6379", "b:6379 twice"),
            ("redlock://:sesame@a,,b", "names no host"),
            ("redlock://:sesame@a,b,c?max_tl=1m", "option \"max_tl\" is unknown"),
            ("redlock://:ses/a?sesame=me@a,b,c", "? as %3F"),
            ("redlock://:sesame@a,b,c?max_ttl=1m&max_ttl=2m", "given twice"),
            ("redlock://:sesame@a,b,c?max_ttl=never", "never"),
            ("redlock://:sesame@a,b,c?op_timeout=0s", "op_timeout"),
            ("redlock://:sesame@a,b,c?prefix=leasehold", "reserved"),
            ("redlock://?node=redis://:sesame@a?prefix=x&node=redis://b&node=redis://c", "all nodes share"),
            ("redlock://?node=:sesame@&node=redis://b&node=redis://c", "node URL"),
            ("redlock://u:12?sesame=1&x@a,b,c", "write ? as %3F, and & as %26"),
            ("redlock://?node=redis//:sesame@a&node=b&node=c", "it has an @ after the hosts"),
            ("redlock://?node=a/x&node=b&node=c", "its database is not a number"),
            ("redlock://?node=redis::/1/:sesame@a&node=b&node=c", "it names no host"),
            ("redlock://?node=redis:///1&node=b&node=c", "it names no host"),
            ("redlock://:@sesame#@a,b,c", "write # in a password as %23"),
            ("redlock://?node=redis://:@sesame%23@a&node=b&node=c", "fragment"),
            ("redis://:sesame@a", "scheme"),
        ] {
            let refusal = RedlockConfig::from_url(url).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{url}: {refusal}");
            assert!(!refusal.contains("sesame"), "{refusal}");
        }
    }

    #[test]
    fn tables_are_read_like_urls() {
        let read = |text: &str| serde_json::from_str::<RedlockConfig>(text);
        let config = read(r#"{"nodes":["redis://a","redis://:sesame@b","redis://c"],"max_ttl":"1m"}"#).unwrap();
        assert_eq!((config.nodes().len(), config.max_ttl().as_millis()), (3, 60_000));
        assert!(!format!("{config:?}").contains("sesame"));
        assert!(read(r#"{"url":"redlock://a,b,c"}"#).is_ok());
        assert!(read(r#"{"url":"redlock://a,b,c","max_ttl":"1m"}"#).is_err());
        assert_eq!(read(r#"{"nodes":["a:1","b","c:3"]}"#).unwrap().nodes()[0].url(), "redis://a:1");
        assert!(read(r#"{"nodes":["redis://a"]}"#).unwrap_err().to_string().contains("three"));
    }
}
