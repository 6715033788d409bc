//! Grants and renewals that replicas have to acknowledge, and replicas that do not.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lock_core::{AcquireError, AsyncBackend, Backend, Certainty, Claim, Effect, ErrorKind, Queueing, Released};
use lock_redis::{RedisConfig, node, nonblocking};
use test_support::RedisServer;
use test_support::bounds::{wait_for, within};

use crate::facades::{FACADES, Facade, Held};
use crate::promotions::{info, promote, replicate, server};
use crate::support::{BOTH, SOON, both, bridged, claim, eventually, granted, is_busy, release_of, take};

/// How long a request may take that waits for a replica in vain.
pub(crate) const IN_VAIN: Duration = Duration::from_millis(800);
/// Short, so that what is not renewed ends soon; and long enough that replicas answer within a sixth of it.
const TTL: Duration = Duration::from_secs(3);

/// A primary with this many replicas, and its URL with the wish for all of them.
pub(crate) fn replicated<const COUNT: usize>() -> (RedisServer, [RedisServer; COUNT], String) {
    let (primary, replicas) = (server(), std::array::from_fn(|_| server()));
    replicas.iter().for_each(|replica| replicate(replica, &primary));
    // A replica acknowledges nothing for up to a second after its data has come.
    eventually("all replicas acknowledge", || acknowledgements(&primary) == COUNT);
    let url = format!("{}?replicas={COUNT}", primary.url());
    (primary, replicas, url)
}

/// How many replicas acknowledge a write within a moment.
fn acknowledgements(primary: &RedisServer) -> usize {
    let mut write_and_wait = redis::pipe();
    write_and_wait.cmd("SET").arg("written").arg(1).arg("PX").arg(1).ignore().cmd("WAIT").arg(9).arg(20);
    let [count] = write_and_wait.query(&mut primary.connection()).unwrap();
    count
}

/// How often the server ran a command.
pub(crate) fn calls(server: &RedisServer, command: &str) -> u64 {
    let stats: String = server.command(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}

#[test]
fn a_lease_counts_once_all_replicas_have_it() {
    let (primary, [first, second], url) = replicated::<2>();
    for (facade, client) in both(&url) {
        let (claim_of_held, held) = take(&client, facade);
        let value: String = primary.command(&["GET", facade]);
        for replica in [&first, &second] {
            assert_eq!(replica.command::<String>(&["GET", facade]), value, "{facade}");
        }
        client.renew(std::slice::from_ref(&held), SOON).unwrap();

        second.stop();
        let another = claim("another");
        let error = client.acquire(&another, IN_VAIN).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown), "{facade}: {error}");
        assert!(error.to_string().contains("1 of 2 replicas acknowledged it in time"), "{facade}: {error}");
        let error = client.renew(std::slice::from_ref(&held), IN_VAIN).unwrap_err();
        assert!(error.to_string().contains("1 of 2 replicas"), "{facade}: {error}");
        is_busy(client.acquire(&claim(facade), IN_VAIN));
        let waits = calls(&primary, "wait");
        client.release(&release_of(&another, Certainty::Unknown), SOON).unwrap();
        client.release(&release_of(&claim_of_held, Certainty::Answered), SOON).unwrap();
        assert_eq!(calls(&primary, "wait"), waits, "{facade}: a release waited");
        assert_eq!(primary.command::<Vec<String>>(&["KEYS", "another"]).len(), 0, "{facade}");

        second.resume();
        let (again, _) = take(&client, "another");
        client.release(&release_of(&again, Certainty::Answered), SOON).unwrap();
    }
}

#[test]
fn without_the_option_nothing_waits_and_with_it_each_write_waits_once() {
    let (primary, [_replica], url) = replicated::<1>();
    for (asked, waits) in [(primary.url(), 0), (url, 1)] {
        for (facade, client) in both(&asked) {
            primary.command::<()>(&["CONFIG", "RESETSTAT"]);
            let (claim, lease) = take(&client, facade);
            assert_eq!(calls(&primary, "wait"), waits, "{facade}: a grant");
            client.renew(&[lease], SOON).unwrap();
            assert_eq!(calls(&primary, "wait"), waits * 2, "{facade}: a renewal");
            client.release(&release_of(&claim, Certainty::Answered), SOON).unwrap();
            assert_eq!(calls(&primary, "wait"), waits * 2, "{facade}: a release");
        }
    }
}

