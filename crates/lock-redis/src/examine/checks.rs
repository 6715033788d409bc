//! What operators should know of a Redis.

use std::time::Duration;

use humantime::{FormattedDuration, format_duration};
use lock_core::examine::Check;
use redis::{ConnectionAddr, ConnectionInfo};

use crate::RedisConfig;
use crate::config::Eviction;
use crate::failover::OnFailover;
use crate::server::greeting::field;

/// From this round trip on, it is mentioned: each acquire, renewal and release takes one.
const SLOW: Duration = Duration::from_millis(100);
/// From this difference on, it is mentioned. Chosen: far more than what a synchronized clock is off.
const CLOCK_OFF: u64 = 10_000;

/// What one server has said, and how it is used.
pub(super) struct Found<'a> {
    pub(super) config: &'a RedisConfig,
    /// Sections of its `INFO`.
    pub(super) info: String,
    /// Its setting `save`, if this client may ask for it.
    pub(super) save: Option<Vec<String>>,
    /// For how long it grants free locks to nobody who heeds that; `None` if it grants them, and for a server of a cluster, where each
    /// hash slot has an answer of its own.
    pub(super) dwell: Option<Duration>,
    /// How far its clock is ahead of this machine's, or behind it if negative, in milliseconds.
    pub(super) clock_ahead_ms: i64,
    /// How long requests took, the shortest first.
    pub(super) round_trips: Vec<Duration>,
}

impl Found<'_> {
    fn field(&self, name: &str) -> Option<&str> {
        field(&self.info, name)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.parse().ok()
    }
}

/// What operators should know of one server.
pub(super) fn checks(found: &Found<'_>) -> [Check; 8] {
    [
        Check::ok("version", version(found)),
        eviction(found),
        replication(found),
        persistence(found),
        dwell(found),
        clock(found.clock_ahead_ms),
        round_trips(&found.round_trips),
        secrecy(&found.config.servers.server),
    ]
}

fn version(found: &Found<'_>) -> String {
    match (found.field("valkey_version:"), found.field("redis_version:")) {
        (Some(version), _) => format!("valkey {version}"),
        (None, version) => format!("redis {}", version.unwrap_or("of an unknown version")),
    }
}

fn eviction(found: &Found<'_>) -> Check {
    let policy = found.field("maxmemory_policy:").unwrap_or_default();
    let limit = found.number("maxmemory:").filter(|limit| *limit > 0);
    let remedy = "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf";
    match (policy, limit) {
        ("noeviction", _) => Check::ok("eviction", "maxmemory-policy is noeviction: no held lock is dropped"),
        ("", _) => Check::remark("eviction", "the server does not report its maxmemory-policy")
            .with_remedy("check that it evicts no keys"),
        _ if found.config.eviction == Eviction::Allowed => {
            Check::remark("eviction", format!("maxmemory-policy is {policy}, which the URL allows; it may drop held locks"))
        }
        (_, Some(limit)) => Check::finding(
            "eviction",
            format!("maxmemory-policy is {policy}: at {limit} bytes, the server may drop locks that are held"),
        )
        .with_remedy(remedy),
        (_, None) => Check::finding(
            "eviction",
            format!("maxmemory-policy is {policy}: there is no maxmemory now, but with one, the server may drop locks that are held"),
        )
        .with_remedy(remedy),
    }
}

fn replication(found: &Found<'_>) -> Check {
    let connected = found.number("connected_slaves:").unwrap_or_default();
    let awaited = found.config.copies().map(|copies| u64::from(copies.replicas())).filter(|replicas| *replicas > 0);
    match awaited {
        Some(awaited) if connected < awaited => Check::finding(
            "replication",
            format!("{connected} replicas are connected, and a grant waits for {awaited}: no lock is granted"),
        )
        .with_remedy("connect the replicas, or lower replicas= in the URL"),
        Some(awaited) => Check::ok(
            "replication",
            format!("a primary with {connected} replicas, {awaited} of which acknowledge each grant"),
        ),
        None if connected == 0 => Check::ok("replication", "a primary without replicas"),
        None => {
            let (what, options) = match found.config.on_failover() {
                OnFailover::Dwell => {
                    ("after a fail-over, no free lock is granted for a dwell, so that none is held twice", "replicas=N")
                }
                OnFailover::Grant => {
                    ("a fail-over may give a held lock to a second holder", "replicas=N and failover=dwell")
                }
            };
            Check::remark("replication", format!("a primary whose replicas ({connected}) acknowledge nothing: {what}"))
                .with_remedy(format!("if a replica may replace it, add {options} to the URL"))
        }
    }
}

fn persistence(found: &Found<'_>) -> Check {
    let saves = found.save.as_ref().and_then(|save| save.get(1).map(|rules| !rules.is_empty()));
    let what = match (found.field("aof_enabled:"), saves) {
        (Some("1"), _) => return Check::ok("persistence", "an append-only file"),
        (_, Some(true)) => "snapshots only: a restart forgets the newest leases",
        (_, Some(false)) => "none: a restart forgets all leases",
        (_, None) => "no append-only file: a restart forgets leases",
    };
    match found.config.on_failover() {
        OnFailover::Dwell => {
            Check::ok("persistence", format!("{what}, and free locks then wait until those have ended"))
        }
        OnFailover::Grant => Check::remark("persistence", format!("{what}, and then grants their locks to others"))
            .with_remedy("CONFIG SET appendonly yes, or add failover=dwell to the URL"),
    }
}

