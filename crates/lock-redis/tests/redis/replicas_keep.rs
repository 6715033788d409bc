//! What outlives a hold and has to survive a fail-over: locks that are kept, and limits that were set.

use std::time::Duration;

use lock_core::limit::{Act, Request, Usage};
use lock_core::{
    Answer, BackendError, BlockingBackend, Certainty, Claim, Effect, ErrorKind, Limit, ReleaseRequest, Released,
};
use lock_redis::{RedisConfig, blocking, nonblocking};
use test_support::RedisServer;

use crate::facades::{on_threads, on_tokio};
use crate::promotions::{info, promote};
use crate::replicas::{IN_VAIN, calls, replicated};
use crate::support::{BOTH, SOON, both, bridged, claim, eventually, release_of, take};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(600);

/// As it is sent again after a connection broke: without a tombstone, it may have nothing to write.
fn kept(claim: &Claim) -> ReleaseRequest {
    ReleaseRequest { keep: Some(LONG), ..release_of(claim, Certainty::Answered) }
}

#[track_caller]
fn is_unacknowledged<T: std::fmt::Debug>(what: &str, answer: Result<T, BackendError>) {
    let error = answer.expect_err("it counts");
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown), "{what}: {error}");
    assert!(error.to_string().contains("0 of 1 replicas"), "{what}: {error}");
}

#[test]
fn a_kept_lock_counts_once_the_replica_has_it() {
    let (primary, [replica], url) = replicated::<1>();
    for (facade, client) in both(&url) {
        let (mine, _lease) = take(&client, facade);
        // These have written nothing yet, and a server need not wait for what they did not write.
        let others = both(&url);
        replica.stop();
        is_unacknowledged(facade, client.release(&kept(&mine), IN_VAIN));
        for (other, client) in others {
            let written = calls(&primary, "pexpire");
            is_unacknowledged(&format!("{facade}, repeated by {other}"), client.release(&kept(&mine), IN_VAIN));
            assert_eq!(calls(&primary, "pexpire"), written + 1, "{facade}, repeated by {other}: nothing was written");
        }
        replica.resume();
        let released = eventually("the replica acknowledges", || client.release(&kept(&mine), SOON));
        assert_eq!(released, Released::Released, "{facade}");
        let value: String = replica.command(&["GET", facade]);
        assert!(value.contains(&mine.owner.kept().to_wire().to_string()), "{facade}: {value}");
    }
}

/// What a user sees: the first try is an error, and it is repeated.
#[test]
fn a_lock_that_is_kept_without_a_replica_is_pending_until_there_is_one() {
    let (primary, [replica], url) = replicated::<1>();
    for (facade, client) in [("async", on_tokio(&url)), ("blocking", on_threads(&url))] {
        let held = eventually("the replica acknowledges", || client.acquire_within(facade, SOON, SOON));
        replica.stop();
        let error = held.keep(LONG).expect_err("it counts").to_string();
        assert!(error.contains("0 of 1 replicas"), "{facade}: {error}");
        let waits = calls(&primary, "wait");
        eventually("the release is repeated", || calls(&primary, "wait") > waits);
        replica.resume();
        eventually("the replica keeps the lock", || {
            replica.command::<i64>(&["PTTL", facade]) > i64::try_from(LONG.as_millis()).unwrap() / 2
        });
    }
}

#[test]
fn a_lock_that_counts_as_kept_is_kept_at_the_next_primary() {
    for (facade, connect) in BOTH {
        for (option, both_count) in [("", true), ("?replicas=1", false)] {
            let (mut primary, [replica], _) = replicated::<1>();
            let old = connect(&format!("{}{option}", primary.url()));
            let (mine, _lease) = take(&old, "job");
            // The link is cut: the replica keeps its data, in which the lock is only held.
            replica.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
            eventually("the primary is alone", || info(&primary, "connected_slaves:") == "0");
            let counts = old.release(&kept(&mine), IN_VAIN).is_ok();
            primary.kill();
            promote(&replica);
            replica.command::<()>(&["PEXPIRE", "job", "1"]);
            let next = connect(&replica.url());
            let is_granted = || matches!(next.acquire(&claim("job"), SOON), Ok(Answer::Granted { .. }));
            eventually("the next primary grants the lock", is_granted);
            assert_eq!(counts, both_count, "{facade} with \"{option}\"");
        }
    }
}

fn limit_of_two(name: &str, act: Act) -> Request {
    Request { name: name.parse().unwrap(), known: Limit::new(2).unwrap(), act }
}

/// Asks over a client of each facade.
fn limits(server: &str, request: &Request, within: Duration) -> [Result<Usage, BackendError>; 2] {
    let config = RedisConfig::from_url(server).unwrap();
    let on_tokio = bridged(async || nonblocking::Redis::connect(&config).await.unwrap());
    let on_threads = blocking::Redis::connect(&config).unwrap();
    [on_tokio.limit(request, within), on_threads.limit(request, within)]
}

#[test]
fn a_limit_counts_once_the_replica_has_it() {
    let (primary, [replica], url): (RedisServer, _, _) = replicated::<1>();
    let (set, look) = (limit_of_two("gpu", Act::Set(Limit::new(3).unwrap())), limit_of_two("gpu", Act::Look));
    replica.stop();
    limits(&url, &set, IN_VAIN).into_iter().for_each(|answer| is_unacknowledged("a limit", answer));
    let waits = calls(&primary, "wait");
    limits(&url, &look, IN_VAIN).into_iter().for_each(|answer| _ = answer.unwrap());
    assert_eq!(calls(&primary, "wait"), waits, "a look waited");
    replica.resume();
    eventually("the replica acknowledges", || limits(&url, &set, SOON).into_iter().all(|answer| answer.is_ok()));
}
