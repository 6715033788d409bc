//! What a Redis URL says.

use std::fmt;
use std::time::Duration;

use lock_core::{Invalid, Policy, Prefix, Ttl, parse_duration};
use redis::{ConnectionInfo, IntoConnectionInfo};
use serde::Deserialize;
use url::Url;

use crate::address::{SentinelTable, SentinelUrl};
use crate::classify::words;
use crate::cluster::{ClusterTable, ClusterUrl};
use crate::deployment::Deployment;
use crate::failover::{Failover, OnFailover};
use crate::query::{CLUSTER, Kind, ONE_SERVER, Own, SENTINELS, max_ttl, split_query};
use crate::replicas::{Copies, Fsync, Replicas};
use crate::url_parts::{
    Eviction, check_parts, check_scheme, eviction, named_redis, one_server, protocol, redacted, refuse,
};

/// Which Redis to use, and how.
///
/// Read from a URL, or from a table with `url`, `sentinel` or `cluster`, and `prefix`, `op_timeout`, `replicas`, `fsync`,
/// `failover` and `max_ttl`. `Debug` hides user and password.
///
/// ```
/// # use lock_redis::RedisConfig;
/// let config = RedisConfig::from_url("redis://app:sesame@127.0.0.1:6379/2?prefix=shop&op_timeout=500ms")?;
/// assert_eq!(config.prefix(), Some("shop"));
/// assert!(!format!("{config:?}").contains("sesame"));
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(with = "Table", description = "One Redis, the primary that sentinels name, or a cluster.")
)]
#[serde(try_from = "Table")]
#[non_exhaustive]
pub struct RedisConfig {
    server: ConnectionInfo,
    deployment: Deployment,
    shown: String,
    prefix: Prefix,
    op_timeout: Option<Duration>,
    eviction: Eviction,
    replicas: Option<Replicas>,
    fsync: Option<Fsync>,
    failover: Failover,
}

/// The form of the configuration in a file.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = lock_core::schema::ExactlyOneOf(&["url", "sentinel", "cluster"])))]
#[serde(deny_unknown_fields)]
struct Table {
    /// The server as a URL. An option in its query must not be a field of this table as well.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = r"^((redis|valkey)s?(\+sentinel|\+cluster)?|(redis|valkey)\+unix|unix)://")))]
    url: Option<String>,
    /// The sentinels that name the server.
    sentinel: Option<SentinelTable>,
    /// The cluster that keeps the locks.
    cluster: Option<ClusterTable>,
    #[cfg_attr(feature = "schema", schemars(with = "Option<Prefix>"))]
    prefix: Option<String>,
    /// How long one request may take.
    #[serde(default, with = "lock_core::human_duration::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<lock_core::schema::PositiveDuration>"))]
    op_timeout: Option<Duration>,
    /// How many replicas have to acknowledge each grant and each renewal.
    replicas: Option<Replicas>,
    /// Whether each grant and each renewal has to be on disk before it counts.
    fsync: Option<Fsync>,
    /// What to do with free locks if the server may have forgotten leases.
    failover: Option<OnFailover>,
    /// The longest ttl that clients may ask for; the same for all clients.
    max_ttl: Option<Ttl>,
}