fn dwell(found: &Found<'_>) -> Check {
    match (found.dwell, found.config.on_failover()) {
        (Some(left), OnFailover::Dwell) => Check::remark(
            "dwell",
            format!("free locks are granted again in {}: the server may have forgotten leases", seconds_up(left)),
        )
        .with_remedy("wait; or if no lock was ever granted there, run `leasehold redis init` with this URL"),
        (Some(_), OnFailover::Grant) => Check::ok(
            "dwell",
            "the server may have forgotten leases lately; without failover=dwell, free locks are granted at once",
        ),
        (None, OnFailover::Dwell) if found.config.is_cluster() => Check::ok(
            "dwell",
            "each hash slot has its own, and only that of the lock on trial is known: see \"rights\" below",
        ),
        (None, _) => Check::ok("dwell", "no dwell is known: free locks are granted at once"),
    }
}

fn clock(ahead_ms: i64) -> Check {
    let off = Duration::from_millis(ahead_ms.unsigned_abs());
    let side = if ahead_ms < 0 { "behind" } else { "ahead of" };
    if ahead_ms.unsigned_abs() < CLOCK_OFF {
        return Check::ok("clock", "the server's clock agrees with this machine's");
    }
    Check::remark(
        "clock",
        format!("the server's clock is {} {side} this machine's; leases do not depend on that", seconds_up(off)),
    )
    .with_remedy("synchronize the clocks, so that times in logs can be compared")
}

/// Who can read what is sent to a server: nobody else if it is encrypted or stays on this machine.
fn secrecy(server: &ConnectionInfo) -> Check {
    let (is_encrypted, is_local) = match server.addr() {
        ConnectionAddr::TcpTls { .. } => (true, false),
        ConnectionAddr::Unix(_) => (false, true),
        ConnectionAddr::Tcp(host, _) => {
            let loops = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
            (false, loops || host == "localhost")
        }
        _ => (false, false),
    };
    match (is_encrypted, is_local, server.redis_settings().password().is_some()) {
        (false, false, true) => Check::remark("secrecy", "the password and all locks cross the network in the clear")
            .with_remedy("use TLS: rediss://"),
        (false, _, false) => Check::remark(
            "secrecy",
            "the URL has no password: anyone who can reach the server can take and end all locks",
        )
        .with_remedy("set a password, and pass the URL in LEASEHOLD_URL"),
        (true, _, false) => Check::remark("secrecy", "encrypted, but the URL has no password")
            .with_remedy("set a password, unless certificates decide who may connect"),
        (false, true, true) => Check::ok("secrecy", "a password, on this machine"),
        (true, _, true) => Check::ok("secrecy", "encrypted, with a password"),
    }
}

/// How long requests took, the shortest first.
fn round_trips(times: &[Duration]) -> Check {
    let of = |time: Option<&Duration>| time.copied().unwrap_or_default();
    let (median, longest) = (of(times.get(times.len() / 2)), of(times.last()));
    let shown = |time: Duration| format!("{}.{:03} ms", time.as_millis(), time.subsec_micros() % 1000);
    let text = format!("{} in the median of {}, {} at most", shown(median), times.len(), shown(longest));
    if median < SLOW {
        return Check::ok("round trip", text);
    }
    Check::remark("round trip", format!("{text}: each acquire and release takes one"))
        .with_remedy("use a store that is closer")
}

/// For display, in whole seconds rounded up.
fn seconds_up(duration: Duration) -> FormattedDuration {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    format_duration(Duration::from_secs(millis.div_ceil(1000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_read() {
        let config = RedisConfig::from_url("redis://h").unwrap();
        let found = |info: &str, save: Option<&str>| Found {
            config: &config,
            info: info.to_owned(),
            save: save.map(|rules| vec!["save".to_owned(), rules.to_owned()]),
            dwell: None,
            clock_ahead_ms: 0,
            round_trips: Vec::new(),
        };
        let redis = found("redis_version:7.2.4\r\naof_enabled:0\r\nmaxmemory:1000\r\n", None);
        assert_eq!((version(&redis).as_str(), redis.number("maxmemory:")), ("redis 7.2.4", Some(1000)));
        assert_eq!(version(&found("redis_version:7.2.4\r\nvalkey_version:8.1.0\r\n", None)), "valkey 8.1.0");
        for (aof, save, expected) in [
            ("1", None, "an append-only file"),
            ("0", Some("3600 1"), "snapshots only"),
            ("0", Some(""), "none: a restart forgets all"),
            ("0", None, "no append-only file"),
        ] {
            let check = persistence(&found(&format!("aof_enabled:{aof}\r\n"), save));
            assert!(format!("{check:?}").contains(expected), "{check:?}");
        }
    }

    #[test]
    fn only_this_machine_and_tls_are_out_of_reach() {
        let text = |url: &str| format!("{:?}", secrecy(&RedisConfig::from_url(url).unwrap().servers.server));
        for url in
            ["redis://:p@127.0.0.1", "redis://:p@[::1]:7", "redis://:p@localhost", "unix:///run/redis.sock?pass=p"]
        {
            assert!(text(url).contains("on this machine"), "{url}");
        }
        assert!(text("redis://:p@db1").contains("in the clear"));
    }
}
