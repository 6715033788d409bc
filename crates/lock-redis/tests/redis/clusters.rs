//! A cluster whose servers stay as they are, and URLs that lead to none.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lock_core::inspect::Revoked;
use lock_core::{Certainty, Effect, ErrorKind, Released, Renewed};
use test_support::bounds::within;
use test_support::sentinels::PASSWORDS;
use test_support::{Cluster, RedisServer, RedisVersion};

use crate::facades::{on_threads, on_tokio};
use crate::inspect::names;
use crate::sentinels::are_refused;
use crate::support::{SOON, both, claim, draw, eventually, hand_over, is_busy, operator, release_of, take};

const TTL: Duration = Duration::from_secs(30);

fn shared() -> Arc<Cluster> {
    Cluster::shared(RedisVersion::Installed)
}

/// A name at each primary.
fn at_each(cluster: &Cluster, stem: &str) -> [String; 3] {
    [0, 1, 2].map(|server| cluster.name_at(server, stem))
}

#[test]
fn each_lock_is_at_the_primary_of_its_hash_slot() {
    let cluster = shared();
    for (facade, client) in both(&cluster.url()) {
        let names = at_each(&cluster, &format!("each-{facade}"));
        let (claims, leases): (Vec<_>, Vec<_>) = names.iter().map(|name| take(&client, name)).unzip();
        for (server, name) in cluster.servers.iter().zip(&names) {
            assert_eq!(server.command::<u64>(&["EXISTS", name]), 1, "{facade}: {name} is elsewhere");
            is_busy(client.acquire(&claim(name), SOON));
        }
        // One request about leases at three servers.
        let renewed = client.renew(&leases, SOON).unwrap();
        assert!(matches!(renewed[..], [Renewed::Renewed { .. }, Renewed::Renewed { .. }, Renewed::Renewed { .. }]));
        for (claim, lease) in claims.iter().zip(&leases) {
            assert_eq!(client.release(&release_of(claim, Certainty::Answered), SOON).unwrap(), Released::Released);
            assert!(draw(&client, claim.name.as_str()) > lease.tokens.high(), "{facade}");
        }
        let gone = client.renew(&leases, SOON).unwrap();
        assert!(gone.iter().all(|answer| !matches!(answer, Renewed::Renewed { .. })), "{facade}: {gone:?}");
        names.iter().for_each(|name| hand_over(&client, name));
    }
}

#[test]
fn names_with_braces_are_locks_like_others() {
    let cluster = shared();
    for (facade, client) in both(&cluster.url()) {
        for name in ["{T}", "a{T}b", "a{b", "b}a{", "{}a", "{}{T}", "a{{T}}"] {
            hand_over(&client, &format!("{name}-{facade}"));
        }
    }
}

#[test]
fn a_waiter_is_told_by_the_server_of_its_lock() {
    let cluster = shared();
    let (one, other) = (on_tokio(&cluster.url()), on_threads(&cluster.url()));
    for name in at_each(&cluster, "told") {
        for (holder, waiter) in [(&one, &other), (&other, &one)] {
            let held = holder.acquire(&name, TTL);
            within("a hand-over", || {
                thread::scope(|scope| {
                    let waiting = scope.spawn(|| waiter.acquire(&name, TTL).end());
                    let queue = format!("leasehold:{{{name}}}:q");
                    eventually("the other one waits", || {
                        cluster.servers[..3].iter().any(|server| waits_at(server, &queue))
                    });
                    held.end().unwrap();
                    waiting.join().unwrap().unwrap();
                });
            });
        }
    }
}

/// Whether a server has a key. One that belongs to another server is not there.
fn waits_at(server: &RedisServer, key: &str) -> bool {
    redis::cmd("EXISTS").arg(key).query(&mut server.connection()).unwrap_or(false)
}

#[test]
fn locks_at_all_primaries_are_listed_and_ended() {
    let cluster = shared();
    let [(_, client), _] = both(&cluster.url());
    let held = at_each(&cluster, "listed");
    let leases = held.each_ref().map(|name| take(&client, name).1);
    let expected: BTreeSet<_> = held.iter().cloned().collect();
    for (facade, inspect) in both(&cluster.url()) {
        assert_eq!(names(&*inspect, "listed-*", 1), expected, "{facade}");
        let entry = inspect.holder(&leases[1].name, SOON).unwrap().unwrap();
        assert_eq!(entry.name, leases[1].name, "{facade}");
    }
    let [(_, inspect), _] = both(&cluster.url());
    for lease in &leases {
        let revoked = inspect.revoke(&lease.name, lease.tokens.high(), &operator(), SOON).unwrap();
        assert!(matches!(revoked, Revoked::Revoked), "{revoked:?}");
        assert_eq!(inspect.holder(&lease.name, SOON).unwrap(), None);
    }
}

#[test]
fn what_is_wrong_with_a_url_of_a_cluster_is_said() {
    let cluster = shared();
    let good = cluster.url();
    let node = &cluster.servers[0];
    let standalone = RedisServer::start();
    let url = format!("redis+cluster://127.0.0.1:{}", standalone.port());
    are_refused(&url, ErrorKind::Config, &["cluster", "redis://"]);
    are_refused(&node.url(), ErrorKind::Unsupported, &["belongs to a cluster", "redis+cluster://"]);
    are_refused(&good.replace(PASSWORDS.0, "wrong"), ErrorKind::Denied, &["refused user and password"]);
    let nobody = good.replace(&format!(":{}@", PASSWORDS.0), "");
    are_refused(&nobody, ErrorKind::Denied, &["NOAUTH"]);
    are_refused(
        "redis+cluster://127.0.0.1:1,127.0.0.1:2",
        ErrorKind::Unreachable,
        &["127.0.0.1:1 refused", "127.0.0.1:2 refused"],
    );
}

#[test]
fn one_server_that_answers_is_enough_to_find_the_others() {
    let cluster = shared();
    let names = at_each(&cluster, "seeds");
    let replica = format!("127.0.0.1:1,127.0.0.1:{}", cluster.servers[5].port());
    for (_, client) in both(&format!("redis+cluster://:{}@{replica}?failover=grant", PASSWORDS.0)) {
        names.iter().for_each(|name| _ = draw(&client, name));
    }
}

#[test]
fn a_hash_slot_that_no_server_has_is_unavailable() {
    let cluster = Cluster::of_one();
    let server = &cluster.servers[0];
    let (there, nowhere) = ("there", cluster.hash_slot_of("nowhere"));
    server.command::<()>(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    server.command::<()>(&["CLUSTER", "DELSLOTS", &nowhere.to_string()]);
    for (facade, client) in both(&cluster.url()) {
        let error = client.acquire(&claim("nowhere"), SOON / 5).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{facade}: {error}");
        draw(&client, there);
    }
}