impl RedisConfig {
    /// Reads `redis://`, `rediss://` (or `valkey://`, `valkeys://`), `redis+unix://`, `unix://`, `redis+sentinel://`,
    /// `rediss+sentinel://`, `redis+cluster://` or `rediss+cluster://`. Options are in the query: `prefix` is put before all lock
    /// names, `op_timeout=500ms` limits each request, and the others are:
    ///
    /// `eviction=allow` silences the warning about a server whose `maxmemory-policy` may drop held locks.
    ///
    /// `replicas=2` is for a server with replicas, one of which may replace it: a grant or a renewal counts once so many of
    /// them have acknowledged it. With fewer, nobody is granted a lock, and holders lose theirs when their leases end.
    ///
    /// `fsync=wait` is for a power failure: a grant or a renewal counts once the server has written it to disk, and with `replicas=2`
    /// two of its replicas as well. It needs Redis 7.2 or Valkey, `appendonly yes`, and best `appendfsync always`: with `everysec`, a
    /// request may take more than a second, so give it more time with `op_timeout`.
    ///
    /// `failover=dwell` takes no free lock from a server that may have forgotten leases, because it was promoted, was restarted or
    /// lost its data, until the longest of those leases and ten seconds have passed. Ttls are then limited to `max_ttl`, 60 s unless
    /// it is set; give it to all clients alike. The default is `failover=grant`, but `failover=dwell` with sentinels and in a
    /// cluster. `docs/book/src/guarantees.md` says what either means.
    ///
    /// `protocol=resp2` is for servers and proxies whose support of RESP3 is faulty: waiters of a tokio client then
    /// poll every 50 to 100 ms instead of being notified. A server without RESP3 is detected. Plain threads are
    /// notified over a separate subscription, for which RESP2 is enough.
    ///
    /// Tokio clients send all requests over one connection. The threads of a blocking client share up to eight, which
    /// are made as they are needed. Both have another one or a few for renewals, and threads one for notifications.
    ///
    /// The URL of a socket may also have `db`, `user` and `pass` in its query. `rediss://` needs the feature `tls`.
    ///
    /// `redis+sentinel://HOST:PORT,HOST:PORT,HOST:PORT/NAME/DB` leads to the primary that these sentinels know by this name. User and
    /// password in front of the hosts are for the servers; `sentinel_username` and `sentinel_password` in the query are for the
    /// sentinels. `rediss+sentinel://` uses TLS for both. After a fail-over, all connections move to the new primary. A table has
    /// `sentinel` instead of `url`, with `nodes`, `master`, `database`, `username`, `password`, `sentinel_username`,
    /// `sentinel_password` and `ssl`.
    ///
    /// `redis+cluster://HOST:PORT,HOST:PORT` leads to a cluster. A few of its servers are enough: they name the others. User and
    /// password in front of the hosts are for all servers. With `rediss+cluster://`, the servers have to announce the host names that are
    /// in their certificates (`cluster-preferred-endpoint-type hostname`). Clients that take locks of several stores at once should list the same
    /// servers: the list is what tells one cluster from another. A table has `cluster` instead of `url`, with `nodes`, `username`,
    /// `password` and `ssl`.
    ///
    /// # Errors
    /// `Invalid`, without user and password, for anything else.
    pub fn from_url(url: &str) -> Result<Self, Invalid> {
        let url = &*named_redis(url);
        if let Some(deployment) = SentinelUrl::read(url) {
            return Self::of_sentinels(deployment?, None, None);
        }
        if let Some(deployment) = ClusterUrl::read(url) {
            return Self::of_cluster(deployment?);
        }
        let parsed = one_server(url)?;
        let shown = redacted(&parsed);
        Self::read(&parsed, shown, &ONE_SERVER).map(|(config, _)| config)
    }

    fn of_sentinels(url: SentinelUrl, username: Option<String>, password: Option<String>) -> Result<Self, Invalid> {
        let (mut config, own) = Self::read(&url.servers, url.shown.clone(), &SENTINELS)?;
        let login = (own.sentinel_username.or(username), own.sentinel_password.or(password));
        config.deployment = Deployment::Sentinels(url.sentinels(&config.server, login.0, login.1)?);
        Ok(config)
    }

    fn of_cluster(url: ClusterUrl) -> Result<Self, Invalid> {
        let (config, _) = Self::read(&url.servers, url.shown, &CLUSTER)?;
        Ok(Self { deployment: Deployment::Cluster(url.seeds), ..config })
    }

