//! A primary that sentinels name and replace.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use lock_core::{BackendError, Certainty, Claim, ErrorKind, EventSink, Queueing, Renewed, StoreEvent};
use lock_redis::{RedisConfig, blocking, nonblocking};
use test_support::bounds::wait_for;
use test_support::sentinels::{MASTER, PASSWORDS, server, url_of};
use test_support::{RedisServer, Sentinel, Trio};

use crate::dwell::dwells;
use crate::facades::{Facade, on_threads, on_tokio};
use crate::support::{BOTH, SOON, both, claim, draw, eventually, hand_over, refusals, release_of, take};

/// Longer than any outage in these tests.
const TTL: Duration = Duration::from_secs(30);

#[test]
fn locks_are_at_the_server_that_a_sentinel_names() {
    let server = server(&[]);
    let sentinel = Sentinel::watching(&server);
    let url = url_of(&[sentinel.port()]).replace(MASTER, &format!("{MASTER}/3")) + "&prefix=shop";
    for (facade, client) in both(&url) {
        let (claim, lease) = take(&client, facade);
        let mut connection = server.connection();
        redis::cmd("SELECT").arg(3).exec(&mut connection).unwrap();
        let stored: bool = redis::cmd("EXISTS").arg(format!("shop:{facade}")).query(&mut connection).unwrap();
        assert!(stored, "{facade}");
        // No server is trusted to have seen all tokens.
        redis::cmd("SET").arg("leasehold:counter").arg(5).exec(&mut connection).unwrap();
        assert!(draw(&client, "another") > lease.tokens.high(), "{facade}");
        assert!(matches!(client.renew(&[lease], SOON).unwrap()[..], [Renewed::Renewed { .. }]), "{facade}");
        client.release(&release_of(&claim, Certainty::Answered), SOON).unwrap();
        hand_over(&client, facade);
    }
}

#[test]
fn free_locks_of_a_deployment_that_nobody_has_declared_new_are_not_granted_at_first() {
    let server = server(&[]);
    let sentinel = Sentinel::watching(&server);
    for (_, client) in both(&url_of(&[sentinel.port()]).replace("&failover=grant", "")) {
        dwells(client.acquire(&claim("a"), SOON));
    }
}

#[track_caller]
pub(crate) fn are_refused(url: &str, kind: ErrorKind, words: &[&str]) {
    for error in refusals(url) {
        assert_eq!(error.kind(), kind, "{error}");
        let text = format!("{error} {error:?}");
        assert!(words.iter().all(|word| text.contains(word)), "{text} lacks one of {words:?}");
        assert!(![PASSWORDS.0, PASSWORDS.1, "wrong"].iter().any(|secret| text.contains(secret)), "{text}");
    }
}

/// Whether connecting went well. It may only fail because its time was over.
#[track_caller]
fn passes<C>(outcome: Result<C, BackendError>) -> bool {
    let late = [ErrorKind::Unreachable, ErrorKind::Timeout];
    outcome.inspect_err(|error| assert!(late.contains(&error.kind()), "{error}")).is_ok()
}

#[test]
fn what_is_wrong_with_a_url_of_sentinels_is_said() {
    let server = server(&[]);
    let sentinel = Sentinel::watching(&server);
    let (port, good) = (sentinel.port(), url_of(&[sentinel.port()]));
    let at = format!("127.0.0.1:{port}");
    are_refused(&good.replace(MASTER, "cache"), ErrorKind::Config, &["no primary named \"cache\"; it knows mymaster"]);
    let password = good.replace(PASSWORDS.0, "wrong");
    are_refused(&password, ErrorKind::Denied, &[&format!("redis://127.0.0.1:{} refused", server.port())]);
    let password = good.replace(PASSWORDS.1, "wrong");
    are_refused(&password, ErrorKind::Denied, &[&format!("sentinel {at} refused"), "check sentinel_username"]);
    let nobody = good.split('?').next().unwrap();
    are_refused(nobody, ErrorKind::Denied, &["check sentinel_username and sentinel_password"]);
    are_refused(
        &format!("redis+sentinel://127.0.0.1:1,127.0.0.1:2/{MASTER}"),
        ErrorKind::Unreachable,
        &["no sentinel of \"mymaster\" answered", "127.0.0.1:1 refused", "127.0.0.1:2 refused"],
    );
    let ordinary = RedisServer::start();
    let url = format!("redis+sentinel://127.0.0.1:{}/{MASTER}", ordinary.port());
    are_refused(&url, ErrorKind::Config, &["is not a sentinel; use redis:// for an ordinary server"]);
    let url = format!("redis://:{}@{at}", PASSWORDS.1);
    are_refused(&url, ErrorKind::Config, &["is a sentinel; use redis+sentinel://HOST:PORT/NAME"]);
    // One sentinel that does not answer is no obstacle.
    sentinel.stop();
    let other = Sentinel::watching(&server);
    let config = RedisConfig::from_url(&url_of(&[1, port, other.port()])).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Each attempt meets the sentinel that is stopped, and has a second. On a busy machine that can be too little.
    eventually("a client connects on tokio", || passes(runtime.block_on(nonblocking::Redis::connect(&config))));
    eventually("a client connects on threads", || passes(blocking::Redis::connect(&config)));
    sentinel.resume();
}

