//! Servers that have forgotten leases, and clients that take no free lock from them until those leases have ended.

use std::thread;
use std::time::Duration;

use lock_core::{
    Answer, BackendError, Certainty, Claim, Effect, ErrorKind, Evidence, Fenced, Queueing, ReleaseRequest, Released,
    Renewed, Terms, Ttl,
};
use lock_redis::by_hand::texts;
use test_support::{DataCopy, RedisOptions, RedisServer};

use crate::facades::{on_threads, on_tokio};
use crate::promotions::{info, server as server_with_history};
use crate::support::{BOTH, Client, SOON, both, claim, eventually, granted, release_of, take};

pub(crate) const DWELL: &str = "leasehold:dwell";
pub(crate) const MAX_TTL: &str = "leasehold:max_ttl";
/// Longer than any test.
const LONG: &str = "60000";

/// The URL for a client that waits for the end of a dwell.
pub(crate) fn dwelling(server: &RedisServer) -> String {
    format!("{}?failover=dwell&max_ttl=5s", server.url())
}

pub(crate) fn asks(name: &str) -> Claim {
    Claim { terms: Terms::exclusive(Ttl::new(Duration::from_secs(5)).unwrap()), ..claim(name) }
}

pub(crate) fn queues(name: &str) -> Claim {
    Claim { queueing: Queueing::Wanted, ..asks(name) }
}

pub(crate) fn takes(client: &Client, name: &str) -> Claim {
    let claim = asks(name);
    granted(client.acquire(&claim, SOON));
    claim
}

pub(crate) fn valid(claim: &Claim) -> ReleaseRequest {
    ReleaseRequest { evidence: Evidence::ValidHold, ..release_of(claim, Certainty::Answered) }
}

pub(crate) fn begin_dwell(server: &RedisServer) {
    server.command::<()>(&["SET", DWELL, "", "PX", LONG]);
}

pub(crate) fn end_dwell(server: &RedisServer) {
    server.command::<()>(&["DEL", DWELL]);
}

/// How long a dwell still lasts; negative if there is none.
pub(crate) fn left(server: &RedisServer) -> i64 {
    server.command(&["PTTL", DWELL])
}

#[track_caller]
pub(crate) fn dwells(answer: Result<Answer, BackendError>) {
    let error = answer.expect_err("it was not refused");
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{error}");
    assert!(error.to_string().contains("may have forgotten locks"), "{error}");
    let end = error.end().expect("it says how long that lasts");
    assert!(end <= Duration::from_secs(75), "{error}");
}

fn is_queued(answer: &Result<Answer, BackendError>) -> bool {
    matches!(answer, Ok(Answer::Queued { .. }))
}

fn holder(server: &RedisServer, name: &str) -> String {
    server.command::<Option<String>>(&["GET", name]).unwrap_or_default()
}

