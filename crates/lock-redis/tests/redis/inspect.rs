//! Looking at locks, and ending leases.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::inspect::{Query, Revoked};
use lock_core::{BlockingBackend, Claim, ErrorKind, FencingToken, Holder, Renewed, Terms};
use test_support::RedisServer;

use crate::queue::queue;
use crate::support::{Client, SOON, both, claim, eventually, granted, operator, take};

fn client(url: &str) -> Client {
    let [(_, client), _] = both(url);
    client
}

/// All names that match, page by page.
pub(crate) fn names(inspect: &dyn BlockingBackend, pattern: &str, limit: u32) -> BTreeSet<String> {
    let mut query = Query::matching(pattern).limit(limit);
    let mut names = BTreeSet::new();
    loop {
        let page = inspect.list(&query, SOON).unwrap();
        names.extend(page.entries.iter().map(|entry| entry.name.as_str().to_owned()));
        match page.next {
            Some(next) => query = query.after(next),
            None => return names,
        }
    }
}

#[test]
fn a_holder_is_seen_with_its_note_and_its_times() {
    let server = RedisServer::start();
    let client = client(&server.url());
    let (_, lease) = take(&client, "job");
    server.command::<()>(&["SET", "plain", "c2VjcmV0"]);
    server.command::<()>(&["RPUSH", "list", "1"]);
    for (_, inspect) in both(&server.url()) {
        let seen = |name: &str| inspect.holder(&name.parse().unwrap(), SOON);
        let job = seen("job").unwrap().unwrap();
        assert!(job.remaining.unwrap() > Duration::from_secs(20));
        assert!(job.holders[0].age.unwrap() < Duration::from_secs(20));
        match job.holder {
            Holder::Leasehold { tokens, note } => assert_eq!((tokens, note.why()), (lease.tokens, "testing")),
            Holder::Foreign => panic!("ours is foreign"),
        }
        let ahead = lock_host::since_1970().as_secs() + 3600;
        for (note, age) in
            [("1@here testing".to_owned(), None), (format!("{ahead}~1@here testing"), Some(Duration::ZERO))]
        {
            let value = format!("lh1:{}:7:9:{note}", "ab".repeat(16));
            server.command::<()>(&["SET", "job2", &value]);
            let held = seen("job2").unwrap().unwrap().holders.remove(0);
            assert_eq!((held.holder.to_string().as_str(), held.age), ("pid 1 on here (testing)", age));
        }
        let plain = seen("plain").unwrap().unwrap();
        assert_eq!((plain.holder, plain.remaining), (Holder::Foreign, None));
        assert_eq!(plain.holders[0].age, None);
        assert_eq!(seen("nothing").unwrap(), None);
        assert_eq!(seen("list").unwrap_err().kind(), ErrorKind::OtherKind);
    }
}

#[test]
fn a_listing_finds_every_lock_of_ours_and_nothing_else() {
    let server = RedisServer::start();
    let (bare, shop) = (client(&server.url()), client(&format!("{}?prefix=shop", server.url())));
    let all: BTreeSet<String> = (0..400).map(|i| format!("inv[{i}]")).collect();
    for name in &all {
        take(&bare, name);
    }
    take(&bare, "späte");
    take(&shop, "inv[1]");
    server.command::<()>(&["SET", "inv[foreign]", "c2VjcmV0"]);
    server.command::<()>(&["HSET", "inv[hash]", "a", "1"]);
    for (_, inspect) in both(&server.url()) {
        let mut expected = all.clone();
        expected.extend(["späte".to_owned(), "shop:inv[1]".to_owned()]);
        assert_eq!(names(&*inspect, "*", 50), expected);
        assert_eq!(names(&*inspect, "inv[*", 1), all);
        assert_eq!(names(&*inspect, "inv[3]", 100), BTreeSet::from(["inv[3]".to_owned()]));
        assert_eq!(names(&*inspect, "sp?te", 100), BTreeSet::from(["späte".to_owned()]));
        assert_eq!(names(&*inspect, "leasehold*", 100), BTreeSet::new());
        let query = Query::all().limit(50);
        let page = inspect.list(&query, SOON).unwrap();
        assert!((1..400).contains(&page.entries.len()), "{}", page.entries.len());
    }
    for (_, inspect) in both(&format!("{}?prefix=shop", server.url())) {
        assert_eq!(names(&*inspect, "*", 50), BTreeSet::from(["inv[1]".to_owned()]));
    }
}

