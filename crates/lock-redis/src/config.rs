//! What a Redis URL says.

use std::fmt;
use std::time::Duration;

use lock_core::{Invalid, Prefix, Ttl, parse_duration};
use redis::{ConnectionInfo, IntoConnectionInfo};
use serde::Deserialize;
use url::Url;

use crate::address::{SentinelTable, SentinelUrl, Sentinels};
use crate::classify::words;
use crate::failover::{Failover, OnFailover};
use crate::replicas::Replicas;
use crate::url_parts::{
    Eviction, check_parts, check_scheme, eviction, is_socket, positive, protocol, redacted, refuse, unreadable,
};

/// Which Redis to use, and how.
///
/// Read from a URL, or from a table with `url` or `sentinel`, `prefix`, `op_timeout`, `replicas`, `failover` and `max_ttl`. `Debug` hides user
/// and password.
///
/// ```
/// # use lock_redis::RedisConfig;
/// let config = RedisConfig::from_url("redis://app:sesame@127.0.0.1:6379/2?prefix=shop&op_timeout=500ms")?;
/// assert_eq!(config.prefix(), Some("shop"));
/// assert!(!format!("{config:?}").contains("sesame"));
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Deserialize)]
#[serde(try_from = "Table")]
#[non_exhaustive]
pub struct RedisConfig {
    server: ConnectionInfo,
    sentinels: Option<Sentinels>,
    shown: String,
    prefix: Prefix,
    op_timeout: Option<Duration>,
    eviction: Eviction,
    replicas: Option<Replicas>,
    failover: Failover,
}

/// What depends on whether a URL is that of one server.
struct Kind {
    /// Further options.
    options: &'static str,
    on_failover: OnFailover,
}

const ONE_SERVER: Kind = Kind { options: "", on_failover: OnFailover::Grant };
const SENTINELS: Kind = Kind { options: ", sentinel_username, sentinel_password", on_failover: OnFailover::Dwell };

/// The form of the configuration in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    url: Option<String>,
    sentinel: Option<SentinelTable>,
    prefix: Option<String>,
    #[serde(default, with = "lock_core::human_duration::option")]
    op_timeout: Option<Duration>,
    replicas: Option<Replicas>,
    failover: Option<OnFailover>,
    max_ttl: Option<Ttl>,
}

impl RedisConfig {
    /// Reads `redis://`, `rediss://`, `redis+unix://`, `unix://`, `redis+sentinel://` or `rediss+sentinel://`. Options are in the
    /// query: `prefix` is put before all lock names, `op_timeout=500ms` limits each request, and the others are:
    ///
    /// `eviction=allow` silences the warning about a server whose `maxmemory-policy` may drop held locks.
    ///
    /// `replicas=2` is for a server with replicas, one of which may replace it: a grant or a renewal counts once so many of
    /// them have acknowledged it. With fewer, nobody is granted a lock, and holders lose theirs when their leases end.
    ///
    /// `failover=dwell` takes no free lock from a server that may have forgotten leases, because it was promoted, was restarted or
    /// lost its data, until the longest of those leases and ten seconds have passed. Ttls are then limited to `max_ttl`, 60 s unless
    /// it is set; give it to all clients alike. The default is `failover=grant`, but `failover=dwell` with sentinels. `docs/guarantees.md` says what either means.
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
    /// # Errors
    /// `Invalid`, without user and password, for anything else.
    pub fn from_url(url: &str) -> Result<Self, Invalid> {
        if let Some(deployment) = SentinelUrl::read(url) {
            return Self::of_sentinels(deployment?, None, None);
        }
        let parsed = Url::parse(url).map_err(|error| unreadable(url, error))?;
        let shown = redacted(&parsed);
        Self::read(&parsed, shown, &ONE_SERVER).map(|(config, _)| config)
    }