type Loss = (&'static str, fn(&mut RedisServer, &DataCopy));

const LOSSES: [Loss; 4] = [
    ("an older snapshot", RedisServer::restart_from),
    ("restarted without data", |server, _| server.restart_empty()),
    ("flushed under live clients", |server, _| server.command::<()>(&["FLUSHALL"])),
    ("its counter lost", |server, _| server.command::<()>(&["DEL", "leasehold:counter", "flushed"])),
];

/// What the option is for: the holder's lease is valid for longer than all of this takes.
/// A dwell is reported, or the reason why there is none.
pub(crate) fn tells_dwell(client: &Client, claim: &Claim) -> Result<(), BackendError> {
    match client.acquire(claim, SOON) {
        Err(error) if error.end().is_some() => Ok(()),
        Err(error) => Err(error),
        Ok(answer) => panic!("{}: {answer:?}", claim.name),
    }
}

#[test]
fn a_server_that_forgot_lends_a_lock_twice_unless_its_free_locks_wait() {
    for (facade, connect) in BOTH {
        for (how, lose) in LOSSES {
            let mut server = RedisServer::start_with(RedisOptions::default().append_only());
            let url = dwelling(&server);
            let (heeds, heeds_not) = (connect(&url), connect(&server.url()));
            end_dwell(&server);
            let before = server.copy_data();
            let (held, forgotten) = (takes(&heeds, "job"), takes(&heeds, "flushed"));
            lose(&mut server, &before);
            let second = asks("flushed");
            eventually("the server is found again", || tells_dwell(&heeds, &second));
            dwells(connect(&url).acquire(&asks("flushed"), SOON));
            let life = left(&server);
            assert!((10_000..=70_000).contains(&life), "{facade}, {how}: {life}");
            // A client that does not heed the dwell has the lock while the first holder's lease is valid.
            eventually("the second holder", || {
                heeds_not.acquire(&asks("flushed"), SOON).is_ok_and(|answer| matches!(answer, Answer::Granted { .. }))
            });
            drop((held, forgotten));
        }
    }
}

#[test]
fn a_new_name_for_the_same_history_delays_nobody() {
    for (facade, connect) in BOTH {
        let server = server_with_history();
        let url = dwelling(&server);
        drop(connect(&url));
        end_dwell(&server);
        let before = info(&server, "master_replid:");
        server.back_up();
        eventually("the replica is gone", || info(&server, "connected_slaves:") == "0");
        assert_ne!(info(&server, "master_replid:"), before);
        takes(&connect(&url), facade);
        assert_eq!(left(&server), -2, "{facade}");
    }
}

#[test]
fn holders_go_on_during_a_dwell_and_free_locks_wait() {
    let server = RedisServer::start();
    for (facade, client) in both(&dwelling(&server)) {
        end_dwell(&server);
        let held = asks(facade);
        let lease = granted(client.acquire(&held, SOON));
        begin_dwell(&server);
        assert!(matches!(client.renew(std::slice::from_ref(&lease), SOON).unwrap()[..], [Renewed::Renewed { .. }]));
        assert_eq!(client.fence(&lease, SOON).unwrap(), Fenced::Acknowledged);
        assert_eq!(granted(client.acquire(&held, SOON)).tokens, lease.tokens);
        assert!(is_queued(&client.acquire(&queues(facade), SOON)), "a held lock has its queue");
        dwells(client.acquire(&asks("free"), SOON));
        dwells(client.acquire(&queues("free"), SOON));
        let keeps = ReleaseRequest { keep: Some(Duration::from_secs(1)), ..valid(&held) };
        assert_eq!(client.release(&keeps, SOON).unwrap(), Released::Released);
        end_dwell(&server);
        server.command::<()>(&["DEL", facade]);
    }
}

#[test]
fn only_a_valid_hold_is_handed_over_during_a_dwell() {
    let server = RedisServer::start();
    for (facade, client) in both(&dwelling(&server)) {
        for (evidence, certainty, goes_on) in [
            (Evidence::ValidHold, Certainty::Answered, true),
            (Evidence::ValidHold, Certainty::Unknown, true),
            (Evidence::Nothing, Certainty::Answered, false),
            (Evidence::Nothing, Certainty::Unknown, false),
        ] {
            end_dwell(&server);
            let name = format!("{facade} {evidence:?} {certainty:?}");
            let (held, next) = (takes(&client, &name), queues(&name));
            assert!(is_queued(&client.acquire(&next, SOON)));
            begin_dwell(&server);
            let request = ReleaseRequest { evidence, certainty, ..valid(&held) };
            assert_eq!(client.release(&request, SOON).unwrap(), Released::Released);
            assert_eq!(holder(&server, &name).contains(&next.owner.to_wire()), goes_on, "{name}");
            if !goes_on {
                dwells(client.acquire(&next, SOON));
            }
        }
    }
}

#[test]
fn a_lease_that_expires_during_a_dwell_goes_to_nobody() {
    let server = RedisServer::start();
    for (facade, client) in both(&dwelling(&server)) {
        end_dwell(&server);
        let (_, next) = (takes(&client, facade), queues(facade));
        assert!(is_queued(&client.acquire(&next, SOON)));
        begin_dwell(&server);
        server.command::<()>(&["DEL", facade]);
        dwells(client.acquire(&asks(facade), SOON));
        dwells(client.acquire(&next, SOON));
        assert_eq!(holder(&server, facade), "");
        end_dwell(&server);
        granted(client.acquire(&next, SOON));
    }
}

#[test]
fn claims_that_are_sent_together_wait_together() {
    let server = RedisServer::start();
    for (facade, client) in both(&dwelling(&server)) {
        begin_dwell(&server);
        let ask = |number| client.acquire(&asks(&format!("{facade} {number}")), SOON);
        thread::scope(|scope| {
            let tries: Vec<_> = (0..64).map(|number| scope.spawn(move || ask(number))).collect();
            tries.into_iter().for_each(|tried| dwells(tried.join().unwrap()));
        });
    }
}

#[test]
fn a_waiter_has_the_lock_once_the_dwell_is_over() {
    let server = RedisServer::start();
    for connect in [on_tokio, on_threads] {
        let client = connect(&dwelling(&server));
        server.command::<()>(&["SET", DWELL, "", "PX", "1500"]);
        client.acquire("job", Duration::from_secs(3)).release();
        assert_eq!(left(&server), -2, "it was granted before the end");
    }
}

#[test]
fn a_dwell_lasts_for_the_longest_ttl_of_any_client_and_is_never_shortened() {
    let server = RedisServer::start();
    let verify = |incarnation: &str, seen: &str, history: &str, max_ttl: &str| {
        let keys = ["leasehold:counter", "leasehold:incarnation", DWELL, MAX_TTL];
        let start = ["EVAL", texts().verify, "4"];
        let values = [incarnation, seen, history, max_ttl, "10000"];
        let (is_another, longest): (u8, u64) = server.command(&[&start[..], &keys, &values].concat());
        assert_eq!(server.command::<u64>(&["GET", MAX_TTL]), longest);
        is_another
    };
    let lasts = |millis: i64| {
        let life = left(&server);
        assert!((millis - 5000..=millis).contains(&life), "{life} of {millis}");
    };
    assert_eq!(verify("one:a", "", "unpromoted", "30000"), 1);
    lasts(40_000);
    assert_eq!(verify("one:a", "one:a", "unpromoted", "60000"), 0);
    lasts(70_000);
    assert_eq!(server.command::<u64>(&["GET", MAX_TTL]), 60_000);
    assert_eq!(verify("two:b", "one:a", "unpromoted", "1000"), 1);
    lasts(70_000);
    server.command::<()>(&["SET", DWELL, "", "PX", "100000"]);
    assert_eq!(verify("three:c", "two:b", "promoted", "1000"), 1);
    lasts(100_000);
    end_dwell(&server);
    assert_eq!(verify("three:d", "three:c", "unpromoted", "1000"), 1);
    assert_eq!((left(&server), verify("three:d", "three:d", "unpromoted", "60000")), (-2, 0));
    assert_eq!(verify("three:e", "three:d", "promoted", "1000"), 1);
    lasts(70_000);
    end_dwell(&server);
    assert_eq!(verify("three:e", "three:e", "unpromoted", "90000"), 0);
    assert_eq!((left(&server), server.command::<u64>(&["GET", MAX_TTL])), (-2, 90_000));
}

/// The data is lost under live connections, so none of them announces its longest ttl again.
#[test]
fn a_dwell_that_another_client_began_covers_the_ttls_of_those_that_heed_it() {
    let server = RedisServer::start();
    let url = format!("{}?failover=dwell&max_ttl=300s", server.url());
    // They connect first, so they do not know of a longer ttl.
    let others = both(&server.url());
    for ((facade, heeds), (_, other)) in both(&url).into_iter().zip(others) {
        server.command::<()>(&["FLUSHALL"]);
        take(&other, "flushed");
        assert!((60_000..=70_000).contains(&left(&server)), "{facade}");
        let error = heeds.acquire(&asks(facade), SOON).expect_err("it was not refused");
        assert!(error.end() > Some(Duration::from_secs(300)), "{facade}: {error}");
        assert!(left(&server) > 300_000, "{facade}");
    }
}

#[test]
fn a_ttl_that_a_dwell_would_not_cover_is_refused() {
    let server = RedisServer::start();
    for (facade, client) in both(&dwelling(&server)) {
        end_dwell(&server);
        let error = client.acquire(&claim(facade), SOON).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None), "{error}");
        assert!(error.to_string().contains("a ttl of 30s is longer than max_ttl, which is 5s"), "{error}");
        takes(&client, facade);
    }
    let [(_, unlimited), _] = both(&server.url());
    take(&unlimited, "long");
}
