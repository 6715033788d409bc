//! What a Redis URL says.

mod scheme;
mod settings;
mod tables;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use lock_core::{Invalid, Policy, Prefix, StoreUrl, Ttl};
use serde::Deserialize;

use crate::deployment::Deployment;
use crate::failover::{Failover, OnFailover};
use crate::replicas::{Copies, Fsync, Replicas};
use scheme::Scheme;
use settings::{check_options, duration, eviction, fsync, protocol};
use tables::{ClusterTable, SentinelTable};

pub(crate) use scheme::Servers;
pub(crate) use settings::Eviction;

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
    pub(crate) servers: Servers,
    shown: String,
    pub(crate) prefix: Prefix,
    op_timeout: Option<Duration>,
    pub(crate) eviction: Eviction,
    replicas: Option<Replicas>,
    fsync: Option<Fsync>,
    pub(crate) failover: Failover,
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
    /// cluster. `docs/book/src/stores/high-availability.md` says what either means.
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
        Self::of(&read(url)?)
    }

    fn of(url: &StoreUrl) -> Result<Self, Invalid> {
        let scheme = Scheme::of(url.scheme())?;
        check_options(url, scheme)?;
        let mut servers = (scheme.read)(url)?;
        let redis = servers.server.redis_settings().clone().set_protocol(protocol(url)?);
        servers.server = servers.server.set_redis_settings(redis);
        let on_failover = settings::on_failover(url)?.unwrap_or(scheme.on_failover);
        let max_ttl = duration(url, "max_ttl")?.map(Ttl::new).transpose()?;
        Ok(Self {
            servers,
            shown: url.shown().to_owned(),
            prefix: url.option("prefix").map(str::parse).transpose()?.unwrap_or_default(),
            op_timeout: Policy::check_op_timeout(duration(url, "op_timeout")?)?,
            eviction: eviction(url)?,
            replicas: url.option("replicas").map(Replicas::parse).transpose()?,
            fsync: fsync(url)?,
            failover: Failover::new(on_failover, max_ttl),
        })
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

    /// Whether these are the servers of a cluster.
    pub fn is_cluster(&self) -> bool {
        self.servers.deployment == Deployment::Cluster
    }

    /// What to do with free locks if the server may have forgotten leases.
    pub fn on_failover(&self) -> OnFailover {
        self.failover.on()
    }

    /// The longest ttl: longer ones are refused. `None` if any ttl is allowed.
    pub fn max_ttl(&self) -> Option<Duration> {
        self.failover.max_ttl()
    }

    pub(crate) fn under(self, prefix: Prefix) -> Self {
        Self { prefix, ..self }
    }

    /// Who must have each grant and each renewal before it counts, if not the server alone.
    pub(crate) fn copies(&self) -> Option<Copies> {
        Copies::of(self.replicas, self.fsync)
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
        let url = match (table.url, table.sentinel, table.cluster) {
            (Some(url), None, None) => read(&url)?,
            (None, Some(sentinel), None) => sentinel.into_url()?,
            (None, None, Some(cluster)) => cluster.into_url()?,
            (url, sentinel, cluster) => {
                let given = [("url", url.is_some()), ("sentinel", sentinel.is_some()), ("cluster", cluster.is_some())];
                return Err(not_one(given));
            }
        };
        let shown = |duration| humantime::format_duration(duration).to_string();
        let url = url
            .with_option("prefix", table.prefix)
            .with_option("op_timeout", table.op_timeout.map(shown))
            .with_option("replicas", table.replicas.map(|replicas| replicas.to_string()))
            .with_option("fsync", table.fsync.map(|Fsync::Wait| "wait".to_owned()))
            .with_option("failover", table.failover.map(|on| on.to_string()))
            .with_option("max_ttl", table.max_ttl.map(|longest| shown(longest.get())));
        Self::of(&url)
    }
}

/// The URL of a Valkey is read as that of a Redis.
fn read(url: &str) -> Result<StoreUrl, Invalid> {
    let name = "valkey";
    let url = match url.split_at_checked(name.len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case(name) => Cow::from(format!("redis{rest}")),
        Some(_) | None => url.into(),
    };
    StoreUrl::read(&url, Scheme::of(&StoreUrl::scheme_of(&url))?.form)
}

/// Where the locks are is missing, or said more than once.
fn not_one(given: [(&str, bool); 3]) -> Invalid {
    let given: Vec<_> = given.into_iter().filter(|(_, is_given)| *is_given).map(|(field, _)| field).collect();
    let shown = if given.is_empty() { "(no server)".to_owned() } else { given.join(", ") };
    Invalid::new("redis configuration", shown, "exactly one of url, sentinel and cluster is needed", "give one of them")
}

#[cfg(test)]
mod tests;