#[test]
fn a_lease_is_ended_by_its_token_only() {
    let server = RedisServer::start();
    let client = client(&server.url());
    for (facade, inspect) in both(&server.url()) {
        let (_, lease) = take(&client, facade);
        let other = FencingToken::new(lease.tokens.high().get() + 1).unwrap();
        assert_eq!(inspect.revoke(&lease.name, other, &operator(), SOON).unwrap(), Revoked::NotHeld);
        assert_eq!(inspect.revoke(&lease.name, lease.tokens.low(), &operator(), SOON).unwrap(), Revoked::Revoked);
        assert_eq!(inspect.revoke(&lease.name, lease.tokens.low(), &operator(), SOON).unwrap(), Revoked::NotHeld);
        server.command::<()>(&["SET", facade, "c2VjcmV0"]);
        assert_eq!(inspect.revoke(&lease.name, lease.tokens.low(), &operator(), SOON).unwrap(), Revoked::NotHeld);
        take(&client, &format!("{facade}:next"));
    }
}

/// On a full server, too. A holder that cannot read the note learns that its lease is gone.
#[test]
fn a_revocation_is_remembered_for_as_long_as_the_lease_could_have_lasted_and_for_a_minute() {
    let server = RedisServer::start();
    let client = client(&server.url());
    for (facade, inspect) in both(&server.url()) {
        for (ttl, remembered) in [("30s", 30_001..=60_000), ("5m", 60_001..=300_000)] {
            let terms = Terms::exclusive(ttl.parse().unwrap());
            let lease = granted(client.acquire(&Claim { terms, ..claim(&format!("{facade} {ttl}")) }, SOON));
            server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
            let revoked = inspect.revoke(&lease.name, lease.tokens.high(), &operator(), SOON);
            server.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
            assert_eq!(revoked, Ok(Revoked::Revoked), "{facade}, {ttl}");
            let key = format!("leasehold:{{{}}}:r:{}", lease.name, lease.tokens.high());
            let left: i64 = server.command(&["PTTL", &key]);
            assert!(remembered.contains(&left), "{facade}, {ttl}: {left}");
            server.command::<()>(&["DEL", &key]);
            server.command::<()>(&["LPUSH", &key, "no note"]);
            assert_eq!(client.renew(&[lease], SOON), Ok(vec![Renewed::NotHeld]), "{facade}, {ttl}");
        }
    }
}

/// Waiters do not count if their process died, if their place expired, or if it ends later than any place can.
#[test]
fn the_dead_are_not_counted_as_waiters() {
    let server = RedisServer::start();
    let client = client(&server.url());
    take(&client, "job");
    queue(&client, "job");
    let channels = || server.command::<Vec<String>>(&["PUBSUB", "CHANNELS", "leasehold:inbox:*"]).len();
    let dead = both(&server.url()).map(|(_, dead)| {
        queue(&dead, "job");
        dead
    });
    let waiters =
        |inspect: &dyn BlockingBackend| inspect.holder(&"job".parse().unwrap(), SOON).unwrap().unwrap().waiters;
    let [(_, on_tokio), (_, plain)] = both(&server.url());
    assert_eq!([waiters(&*on_tokio), waiters(&*plain)], [3, 3]);
    let with_the_dead = channels();
    drop(dead);
    eventually("the dead are gone", || channels() == with_the_dead - 2);
    for (owner, over) in [("0a", "1"), ("0b", "9007199254740991")] {
        let entry = format!("{over} 30000 1 0 - n1 1@here dead");
        server.command::<()>(&["HSET", "leasehold:{job}:w", &owner.repeat(16), &entry]);
    }
    let query = Query::all().limit(50);
    for (facade, inspect) in [("async", on_tokio), ("blocking", plain)] {
        assert_eq!(waiters(&*inspect), 1, "{facade}");
        let listed: Vec<u32> = inspect.list(&query, SOON).unwrap().entries.iter().map(|entry| entry.waiters).collect();
        assert_eq!(listed, [1], "{facade}");
    }
}
