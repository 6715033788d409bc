//! What operators should know of a Redis.

use std::time::Duration;

use humantime::{FormattedDuration, format_duration};
use lock_core::examine::Check;

use super::found::{Examination, Exposure, Persistence};
use crate::RedisConfig;
use crate::failover::OnFailover;

/// From this round trip on, it is mentioned: each acquire, renewal and release takes one.
const SLOW: Duration = Duration::from_millis(100);
/// From this difference on, it is mentioned. Chosen: far more than what a synchronized clock is off.
const CLOCK_OFF: u64 = 10_000;

/// What operators should know of one server.
pub(super) fn checks(found: &Examination, config: &RedisConfig) -> impl Iterator<Item = Check> {
    let server = config.is_cluster().then_some(&found.server);
    about(found, config).into_iter().map(move |check| match server {
        Some(server) => check.of(server),
        None => check,
    })
}

fn about(found: &Examination, config: &RedisConfig) -> [Check; 8] {
    [
        Check::ok("version", found.version.clone()),
        eviction(found),
        replication(found, config.on_failover()),
        persistence(found.persistence, config.on_failover()),
        dwell(found, config),
        clock(found.clock_ahead_ms),
        round_trips(&found.round_trips),
        secrecy(found),
    ]
}

fn eviction(found: &Examination) -> Check {
    let policy = &found.eviction_policy;
    let remedy = "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf";
    match (policy.as_str(), found.memory_limit) {
        ("noeviction", _) => Check::ok("eviction", "maxmemory-policy is noeviction: no held lock is dropped"),
        ("", _) => Check::remark("eviction", "the server does not say what it does when its memory is full")
            .with_remedy("see that it drops nothing"),
        _ if found.eviction_is_allowed => {
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

fn replication(found: &Examination, on_failover: OnFailover) -> Check {
    let connected = found.replicas;
    match found.awaited_replicas {
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
            let (what, options) = match on_failover {
                OnFailover::Dwell => ("free locks wait after a fail-over, so that none is held twice", "replicas=N"),
                OnFailover::Grant => {
                    ("a fail-over may give a held lock to a second holder", "replicas=N and failover=dwell")
                }
            };
            Check::remark("replication", format!("a primary whose replicas ({connected}) acknowledge nothing: {what}"))
                .with_remedy(format!("if a replica may replace it, add {options} to the URL"))
        }
    }
}

fn persistence(found: Persistence, on_failover: OnFailover) -> Check {
    let what = match found {
        Persistence::AppendOnly => return Check::ok("persistence", "an append-only file"),
        Persistence::Snapshots => "snapshots only: a restart forgets the newest leases",
        Persistence::Nothing => "none: a restart forgets all leases",
        Persistence::Unsaid => "no append-only file: a restart forgets leases",
    };
    match on_failover {
        OnFailover::Dwell => {
            Check::ok("persistence", format!("{what}, and free locks then wait until those have ended"))
        }
        OnFailover::Grant => Check::remark("persistence", format!("{what}, and then grants their locks to others"))
            .with_remedy("CONFIG SET appendonly yes, or add failover=dwell to the URL"),
    }
}

fn dwell(found: &Examination, config: &RedisConfig) -> Check {
    match (found.dwell, config.on_failover()) {
        (Some(left), OnFailover::Dwell) => Check::remark(
            "dwell",
            format!("free locks are granted again in {}: the server may have forgotten leases", seconds_up(left)),
        )
        .with_remedy("wait; or if no lock was ever granted there, run `leasehold redis init` with this URL"),
        (Some(_), OnFailover::Grant) => Check::ok(
            "dwell",
            "the server may have forgotten leases lately; without failover=dwell, free locks are granted at once",
        ),
        (None, OnFailover::Dwell) if config.is_cluster() => Check::ok(
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

fn secrecy(found: &Examination) -> Check {
    match (found.exposure, found.uses_password) {
        (Exposure::Plain, true) => {
            Check::remark("secrecy", "the password and all locks cross the network in the clear")
                .with_remedy("use TLS: rediss://")
        }
        (Exposure::Plain | Exposure::Local, false) => Check::remark(
            "secrecy",
            "the URL has no password: anyone who can reach the server can take and end all locks",
        )
        .with_remedy("set a password, and pass the URL in LEASEHOLD_URL"),
        (Exposure::Encrypted, false) => Check::remark("secrecy", "encrypted, but the URL has no password")
            .with_remedy("set a password, unless certificates decide who may connect"),
        (Exposure::Local, true) => Check::ok("secrecy", "a password, on this machine"),
        (Exposure::Encrypted, true) => Check::ok("secrecy", "encrypted, with a password"),
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