#[test]
fn the_first_requests_keep_their_order() {
    let (_primary, [_replica], url) = replicated::<1>();
    let config = RedisConfig::from_url(&url).unwrap();
    let client = bridged(async || nonblocking::Redis::connect(&config).await.unwrap());
    let (first, second) = (claim("a"), claim("a"));
    let release = release_of(&first, Certainty::Answered);
    let (released, next) = client.bridge().block_on(async {
        granted(client.inner().acquire(&first, SOON).await);
        tokio::join!(client.inner().release(&release, SOON), client.inner().acquire(&second, SOON))
    });
    assert_eq!(released.unwrap(), Released::Released);
    granted(next);
}

#[test]
fn many_claims_wait_together() {
    const MANY: usize = 64;
    let (primary, [replica], url) = replicated::<1>();
    let config = RedisConfig::from_url(&url).unwrap();
    let client = bridged(async || nonblocking::Redis::connect(&config).await.unwrap());
    let outcomes = || {
        let tasks: Vec<_> = (0..MANY)
            .map(|number| {
                let inner = Arc::clone(client.inner());
                client
                    .bridge()
                    .handle()
                    .spawn(async move { inner.acquire(&claim(&number.to_string()), SOON / 5).await })
            })
            .collect();
        tasks.into_iter().map(|task| client.bridge().block_on(task).unwrap()).collect::<Vec<_>>()
    };
    primary.command::<()>(&["CONFIG", "RESETSTAT"]);
    outcomes().into_iter().for_each(|outcome| _ = granted(outcome));
    let waits = calls(&primary, "wait");
    assert!((1..=MANY as u64 / 4).contains(&waits), "{waits} waits");
    primary.command::<()>(&["FLUSHALL"]);
    replica.stop();
    assert!(outcomes().iter().all(Result::is_err), "a claim was granted");
}

/// A client may have locks with very different ttls, and so requests with very different time limits.
#[test]
fn a_claim_with_little_time_takes_none_from_those_that_are_sent_with_it() {
    let (_primary, [replica], url) = replicated::<1>();
    let config = RedisConfig::from_url(&url).unwrap();
    let client = bridged(async || nonblocking::Redis::connect(&config).await.unwrap());
    replica.stop();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(IN_VAIN * 2);
            replica.resume();
        });
        let [first, patient, hasty] = ["first", "patient", "hasty"].map(claim);
        let (patient, hasty) = client.bridge().block_on(async {
            // While the server waits for the replica, the other two are collected.
            let others = async {
                tokio::time::sleep(IN_VAIN / 8).await;
                tokio::join!(client.inner().acquire(&patient, SOON), client.inner().acquire(&hasty, IN_VAIN))
            };
            tokio::join!(client.inner().acquire(&first, IN_VAIN / 2), others).1
        });
        assert_eq!(hasty.unwrap_err().effect(), Effect::Unknown);
        granted(patient);
    });
}

/// Runs a test of each facade, all at the same time: they mostly wait.
fn for_each_facade(test: impl Fn(&str, fn(&str) -> Facade) + Sync) {
    within("the facades", || {
        thread::scope(|scope| FACADES.iter().for_each(|(facade, connect)| _ = scope.spawn(|| test(facade, *connect))));
    });
}

/// Takes a lock. On a busy machine the replica may be late at first.
fn acknowledged<'a>(facade: &'a Facade, name: &str) -> Held<'a> {
    wait_for("a lock that the replica acknowledges", || facade.acquire_within(name, TTL, TTL).ok())
}

#[test]
fn who_is_not_acknowledged_gets_nothing_leaves_nothing_and_loses_what_it_has() {
    for_each_facade(|facade, connect| {
        let (primary, [replica], url) = replicated::<1>();
        let client = connect(&url);
        // Several renewals fit into this ttl, and one of them has its answer in time on a busy machine as well.
        let held =
            wait_for("a lock that the replica acknowledges", || client.acquire_within("held", TTL * 2, TTL).ok());
        replica.stop();
        let refused = client.acquire_within("a", TTL, TTL / 2).err();
        assert!(
            matches!(&refused, Some(AcquireError::Backend(error)) if error.to_string().contains("0 of 1 replicas")),
            "{facade}: {refused:?}"
        );
        wait_for("the lock that was not acknowledged is free", || {
            primary.command::<Vec<String>>(&["KEYS", "a"]).is_empty().then_some(())
        });
        // The reason may be known a moment later than the end.
        wait_for("the end of the lease that is not renewed, and why", || {
            held.loss().filter(|lost| lost.to_string().contains("0 of 1 replicas"))
        });
        replica.resume();
    });
}