    fn read(parsed: &Url, shown: String, kind: &Kind) -> Result<(Self, Own), Invalid> {
        check_scheme(parsed, &shown)?;
        let (own, rest) = split_query(parsed, &shown, kind.options)?;
        check_parts(&rest, &shown)?;
        let server = rest
            .into_connection_info()
            .map_err(|error| refuse(&shown, words(&error), "write redis://USER:PASSWORD@HOST:PORT/DB"))?;
        let protocol = protocol(own.protocol.as_deref())?;
        let eviction = eviction(own.eviction.as_deref())?;
        let replicas = own.replicas.as_deref().map(Replicas::parse).transpose()?;
        let fsync = own.fsync.as_deref().map(Fsync::parse).transpose()?;
        let chosen = own.failover.as_deref().map(OnFailover::read).transpose()?;
        let max_ttl = own.max_ttl.as_deref().map(max_ttl).transpose()?;
        let failover =
            Failover::by_default(kind.on_failover).with(chosen, max_ttl).map_err(|what| twice(&shown, what))?;
        let redis = server.redis_settings().clone().set_protocol(protocol);
        let server = server.set_redis_settings(redis);
        let prefix = own.prefix.as_deref().map(str::parse).transpose()?.unwrap_or_default();
        let op_timeout = own.op_timeout.as_deref().map(|text| parse_duration("op_timeout", text)).transpose()?;
        let (op_timeout, deployment) = (Policy::check_op_timeout(op_timeout)?, Deployment::OneServer);
        Ok((Self { server, deployment, shown, prefix, op_timeout, eviction, replicas, fsync, failover }, own))
    }

    /// The prefix of lock names, if there is one.
    pub fn prefix(&self) -> Option<&str> {
        self.prefix.as_deref()
    }

    /// How long one request may take, if the URL sets it.
    pub fn op_timeout(&self) -> Option<Duration> {
        self.op_timeout
    }

    /// The URL without user, password and query, for messages.
    pub fn shown_url(&self) -> &str {
        &self.shown
    }

    pub(crate) fn server(&self) -> &ConnectionInfo {
        &self.server
    }

    /// How the servers are found. Unless there is one, the address of [`server`](Self::server) means nothing.
    pub(crate) fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    /// Whether these are the servers of a cluster.
    pub fn is_cluster(&self) -> bool {
        matches!(self.deployment, Deployment::Cluster(_))
    }

    /// What to do with free locks if the server may have forgotten leases.
    pub fn on_failover(&self) -> OnFailover {
        self.failover.on()
    }

    /// The longest ttl: longer ones are refused. `None` if any ttl is allowed.
    pub fn max_ttl(&self) -> Option<Duration> {
        self.failover.max_ttl()
    }

    pub(crate) fn without_prefix(self) -> Self {
        Self { prefix: Prefix::default(), ..self }
    }

    pub(crate) fn failover(&self) -> Failover {
        self.failover
    }

    pub(crate) fn eviction(&self) -> Eviction {
        self.eviction
    }

    /// Who must have each grant and each renewal before it counts, if not the server alone.
    pub(crate) fn copies(&self) -> Option<Copies> {
        Copies::of(self.replicas, self.fsync)
    }

    pub(crate) fn own_prefix(&self) -> &Prefix {
        &self.prefix
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("url", &self.shown)
            .field("prefix", &self.prefix())
            .field("op_timeout", &self.op_timeout)
            .field("replicas", &self.replicas)
            .field("fsync", &self.fsync)
            .field("failover", &self.on_failover())
            .field("max_ttl", &self.max_ttl())
            .finish()
    }
}

impl TryFrom<Table> for RedisConfig {
    type Error = Invalid;

    fn try_from(table: Table) -> Result<Self, Invalid> {
        let mut config = match (table.url, table.sentinel, table.cluster) {
            (Some(url), None, None) => Self::from_url(&url)?,
            (None, Some(sentinel), None) => {
                let (url, username, password) = sentinel.into_url()?;
                Self::of_sentinels(url, username, password)?
            }
            (None, None, Some(cluster)) => Self::of_cluster(cluster.into_url()?)?,
            (url, sentinel, cluster) => {
                let given = [("url", url.is_some()), ("sentinel", sentinel.is_some()), ("cluster", cluster.is_some())];
                return Err(not_one(given));
            }
        };
        let given_twice = [
            ("prefix", table.prefix.is_some() && config.prefix().is_some()),
            ("op_timeout", table.op_timeout.is_some() && config.op_timeout.is_some()),
            ("replicas", table.replicas.is_some() && config.replicas.is_some()),
            ("fsync", table.fsync.is_some() && config.fsync.is_some()),
        ];
        if let Some((what, _)) = given_twice.into_iter().find(|(_, is_twice)| *is_twice) {
            return Err(twice(&config.shown, what));
        }
        let failover = config.failover.with(table.failover, table.max_ttl);
        config.failover = failover.map_err(|what| twice(&config.shown, what))?;
        if let Some(prefix) = table.prefix {
            config.prefix = prefix.parse()?;
        }
        config.op_timeout = Policy::check_op_timeout(table.op_timeout.or(config.op_timeout))?;
        config.replicas = table.replicas.or(config.replicas);
        config.fsync = table.fsync.or(config.fsync);
        Ok(config)
    }
}

