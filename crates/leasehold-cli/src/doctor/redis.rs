//! What is checked of a Redis.

use std::time::Duration;

use leasehold::redis::{Examination, Exposure, OnFailover, Persistence, RedisConfig, examine};

use super::check::{Check, Checks};
use super::trial::round_trips;
use crate::durations::whole_seconds_up;

/// From this difference on, it is mentioned. Chosen: far more than what a synchronized clock is off.
const CLOCK_OFF: u64 = 10_000;

/// Asks the server about itself, or each primary of a cluster.
pub(super) fn check(config: &RedisConfig, checks: &mut Checks) {
    match examine(config) {
        Ok(servers) => {
            checks.add(Check::ok("reach", format!("connected to {}", config.shown_url())));
            for found in &servers {
                let each = about(found, config).into_iter();
                each.for_each(|check| checks.add(if config.is_cluster() { check.of(&found.server) } else { check }));
            }
        }
        Err(error) => checks.add(Check::failed("reach", &error.into())),
    }
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
                OnFailover::Grant | _ => {
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
        Persistence::Unsaid | _ => "no append-only file: a restart forgets leases",
    };
    match on_failover {
        OnFailover::Dwell => {
            Check::ok("persistence", format!("{what}, and free locks then wait until those have ended"))
        }
        OnFailover::Grant | _ => Check::remark("persistence", format!("{what}, and then grants their locks to others"))
            .with_remedy("CONFIG SET appendonly yes, or add failover=dwell to the URL"),
    }
}

fn dwell(found: &Examination, config: &RedisConfig) -> Check {
    match (found.dwell, config.on_failover()) {
        (Some(left), OnFailover::Dwell) => Check::remark(
            "dwell",
            format!("free locks are granted again in {}: the server may have forgotten leases", whole_seconds_up(left)),
        )
        .with_remedy("wait; or if no lock was ever granted there, run `leasehold redis init` with this URL"),
        (Some(_), OnFailover::Grant | _) => Check::ok(
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
        format!("the server's clock is {} {side} this machine's; leases do not depend on that", whole_seconds_up(off)),
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
        (Exposure::Encrypted, true) | (_, _) => Check::ok("secrecy", "encrypted, with a password"),
    }
}