#[test]
fn a_hand_over_counts_once_the_replica_has_it() {
    for_each_facade(|facade, connect| {
        let (primary, [replica], url) = replicated::<1>();
        let (one, other) = (connect(&url), connect(&url));
        hand_over(&one, &other, || assert!(replica.command::<Option<String>>(&["GET", "a"]).is_some(), "{facade}"));

        // The holder does not wait for replicas, so the waiter is notified of its grant at once.
        let holder = connect(&primary.url());
        let held = holder.acquire("a", TTL);
        within("the waiter's answer", || {
            thread::scope(|scope| {
                let waiter = scope.spawn(|| other.acquire_within("a", TTL, TTL).err());
                let waits = || primary.command::<u64>(&["LLEN", "leasehold:{a}:q"]) == 1;
                eventually("the other waits", waits);
                replica.stop();
                held.release();
                let refused = waiter.join().unwrap();
                assert!(
                    matches!(&refused, Some(AcquireError::Backend(error)) if error.to_string().contains("0 of 1")),
                    "{facade}: {refused:?}"
                );
            });
        });
        replica.resume();
    });
}

fn hand_over(one: &Facade, other: &Facade, check: impl Fn() + Sync) {
    let held = acknowledged(one, "a");
    within("a hand-over", || {
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let held = acknowledged(other, "a");
                check();
                held.release();
            });
            thread::sleep(Duration::from_millis(100));
            held.release();
            waiter.join().unwrap();
        });
    });
}

#[test]
fn a_primary_that_is_cut_off_lends_nothing_that_its_replica_may_lend() {
    for (facade, connect) in BOTH {
        for (option, expected) in [("", 2), ("?replicas=1", 1)] {
            let (mut primary, [replica], _) = replicated::<1>();
            let old = connect(&format!("{}{option}", primary.url()));
            // The link is cut: the replica keeps its data, and follows nobody.
            replica.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
            eventually("the primary is alone", || info(&primary, "connected_slaves:") == "0");
            let mut holders = usize::from(old.acquire(&claim("job"), IN_VAIN).is_ok());
            primary.kill();
            promote(&replica);
            holders += usize::from(connect(&replica.url()).acquire(&claim("job"), SOON).is_ok());
            assert_eq!(holders, expected, "{facade} with \"{option}\"");
        }
    }
}

#[test]
fn a_refused_wait_is_no_acknowledgement() {
    let (primary, [_replica], url) = replicated::<1>();
    primary.command::<()>(&["ACL", "SETUSER", "default", "-wait"]);
    for (facade, client) in both(&url) {
        let error = client.acquire(&claim(facade), SOON).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::Unknown), "{facade}: {error}");
        assert!(error.to_string().contains("+wait"), "{facade}: {error}");
        let (holder, _) = take(&BOTH[0].1(&primary.url()), "held");
        let waiter = Claim { queueing: Queueing::Wanted, ..claim("held") };
        assert!(client.acquire(&waiter, SOON).is_ok(), "{facade}: a place needs no acknowledgement");
        for claim in [waiter, holder] {
            client.release(&release_of(&claim, Certainty::Answered), SOON).unwrap();
        }
    }
}

#[test]
fn a_node_of_a_quorum_waits_for_no_replicas() {
    let config = RedisConfig::from_url("redis://h:1?replicas=1").unwrap();
    let refused = [
        node::nonblocking::RedisNode::new(&config, "h:1").map(drop),
        node::blocking::RedisNode::new(&config, "h:1").map(drop),
    ];
    for error in refused.map(Result::unwrap_err) {
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None));
        assert!(error.to_string().contains("h:1: its URL has the option replicas"), "{error}");
    }
}

#[test]
fn too_few_replicas_are_warned_of_on_connecting() {
    let primary = server();
    for (wanted, count) in [(1, 1), (2, 1)] {
        let url = format!("{}?replicas={wanted}", primary.url());
        let config = RedisConfig::from_url(&url).unwrap();
        let client = bridged(async || nonblocking::Redis::connect(&config).await.unwrap());
        let told = client.warnings();
        assert!(
            told.len() == count && told[0].contains(&format!("only 0 of the {wanted} connected replicas")),
            "{told:?}"
        );
    }
    for (facade, client) in both(&format!("{}?replicas=1", primary.url())) {
        let error = client.acquire(&claim(facade), IN_VAIN).unwrap_err().to_string();
        assert!(error.contains("0 of 1 replicas") && error.contains("the server had 0"), "{facade}: {error}");
    }
}