/// Where the locks are is missing, or said more than once.
fn not_one(given: [(&str, bool); 3]) -> Invalid {
    let given: Vec<_> = given.into_iter().filter(|(_, is_given)| *is_given).map(|(field, _)| field).collect();
    let shown = if given.is_empty() { "(no server)".to_owned() } else { given.join(", ") };
    Invalid::new("redis configuration", shown, "exactly one of url, sentinel and cluster is needed", "give one of them")
}

fn twice(shown: &str, what: &str) -> Invalid {
    refuse(shown, format!("{what} is given in the URL and beside it"), "give it once")
}

#[cfg(test)]
mod tests {
    use redis::ConnectionAddr;

    use super::*;

    #[test]
    fn urls_are_read_in_full() {
        let config =
            RedisConfig::from_url("redis://app:se%23same@127.0.0.1:7000/2?prefix=shop&op_timeout=500ms").unwrap();
        assert_eq!(config.server().addr(), &ConnectionAddr::Tcp("127.0.0.1".into(), 7000));
        assert_eq!(config.server().redis_settings().password(), Some("se#same"));
        assert_eq!(config.server().redis_settings().db(), 2);
        assert_eq!((config.prefix(), config.op_timeout()), (Some("shop"), Some(Duration::from_millis(500))));
        let socket = RedisConfig::from_url("redis+unix:///run/redis.sock?db=3&pass=sesame&prefix=a").unwrap();
        assert_eq!(socket.server().addr(), &ConnectionAddr::Unix("/run/redis.sock".into()));
        assert_eq!(socket.server().redis_settings().db(), 3);
        assert_eq!(RedisConfig::from_url("redis://127.0.0.1").unwrap().prefix(), None);
    }

    #[test]
    fn what_is_wrong_is_refused_without_the_password() {
        for (url, expected) in [
            (
                "redis://u:sesame@h:6379/?pre_fix=a",
                "its option \"pre_fix\" is unknown; allowed: prefix, op_timeout, protocol, eviction, replicas, fsync, failover, max_ttl",
            ),
            ("redis://u:sesame@h/?db=1", "its option \"db\" is unknown"),
            ("redis://sesame@h/x", "\"redis://***@h/x\" is not valid"),
            ("redis://h/x", "\"redis://h/x\" is not valid"),
            ("redis://u:sesame@h/?prefix=a&prefix=b", "given twice"),
            ("redis://u:sesame@h/?op_timeout=soon", "op_timeout"),
            ("redis://u:sesame@h/?op_timeout=0s", "op_timeout"),
            ("redis://u:sesame@h/?protocol=3", "write resp2"),
            ("redis://u:sesame@h/?eviction=no", "write allow"),
            ("redis://u:sesame@h/?replicas=0", "it is not a number from 1"),
            ("redis://u:sesame@h/?fsync=yes", "write wait"),
            ("redis://u:sesame@h/?failover=wait", "write dwell or grant"),
            ("redis://u:sesame@h/?max_ttl=soon", "max_ttl \"soon\" is not valid"),
            ("redis://u:sesame@h/?prefix=leasehold", "reserved"),
            ("redis://u:sesame@h/x", "its database is not a number; write redis://HOST/NUMBER"),
            ("redis://u:sesame@h/-1", "not a number"),
            ("unix:///run/redis.sock?pass=sesame&db=x", "write ?db=NUMBER"),
            (
                "redis://u:sesame@h1:7711,h2:7712/mymaster",
                "it names several hosts, and this is the URL of one server; write redis+s",
            ),
            ("redis://h1,h2", "redis+cluster://HOST,HOST"),
            ("unix://redis.sock", "write unix:///PATH"),
            (
                "redis://",
                "names no host; write redis://HOST, such as redis://127.0.0.1; user, password, port and database",
            ),
            ("redis:///", "names no host"),
            ("redis://:6379", "names no host"),
            ("redis://u:sesame@/1", "names no host"),
            ("redis://:sesame/2@h", "write / in a password as %2F"),
            ("redis://u:sesame?2@h", "? as %3F and # as %23"),
            ("redis://:sesame#2@h", "a character that ends the host"),
            ("redis://u:sesame@0.0.0.0", "wildcard address"),
            ("redis://u:sesame@h:port/", "port"),
            ("redis://u:sesame@h/#insecure", "fragment"),
            ("http://u:sesame@h/", "scheme"),
            ("u:sesame@h", "scheme"),
            ("redis:u:sesame@h", "hidden"),
            ("redis://u:/sesame@h", "\"redis://...\" is not valid"),
            ("redis:/u:sesame", "\"(hidden)\" is not valid"),
            ("redis://u:12?sesame=1@h", "it has an unknown option"),
            ("redis+unix://u/sesame@h", "it names a host"),
            ("unix:///run/redis.sock?pass=a&sesame=b", "write ? as %3F, and & as %26"),
            ("redis://h:1?ses@same", "unknown option"),
            ("sesame", "hidden"),
            (
                "unix:///run/redis.sock?pass=sesame&passs=sesame",
                "allowed: prefix, op_timeout, protocol, eviction, replicas, fsync, failover, max_ttl, db, user, pass",
            ),
        ] {
            let refusal = RedisConfig::from_url(url).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{url}: {refusal}");
            assert!(!refusal.contains("sesame") && !refusal.contains("Config"), "{refusal}");
        }
    }