    fn of_sentinels(url: SentinelUrl, username: Option<String>, password: Option<String>) -> Result<Self, Invalid> {
        let (mut config, own) = Self::read(&url.servers, url.shown.clone(), &SENTINELS)?;
        let login = (own.sentinel_username.or(username), own.sentinel_password.or(password));
        config.sentinels = Some(url.sentinels(&config.server, login.0, login.1)?);
        Ok(config)
    }

    fn read(parsed: &Url, shown: String, kind: &Kind) -> Result<(Self, Own), Invalid> {
        check_scheme(parsed, &shown)?;
        let (own, rest) = split_query(parsed, &shown, kind)?;
        check_parts(&rest, &shown)?;
        let server = rest
            .into_connection_info()
            .map_err(|error| refuse(&shown, words(&error), "write redis://USER:PASSWORD@HOST:PORT/DB"))?;
        let protocol = protocol(own.protocol.as_deref())?;
        let eviction = eviction(own.eviction.as_deref())?;
        let replicas = own.replicas.as_deref().map(Replicas::parse).transpose()?;
        let chosen = own.failover.as_deref().map(OnFailover::read).transpose()?;
        let max_ttl = own.max_ttl.as_deref().map(max_ttl).transpose()?;
        let failover =
            Failover::by_default(kind.on_failover).with(chosen, max_ttl).map_err(|what| twice(&shown, what))?;
        let redis = server.redis_settings().clone().set_protocol(protocol);
        let server = server.set_redis_settings(redis);
        let prefix = own.prefix.as_deref().map(str::parse).transpose()?.unwrap_or_default();
        let op_timeout = own.op_timeout.as_deref().map(|text| parse_duration("op_timeout", text)).transpose()?;
        let (op_timeout, sentinels) = (positive(op_timeout)?, None);
        Ok((Self { server, sentinels, shown, prefix, op_timeout, eviction, replicas, failover }, own))
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

    /// Those that name the server, if any do. Then the address of [`server`](Self::server) means nothing.
    pub(crate) fn sentinels(&self) -> Option<&Sentinels> {
        self.sentinels.as_ref()
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

    pub(crate) fn replicas(&self) -> Option<Replicas> {
        self.replicas
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
            .field("failover", &self.on_failover())
            .field("max_ttl", &self.max_ttl())
            .finish()
    }
}

impl TryFrom<Table> for RedisConfig {
    type Error = Invalid;

    fn try_from(table: Table) -> Result<Self, Invalid> {
        let mut config = match (table.url, table.sentinel) {
            (Some(url), None) => Self::from_url(&url)?,
            (None, Some(sentinel)) => {
                let (url, username, password) = sentinel.into_url()?;
                Self::of_sentinels(url, username, password)?
            }
            (None, None) | (Some(_), Some(_)) => {
                return Err(refuse("(hidden)", "exactly one of url and sentinel is needed", "give one of them"));
            }
        };
        if table.prefix.is_some() && config.prefix().is_some() {
            return Err(twice(&config.shown, "prefix"));
        }
        if table.op_timeout.is_some() && config.op_timeout.is_some() {
            return Err(twice(&config.shown, "op_timeout"));
        }
        if table.replicas.is_some() && config.replicas.is_some() {
            return Err(twice(&config.shown, "replicas"));
        }
        let failover = config.failover.with(table.failover, table.max_ttl);
        config.failover = failover.map_err(|what| twice(&config.shown, what))?;
        if let Some(prefix) = table.prefix {
            config.prefix = prefix.parse()?;
        }
        config.op_timeout = positive(table.op_timeout.or(config.op_timeout))?;
        config.replicas = table.replicas.or(config.replicas);
        Ok(config)
    }
}

fn twice(shown: &str, what: &str) -> Invalid {
    refuse(shown, format!("{what} is given in the URL and beside it"), "give it once")
}

fn max_ttl(text: &str) -> Result<Ttl, Invalid> {
    Ttl::new(parse_duration("max_ttl", text)?)
}

/// Our own part of a query.
#[derive(Default)]
struct Own {
    prefix: Option<String>,
    op_timeout: Option<String>,
    protocol: Option<String>,
    eviction: Option<String>,
    replicas: Option<String>,
    failover: Option<String>,
    max_ttl: Option<String>,
    sentinel_username: Option<String>,
    sentinel_password: Option<String>,
}

fn split_query(url: &Url, shown: &str, kind: &Kind) -> Result<(Own, Url), Invalid> {
    let socket = is_socket(url);
    let allowed = if socket {
        "prefix, op_timeout, protocol, eviction, replicas, failover, max_ttl, db, user, pass"
    } else {
        "prefix, op_timeout, protocol, eviction, replicas, failover, max_ttl"
    };
    let allowed = [allowed, kind.options].concat();
    let mut own = Own::default();
    let mut rest = url.clone();
    rest.set_query(None);
    for (key, value) in url.query_pairs() {
        let slot = match &*key {
            "prefix" => &mut own.prefix,
            "op_timeout" => &mut own.op_timeout,
            "protocol" => &mut own.protocol,
            "eviction" => &mut own.eviction,
            "replicas" => &mut own.replicas,
            "failover" => &mut own.failover,
            "max_ttl" => &mut own.max_ttl,
            "sentinel_username" if !kind.options.is_empty() => &mut own.sentinel_username,
            "sentinel_password" if !kind.options.is_empty() => &mut own.sentinel_password,
            "db" | "user" | "pass" if socket => {
                rest.query_pairs_mut().append_pair(&key, &value);
                continue;
            }
            // Anything but a plain word may be the rest of a password that contains an unescaped "?".
            unknown if unknown.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                return Err(refuse(shown, format!("its option \"{key}\" is unknown"), format!("allowed: {allowed}")));
            }
            _ => return Err(refuse(shown, "it has an unknown option", format!("allowed: {allowed}; write ? as %3F"))),
        };
        if slot.replace(value.into_owned()).is_some() {
            return Err(refuse(shown, format!("its option \"{key}\" is given twice"), "give it once"));
        }
    }
    Ok((own, rest))
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
                "its option \"pre_fix\" is unknown; allowed: prefix, op_timeout, protocol, eviction, replicas, failover, max_ttl",
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
            ("redis://u:sesame@h/?failover=wait", "write dwell or grant"),
            ("redis://u:sesame@h/?max_ttl=soon", "max_ttl \"soon\" is not valid"),
            ("redis://u:sesame@h/?prefix=leasehold", "reserved"),
            ("redis://u:sesame@h/x", "its database is not a number; write redis://HOST/NUMBER"),
            ("redis://u:sesame@h/-1", "not a number"),
            ("unix:///run/redis.sock?pass=sesame&db=x", "write ?db=NUMBER"),
            ("unix://redis.sock", "write unix:///PATH"),
            (
                "redis://",
                "names no host; write redis://HOST, such as redis://127.0.0.1; user, password, port and database",
            ),
            ("redis:///", "names no host"),
            ("redis://:6379", "names no host"),
            ("redis://u:sesame@/1", "names no host"),
            ("redis://u:sesame@0.0.0.0", "wildcard address"),
            ("redis://u:sesame@h:port/", "port"),
            ("redis://u:sesame@h/#insecure", "fragment"),
            ("http://u:sesame@h/", "scheme"),
            ("u:sesame@h", "scheme"),
            ("redis:u:sesame@h", "hidden"),
            ("redis://h:1?ses@same", "unknown option"),
            ("sesame", "hidden"),
            (
                "unix:///run/redis.sock?pass=sesame&passs=sesame",
                "allowed: prefix, op_timeout, protocol, eviction, replicas, failover, max_ttl, db, user, pass",
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
        assert_eq!(read(r#"{"url":"redis://h","replicas":2}"#).unwrap().replicas().unwrap().get(), 2);
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
            r#"{"url":"redis://:sesame@h/x"}"#,
        ] {
            assert!(!read(bad).unwrap_err().to_string().contains("sesame"), "{bad}");
        }
    }
}