/// How many clients a server has, besides sentinels and replicas.
fn clients_of(server: &RedisServer) -> usize {
    let list: String = server.command(&["CLIENT", "LIST"]);
    let counts =
        |line: &&str| !line.contains("name=sentinel-") && !line.contains("flags=S") && !line.contains("cmd=client");
    list.lines().filter(counts).count()
}

#[test]
fn a_planned_fail_over_moves_all_clients_at_once_and_none_goes_back() {
    let (trio, stranger) = (Trio::start(), server(&[]));
    // It knows nothing of the others, and stays in the first epoch.
    let lagging = Sentinel::watching(&stranger);
    let ports: Vec<_> = trio.sentinels.iter().chain([&lagging]).map(Sentinel::port).collect();
    let clients = both(&url_of(&ports));
    for (facade, client) in &clients {
        let waiter = Claim { queueing: Queueing::Wanted, ..claim(facade) };
        take(client, facade);
        client.acquire(&waiter, SOON).unwrap();
    }
    let old = trio.fail_over();
    eventually("all clients have left the old primary", || {
        let left = clients_of(old) == 0;
        assert!(left || old.command::<String>(&["INFO", "replication"]).contains("role:master"), "they were sent away");
        left
    });
    let keys = |server: &RedisServer| server.command::<Vec<String>>(&["KEYS", "after-*"]);
    for (facade, client) in &clients {
        take(client, &format!("after-{facade}"));
    }
    let primary = trio.primary();
    assert_eq!((keys(primary).len(), keys(old).len()), (2, 0));
    trio.sentinels.iter().for_each(Sentinel::stop);
    for kind in ["normal", "pubsub"] {
        primary.command::<()>(&["CLIENT", "KILL", "TYPE", kind]);
    }
    for (facade, client) in &clients {
        let mut refused: Option<BackendError> = None;
        eventually("the lagging sentinel is asked", || {
            refused = client.acquire(&claim("later"), SOON).err();
            refused.as_ref().is_some_and(|error| error.to_string().contains("as the primary in epoch 0, but epoch"))
        });
        assert_eq!(refused.unwrap().kind(), ErrorKind::Unavailable, "{facade}");
    }
    assert_eq!(stranger.command::<u64>(&["DBSIZE"]), 0);
    trio.sentinels.iter().for_each(Sentinel::resume);
    for (facade, client) in &clients {
        eventually("the others are asked again", || client.acquire(&claim(&format!("last-{facade}")), SOON));
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "the outage, shown with --nocapture")]
fn a_replicated_lock_survives_its_primary_and_a_waiter_gets_it_afterwards() {
    let mut trio = Trio::start();
    let clients = both(&trio.url());
    let facades = [on_tokio as fn(&str) -> Facade, on_threads].map(|connect| connect(&trio.url()));
    let [one, other] = &facades;
    let held = [one.acquire("a", TTL), other.acquire("b", TTL)];
    thread::scope(|scope| {
        let waiters = [scope.spawn(|| other.acquire("a", TTL)), scope.spawn(|| one.acquire("b", TTL))];
        for server in &trio.servers {
            eventually("locks and places are replicated", || server.command::<u64>(&["EXISTS", "a", "b"]) == 2);
            let queues = ["EXISTS", "leasehold:{a}:q", "leasehold:{b}:q"];
            eventually("locks and places are replicated", || server.command::<u64>(&queues) == 2);
        }
        let killed_at = Instant::now();
        let killed = trio.kill_primary();
        let outages = clients.each_ref().map(|(facade, client)| {
            eventually("a free lock is granted", || client.acquire(&claim(&format!("free-{facade}")), SOON));
            killed_at.elapsed()
        });
        println!("from SIGKILL to the first grant: {outages:?}");
        trio.wait_for_another_than(killed);
        for held in held {
            assert!(held.is_stored(), "a replicated lock was lost");
            held.end().unwrap();
        }
        for waiter in waiters {
            waiter.join().unwrap().end().unwrap();
        }
    });
}

