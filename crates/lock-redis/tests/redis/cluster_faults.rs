//! Clusters whose hash slots move and whose primaries are replaced.

use std::thread;
use std::time::{Duration, Instant};

use lock_core::{Answer, Effect, ErrorKind, Renewed};
use test_support::bounds::within;
use test_support::{Cluster, RedisServer};

use crate::cluster_keys::evals;
use crate::dwell::{asks, tells_dwell};
use crate::facades::{Facade, on_threads, on_tokio};
use crate::replicas::calls;
use crate::support::{Client, SOON, both, claim, draw, eventually, granted, take};

/// Longer than any of these tests needs a lock.
const TTL: Duration = Duration::from_secs(30);
/// So short that a lock is lost unless it is renewed.
const SHORT: Duration = Duration::from_secs(3);

fn both_facades(url: &str) -> [Facade; 2] {
    [on_tokio(url), on_threads(url)]
}

/// Names of both facades in one hash slot of this server.
fn named_alike(cluster: &Cluster, server: usize, what: &str) -> [String; 2] {
    let tag = cluster.name_at(server, "tag");
    ["async", "blocking"].map(|facade| format!("{what}-{facade}{{{tag}}}"))
}

#[test]
fn a_lock_survives_the_move_of_its_hash_slot_and_a_planned_fail_over() {
    let cluster = Cluster::start();
    let (url, tag) = (cluster.url(), cluster.name_at(0, "tag"));
    let hash_slot = cluster.hash_slot_of(&tag);
    let (clients, facades) = (both(&url), both_facades(&url));
    let [one, other] = &facades;
    let names = named_alike(&cluster, 0, "held");
    let held = [one.acquire(&names[0], SHORT), other.acquire(&names[1], SHORT)];
    let before = held.each_ref().map(|held| held.token());
    thread::scope(|scope| {
        let waiters = [scope.spawn(|| other.acquire(&names[0], TTL)), scope.spawn(|| one.acquire(&names[1], TTL))];
        let queues = names.each_ref().map(|name| queue_of(&cluster.servers[0], name));
        queues.iter().for_each(|waits| eventually("the other one waits", waits));

        let migration = cluster.migrate(hash_slot, 1);
        migration.move_keys();
        assert!(migration.keys().is_empty());
        for (facade, client) in &clients {
            let error = client.acquire(&claim(&format!("free-{facade}{{{tag}}}")), SOON / 10).unwrap_err();
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{facade}: {error}");
        }
        // Without renewals, the leases would end meanwhile.
        thread::sleep(SHORT * 3 / 2);
        assert!(held.iter().all(|held| held.loss().is_none()), "a lock was lost while its hash slot was on its way");
        migration.finish();
        assert!(held.iter().all(|held| held.is_stored()), "a lock was lost with the end of the move");
        for (facade, client) in &clients {
            eventually("a free lock is granted", || client.acquire(&claim(&format!("free-{facade}{{{tag}}}")), SOON));
        }

        assert_eq!(cluster.fail_over(hash_slot), 1);
        thread::sleep(SHORT / 10);
        for held in held {
            assert_eq!(held.loss().map(|lost| lost.to_string()), None, "a lock was lost by a planned fail-over");
            held.end().unwrap();
        }
        for (waiter, before) in waiters.into_iter().zip(before) {
            let next = within("the waiter", || waiter.join().unwrap());
            assert!(next.token() > before);
            next.end().unwrap();
        }
    });
    assert_eq!(cluster.primary_of(hash_slot), 4);
}

/// Asks whether somebody waits for a lock at a server.
fn queue_of(server: &RedisServer, name: &str) -> impl Fn() -> bool {
    move || server.command::<Vec<String>>(&["KEYS", "leasehold:*q*"]).iter().any(|key| key.contains(name))
}

/// Ends all dwells that the clients of a new deployment began.
fn end_dwells(server: &RedisServer) {
    let keys: Vec<String> = server.command(&["KEYS", "leasehold:*:dwell"]);
    keys.iter().for_each(|key| server.command(&["DEL", key]));
}

