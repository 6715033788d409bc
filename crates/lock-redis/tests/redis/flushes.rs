//! Data that is lost while connections live: one loss makes one dwell.

use std::time::Duration;

use lock_core::LockName;
use test_support::{Cluster, RedisServer};

use crate::dwell::{MAX_TTL, asks, dwelling, dwells, end_dwell, left, takes};
use crate::support::{BOTH, Client, SOON, both, eventually, take};

/// The dwell of clients that allow a ttl of five seconds at most.
const LIFE: std::ops::RangeInclusive<i64> = 10_000..=15_000;

#[test]
fn a_flush_makes_one_dwell_for_the_longest_ttl_that_its_clients_name() {
    for (facade, connect) in BOTH {
        let server = RedisServer::start();
        let url = dwelling(&server);
        let live = connect(&url);
        end_dwell(&server);
        takes(&live, "before");
        server.command::<()>(&["FLUSHALL"]);
        dwells(live.acquire(&asks("job"), SOON));
        assert!(LIFE.contains(&left(&server)), "{facade}: {} ms", left(&server));
        assert_eq!(server.command::<u64>(&["GET", MAX_TTL]), 5000, "{facade}: the next dwell would be shorter");
        ends_once(&server, &live, connect(&url), facade);
    }
}

/// The dwell is over: neither the client that began it nor the next one that connects waits for another one.
#[track_caller]
fn ends_once(server: &RedisServer, live: &Client, next: Client, facade: &str) {
    end_dwell(server);
    takes(live, "job");
    takes(&next, "next");
    assert_eq!(left(server), -2, "{facade}: another dwell began");
}

/// A client that does not heed a dwell begins it for the others.
#[test]
fn a_dwell_that_nobody_met_is_not_begun_again() {
    for (facade, connect) in BOTH {
        let server = RedisServer::start();
        let careless = connect(&server.url());
        server.command::<()>(&["FLUSHALL"]);
        take(&careless, "job");
        assert!((60_000..=70_000).contains(&left(&server)), "{facade}: {} ms", left(&server));
        end_dwell(&server);
        takes(&connect(&dwelling(&server)), "next");
        assert_eq!(left(&server), -2, "{facade}: another dwell began");
    }
}

/// The leases of a client that is not there any more may be longer than those of the client that finds the loss.
#[test]
fn a_dwell_covers_the_ttls_that_were_announced_before_its_client_connected() {
    for (facade, connect) in BOTH {
        let server = RedisServer::start();
        drop(connect(&format!("{}?failover=dwell&max_ttl=300s", server.url())));
        let live = connect(&dwelling(&server));
        server.command::<()>(&["FLUSHALL"]);
        let error = live.acquire(&asks("job"), SOON).expect_err("it was not refused");
        assert!(error.end() > Some(Duration::from_secs(300)), "{facade}: {error}");
    }
}

#[test]
fn a_flushed_hash_slot_makes_one_dwell_too() {
    let cluster = Cluster::of_one();
    let url = cluster.url().replace("failover=grant", "max_ttl=5s");
    let server = &cluster.servers[0];
    let dwell = |name: &LockName| {
        let keys: Vec<String> = server.command(&["KEYS", "leasehold:*:dwell"]);
        let slot = cluster.hash_slot_of(name.as_str());
        keys.into_iter().find(|key| cluster.hash_slot_of(key) == slot)
    };
    for (live, next) in both(&url).into_iter().zip(both(&url)) {
        let ((facade, live), (_, next)) = (live, next);
        let name: LockName = cluster.name_at(0, facade).parse().unwrap();
        let asked = asks(name.as_str());
        dwells(live.acquire(&asked, SOON));
        server.command::<()>(&["FLUSHALL"]);
        dwells(live.acquire(&asked, SOON));
        let key = dwell(&name).expect("no dwell began");
        let life: i64 = server.command(&["PTTL", &key]);
        assert!(LIFE.contains(&life), "{facade}: {life} ms");
        server.command::<()>(&["DEL", &key]);
        eventually("the lock is granted", || live.acquire(&asked, SOON));
        assert!(next.acquire(&asks(name.as_str()), SOON).is_ok(), "{facade}: the next client is refused");
        assert_eq!(dwell(&name), None, "{facade}: another dwell began");
    }
}