#[test]
fn a_lock_that_the_old_primary_hands_over_later_is_not_taken() {
    let trio = Trio::start();
    let (old, clients) = (trio.primary(), both(&trio.url()));
    let holder = &BOTH[1].1(&old.url());
    let told = clients.each_ref().map(|(facade, client)| {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        client.listen(EventSink::new(move |event| heard.lock().unwrap().push(event)));
        let (held, _) = take(holder, facade);
        let waiter = Claim { queueing: Queueing::Wanted, ..claim(facade) };
        client.acquire(&waiter, SOON).unwrap();
        eventually("the old primary can notify the waiter", || {
            client.acquire(&waiter, SOON).unwrap();
            let addresses: Vec<String> = old.command(&["PUBSUB", "CHANNELS", "leasehold:inbox:*"]);
            // One for all clients, and one for each that listens.
            addresses.len() == if *facade == "async" { 2 } else { 3 }
        });
        client.acquire(&waiter, SOON).unwrap();
        (told, held)
    });
    old.command::<()>(&["CLIENT", "PAUSE", "20000", "WRITE"]);
    thread::scope(|scope| {
        for (_, held) in &told {
            scope.spawn(|| holder.release(&release_of(held, Certainty::Answered), SOON * 3));
        }
        thread::sleep(Duration::from_millis(200));
        // Answers to these are awaited over the connections to the old primary.
        for (facade, client) in &clients {
            for number in 0..3 {
                scope.spawn(move || client.acquire(&claim(&format!("{facade}-{number}")), SOON * 3));
            }
        }
        thread::sleep(Duration::from_millis(200));
        told.iter().for_each(|(told, _)| told.lock().unwrap().clear());
        trio.fail_over();
        for (told, _) in &told {
            eventually("the client has heard", || told.lock().unwrap().contains(&StoreEvent::RecheckAll));
        }
        old.command::<()>(&["CLIENT", "UNPAUSE"]);
    });
    thread::sleep(Duration::from_millis(200));
    for ((told, _), (facade, _)) in told.iter().zip(&clients) {
        let told = told.lock().unwrap();
        assert!(!told.iter().any(|event| matches!(event, StoreEvent::Granted { .. })), "{facade}: {told:?}");
    }
}

/// A sentinel that names the primary of a trio, and does not hear of its fail-overs.
fn cut_off(trio: &Trio) -> Sentinel {
    let lonely = Sentinel::watching(trio.primary());
    // It loses its links before the others hear of it.
    let at = redis::Client::open(format!("redis://:{}@127.0.0.1:{}", PASSWORDS.1, lonely.port())).unwrap();
    let set = ["SET", MASTER, "auth-pass", "wrong"];
    redis::cmd("SENTINEL").arg(&set).exec(&mut at.get_connection().unwrap()).unwrap();
    lonely
}

#[test]
fn who_is_not_acknowledged_asks_all_sentinels_in_time_for_its_lease() {
    let trio = Trio::start();
    let lonely = cut_off(&trio);
    // A sentinel is asked every five seconds anyway: the next three turns are of no use.
    let ports: Vec<_> = [lonely.port(), 1, 1, 1].into_iter().chain(trio.sentinels.iter().map(Sentinel::port)).collect();
    let ttl = Duration::from_secs(6);
    let url = url_of(&ports) + "&replicas=1";
    let clients = [on_tokio as fn(&str) -> Facade, on_threads].map(|connect| connect(&url));
    let held = [0, 1].map(|number| {
        let take = || clients[number].acquire_within(&format!("held-{number}"), ttl, ttl).ok();
        wait_for("a lock that a replica acknowledges", take)
    });
    let old = trio.fail_over();
    eventually("the old primary is alone", || {
        old.command::<String>(&["INFO", "replication"]).contains("connected_slaves:0")
    });
    // Longer than a lease that is not renewed lasts.
    let until = Instant::now() + ttl;
    while Instant::now() < until {
        held.iter().for_each(|held| assert!(held.loss().is_none(), "{:?}", held.loss()));
        thread::sleep(Duration::from_millis(50));
    }
    held.into_iter().for_each(|held| held.end().unwrap());
}

#[test]
fn whom_a_cut_off_sentinel_keeps_at_the_old_primary_gets_nothing_there_and_moves_soon() {
    let trio = Trio::start();
    let lonely = cut_off(&trio);
    let ports: Vec<_> = [&lonely].into_iter().chain(&trio.sentinels).map(Sentinel::port).collect();
    let clients = both(&(url_of(&ports) + "&replicas=1"));
    for (facade, client) in &clients {
        eventually("replicas acknowledge", || client.acquire(&claim(&format!("before-{facade}")), SOON));
    }
    let old = trio.fail_over();
    eventually("the old primary is alone", || {
        old.command::<String>(&["INFO", "replication"]).contains("connected_slaves:0")
    });
    for (facade, client) in &clients {
        let (mut name, mut number) = (String::new(), 0);
        eventually("a lock is granted", || {
            number += 1;
            name = format!("after-{facade}-{number}");
            client.acquire(&claim(&name), SOON / 10)
        });
        assert_eq!(trio.primary().command::<u64>(&["EXISTS", &name]), 1, "{facade}: granted elsewhere");
    }
}