/// With and without the protection; the replica never had the lease.
#[test]
#[allow(clippy::print_stdout, reason = "the outage, shown with --nocapture")]
fn a_killed_primary_lends_no_lock_twice_unless_that_is_asked_for() {
    let mut cluster = Cluster::start();
    let grants = cluster.url();
    let dwells = grants.replace("failover=grant", "max_ttl=5s");
    let [lost, elsewhere] = [0, 1].map(|server| named_alike(&cluster, server, "job"));
    let (heeding, careless) = (both(&dwells), both(&grants));
    for ((_, client), name) in careless.iter().zip(&lost) {
        draw(client, name);
    }
    end_dwells(&cluster.servers[0]);
    cluster.cut_replica_of(0);
    let hash_slot = cluster.hash_slot_of(&lost[0]);
    let first: Vec<_> = heeding
        .iter()
        .zip(&lost)
        .map(|((_, client), name)| {
            let claim = asks(name);
            (granted(client.acquire(&claim, SOON)), claim)
        })
        .collect();
    for (facade, client) in both(&format!("{grants}&replicas=1")) {
        let answer =
            client.acquire(&claim(&format!("{facade}{{{}}}", lost[0].split(['{', '}']).nth(1).unwrap())), SOON / 5);
        assert!(answer.is_err(), "{facade}: granted without a replica: {answer:?}");
    }
    let facades = both_facades(&grants);
    let held = [facades[0].acquire(&elsewhere[0], SHORT * 2), facades[1].acquire(&elsewhere[1], SHORT * 2)];

    let killed_at = Instant::now();
    assert_eq!(cluster.kill_primary_of(hash_slot), 0);
    cluster.wait_for_primary(hash_slot, 3);
    println!("from SIGKILL to the new primary: {:?}", killed_at.elapsed());
    for (((_, client), name), (lease, _)) in heeding.iter().zip(&lost).zip(&first) {
        eventually("the new primary is found", || tells_dwell(client, &asks(name)));
        assert!(!matches!(client.renew(std::slice::from_ref(lease), SOON).unwrap()[..], [Renewed::Renewed { .. }]));
    }
    for (((facade, client), name), (lease, _)) in careless.iter().zip(&lost).zip(&first) {
        let second = granted(Ok(eventually("the second holder", || client.acquire(&asks(name), SOON))));
        assert!(second.tokens.low() > lease.tokens.high(), "{facade}: the token did not rise");
        println!("{facade}: a second holder {:?} after SIGKILL", killed_at.elapsed());
    }
    for held in held {
        assert_eq!(held.loss().map(|lost| lost.to_string()), None, "a lock of another primary was lost");
        assert!(held.is_stored());
        held.end().unwrap();
    }
}

/// The client hears of the first move only from the map.
#[test]
fn a_hash_slot_that_came_back_is_verified_again() {
    let cluster = Cluster::start();
    let maps = || cluster.servers.iter().map(|server| calls(server, "cluster|slots")).sum::<u64>();
    for (facade, client) in both(&cluster.url()) {
        let [name, beside] = [0, 2].map(|server| cluster.name_at(server, &format!("back-{facade}")));
        [&name, &beside].into_iter().for_each(|name| _ = draw(&client, name));
        cluster.migrate(cluster.hash_slot_of(&name), 1).finish();
        let before = maps();
        cluster.migrate(cluster.hash_slot_of(&beside), 1).finish();
        // A map that has just been asked for, as it was with the connection, is not asked for again at once.
        thread::sleep(SHORT / 10);
        draw(&client, &beside);
        eventually("the map is asked for", || maps() > before);
        cluster.migrate(cluster.hash_slot_of(&name), 0).finish();
        let before = evals(&cluster.servers[0]);
        draw(&client, &name);
        assert_eq!(evals(&cluster.servers[0]), before + 1, "{facade}");
    }
}

/// It is cut off from the other servers but not from the clients, and answers them that the cluster is down.
#[test]
fn a_primary_that_was_replaced_is_left_although_it_answers() {
    let cluster = Cluster::start();
    let names = named_alike(&cluster, 0, "left");
    let clients = both(&cluster.url());
    let held: Vec<_> = clients.iter().zip(&names).map(|((_, client), name)| take(client, name).1).collect();
    cluster.part_from(0);
    // The map is asked for by itself only after 24 seconds of use.
    for ((facade, client), lease) in clients.iter().zip(&held) {
        let renewed = eventually("a renewal", || client.renew(std::slice::from_ref(lease), SOON));
        assert!(matches!(renewed[..], [Renewed::Renewed { .. }]), "{facade}: {renewed:?}");
    }
}

/// It carries out what it was sent before it hears that it has been replaced.
#[test]
fn a_primary_that_was_replaced_while_it_was_stopped_lends_nothing_to_anybody() {
    let cluster = Cluster::start();
    let names = named_alike(&cluster, 0, "late");
    let hash_slot = cluster.hash_slot_of(&names[0]);
    let (early, later) = (both(&cluster.url()), both(&cluster.url()));
    for ((_, client), name) in early.iter().zip(&names) {
        draw(client, name);
    }
    cluster.notice_soon();
    cluster.servers[0].stop();
    let claims = names.each_ref().map(|name| claim(name));
    for ((facade, client), claim) in early.iter().zip(&claims) {
        let error = client.acquire(claim, SHORT / 10).unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown, "{facade}: {error}");
    }
    cluster.wait_for_primary(hash_slot, 3);
    let granted_by_the_new = |((_, client), name): (&(_, Client), &String)| {
        granted(Ok(eventually("the new primary grants the lock", || client.acquire(&claim(name), SOON / 5))))
    };
    let leases: Vec<_> = later.iter().zip(&names).map(granted_by_the_new).collect();
    cluster.servers[0].resume();
    eventually("the old primary is a replica", || {
        cluster.servers[0].command::<String>(&["INFO", "replication"]).contains("role:slave")
    });
    for (((facade, client), claim), lease) in early.iter().zip(&claims).zip(&leases) {
        let answer = eventually("the early client asks the new primary", || client.acquire(claim, SOON / 5));
        assert!(matches!(answer, Answer::Busy { .. }), "{facade}: {answer:?}");
        let renewed = client.renew(std::slice::from_ref(lease), SOON).unwrap();
        assert!(matches!(renewed[..], [Renewed::Renewed { .. }]), "{facade}: {renewed:?}");
    }
}