    #[test]
    #[cfg(not(feature = "tls"))]
    fn tls_is_refused_where_it_was_not_built_in() {
        let refusal = RedisConfig::from_url("rediss://:sesame@h").unwrap_err().to_string();
        assert_eq!(
            refusal,
            "redis URL \"rediss://***@h\" is not valid: this build has no TLS; \
             build with the feature \"tls\", or use redis:// on a trusted network"
        );
    }

    #[test]
    fn tables_are_read_like_urls() {
        let read = |text: &str| serde_json::from_str::<RedisConfig>(text);
        let config = read(r#"{"url":"redis://:sesame@h","prefix":"shop","op_timeout":"1s"}"#).unwrap();
        assert_eq!((config.prefix(), config.op_timeout()), (Some("shop"), Some(Duration::from_secs(1))));
        assert_eq!(read(r#"{"url":"redis://h","replicas":2}"#).unwrap().copies().unwrap().replicas(), 2);
        let on_disk = read(r#"{"url":"redis://h","fsync":"wait"}"#).unwrap().copies().unwrap();
        assert_eq!((on_disk.replicas(), on_disk.fsync()), (0, Some(Fsync::Wait)));
        assert!(!format!("{config:?}").contains("sesame"));
        let dwelling = read(r#"{"url":"redis://h?max_ttl=6s","failover":"dwell"}"#).unwrap();
        assert_eq!((dwelling.on_failover(), dwelling.max_ttl()), (OnFailover::Dwell, Some(Duration::from_secs(6))));
        assert_eq!((config.on_failover(), config.max_ttl()), (OnFailover::Grant, None));
        for bad in [
            r#"{"url":"redis://h?failover=dwell","failover":"dwell"}"#,
            r#"{"url":"redis://h","failover":"maybe"}"#,
            r#"{"url":"redis://h","prefx":"shop"}"#,
            r#"{"url":"redis://h?prefix=a","prefix":"b"}"#,
            r#"{"url":"redis://h?op_timeout=1s","op_timeout":"2s"}"#,
            r#"{"url":"redis://h?replicas=1","replicas":2}"#,
            r#"{"url":"redis://h","replicas":0}"#,
            r#"{"url":"redis://h?fsync=wait","fsync":"wait"}"#,
            r#"{"url":"redis://h","fsync":"no"}"#,
            r#"{"url":"redis://:sesame@h/x"}"#,
        ] {
            assert!(!read(bad).unwrap_err().to_string().contains("sesame"), "{bad}");
        }
    }
}
