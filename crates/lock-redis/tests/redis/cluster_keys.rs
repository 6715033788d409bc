//! What a primary of a cluster stores, and how its hash slots are verified. A cluster of one server is a whole cluster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lock_core::inspect::Query;
use lock_core::latch::{self, Watching};
use lock_core::{
    Answer, BlockingBackend, Certainty, Claim, ErrorKind, Evidence, Fenced, Lease, Limit, Mode, Queueing,
    ReleaseRequest, Released, Renewed, limit,
};
use lock_redis::{RedisConfig, blocking, declare_new, nonblocking};
use test_support::{Cluster, RedisServer};

use crate::dwell::{asks, dwells, tells_dwell, valid};
use crate::replicas::calls;
use crate::support::{Client, SOON, bridged, claim, eventually, granted, hand_over, release_of, take};

/// Names with a hash tag, without one, and with braces that are none.
const NAMES: [&str; 7] = ["plain", "a{tag}b", "{tag}", "a}b{", "{}{tag}", "a{b", "{b}:latch"];

fn on_threads(url: &str) -> Arc<blocking::Redis> {
    Arc::new(blocking::Redis::connect(&RedisConfig::from_url(url).unwrap()).unwrap())
}

fn both(url: &str) -> [(&'static str, Client); 2] {
    let config = RedisConfig::from_url(url).unwrap();
    let on_tokio = bridged(async || nonblocking::Redis::connect(&config).await.unwrap());
    [("async", Arc::new(on_tokio)), ("blocking", on_threads(url))]
}

/// A client that heeds dwells, with a short longest ttl.
fn dwelling(cluster: &Cluster) -> String {
    cluster.url().replace("failover=grant", "failover=dwell&max_ttl=5s")
}

fn hash_slot(server: &RedisServer, key: &str) -> u16 {
    server.command(&["CLUSTER", "KEYSLOT", key])
}

/// The keys that the locks in the hash slot of a name share.
fn shared_keys(server: &RedisServer, name: &str) -> BTreeSet<String> {
    let all: Vec<String> = server.command(&["KEYS", "leasehold:{*"]);
    let shared = |key: &String| key.rsplit_once("}:").is_some_and(|(_, end)| SHARED.contains(&end));
    all.into_iter().filter(|key| shared(key) && hash_slot(server, key) == hash_slot(server, name)).collect()
}

const SHARED: [&str; 4] = ["counter", "incarnation", "dwell", "max_ttl"];

#[test]
fn names_with_any_braces_are_used_in_every_way() {
    let cluster = Cluster::of_one();
    let server = &cluster.servers[0];
    for (facade, client) in both(&cluster.url()) {
        for name in NAMES {
            hand_over(&client, name);
            use_together(&client, name, Mode::Shared);
            use_together(&client, name, Mode::permits(1, 4).unwrap());
            take(&client, &format!("{name} {facade}"));
        }
    }
    let client = on_threads(&cluster.url());
    for name in NAMES {
        set_limit(&client, name);
        arrive(&client, name);
    }
    let places = NAMES.iter().flat_map(|name| [name.to_string(), format!("{name} async"), format!("{name} blocking")]);
    let places: BTreeSet<_> = places.map(|name| hash_slot(server, &name)).collect();
    let keys: Vec<String> = server.command(&["KEYS", "*"]);
    assert!(keys.len() > 100, "{keys:?}");
    for key in keys {
        assert!(places.contains(&hash_slot(server, &key)), "{key}");
    }
}

/// Two leases share the name, are renewed and checked, and one after the other is released.
fn use_together(client: &Client, name: &str, mode: Mode) {
    let claims = [claim(name).in_mode(mode), claim(name).in_mode(mode)];
    let leases = claims.each_ref().map(|claim| granted(client.acquire(claim, SOON)));
    let renewed = client.renew(&leases, SOON).unwrap();
    assert!(renewed.iter().all(|renewed| matches!(renewed, Renewed::Renewed { .. })), "{name}: {renewed:?}");
    assert_eq!(client.fence(&leases[0], SOON).unwrap(), Fenced::Acknowledged, "{name}");
    let waiter = Claim { queueing: Queueing::Wanted, ..claim(name) };
    if mode == Mode::Shared {
        assert!(matches!(client.acquire(&waiter, SOON), Ok(Answer::Queued { .. })), "{name}");
    }
    for claim in &claims {
        assert_eq!(client.release(&release_of(claim, Certainty::Unknown), SOON).unwrap(), Released::Released, "{name}");
    }
    assert_eq!(client.renew(&leases[..1], SOON).unwrap(), [Renewed::NotHeld], "{name}");
    if mode == Mode::Shared {
        granted(client.acquire(&waiter, SOON));
        client.release(&release_of(&waiter, Certainty::Answered), SOON).unwrap();
    }
}

fn set_limit(client: &blocking::Redis, name: &str) {
    let (known, act) = (Limit::new(4).unwrap(), limit::Act::Set(Limit::new(9).unwrap()));
    let request = limit::Request { name: name.parse().unwrap(), known, act };
    assert_eq!(client.limit(&request, SOON).unwrap().limit.get(), 9, "{name}");
}

fn arrive(client: &blocking::Redis, name: &str) {
    let ask = |act| {
        let request = latch::Request { name: name.parse().unwrap(), act };
        client.latch(&request, SOON).unwrap().state.unwrap()
    };
    let arrival = latch::Act::Arrive { id: "x".parse().unwrap(), call: 1, ttl: "1m".parse().unwrap() };
    assert_eq!((ask(arrival).arrived, ask(latch::Act::Look { watching: Watching::Wanted }).arrived), (1, 1), "{name}");
}

#[test]
fn many_locks_are_renewed_and_listed_whatever_their_hash_slots() {
    let cluster = Cluster::of_one();
    let client = on_threads(&cluster.url());
    let names: BTreeSet<_> = (0..150).map(|number| format!("many:{number}")).collect();
    let as_client: Client = Arc::clone(&client) as Client;
    let leases: Vec<Lease> = names.iter().map(|name| take(&as_client, name).1).collect();
    for (facade, client) in both(&cluster.url()) {
        // A script that the server has forgotten is loaded again.
        cluster.servers[0].command::<()>(&["SCRIPT", "FLUSH"]);
        let renewed = client.renew(&leases, SOON).unwrap();
        assert!(renewed.len() == 150 && renewed.iter().all(|renewed| *renewed != Renewed::NotHeld), "{facade}");
        let mut other = leases[3].clone();
        other.owner = lock_host::new_owner().unwrap();
        let renewed = client.renew(&[leases[2].clone(), other, leases[4].clone()], SOON).unwrap();
        assert_eq!(renewed.iter().position(|renewed| *renewed == Renewed::NotHeld), Some(1), "{facade}");
    }
    let waiter = Claim { queueing: Queueing::Wanted, ..claim("many:7") };
    assert!(matches!(as_client.acquire(&waiter, SOON), Ok(Answer::Queued { .. })));
    for listed in [listed(&client), listed_on_tokio(&cluster.url())] {
        assert_eq!(listed.iter().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>(), names);
        assert!(listed.iter().all(|(name, waiters)| *waiters == u32::from(name == "many:7")), "{listed:?}");
    }
}

fn listed(client: &blocking::Redis) -> Vec<(String, u32)> {
    let (mut query, mut all) = (Query::all(), Vec::new());
    loop {
        let page = client.list(&query, SOON).unwrap();
        all.extend(page.entries.iter().map(|entry| (entry.name.to_string(), entry.waiters)));
        let Some(next) = page.next else { return all };
        query.cursor = Some(next);
    }
}

fn listed_on_tokio(url: &str) -> Vec<(String, u32)> {
    let config = RedisConfig::from_url(url).unwrap();
    let client = bridged(async || nonblocking::Redis::connect(&config).await.unwrap());
    let (mut query, mut all) = (Query::all(), Vec::new());
    loop {
        let page = client.list(&query, SOON).unwrap();
        all.extend(page.entries.iter().map(|entry| (entry.name.to_string(), entry.waiters)));
        let Some(next) = page.next else { return all };
        query.cursor = Some(next);
    }
}

#[test]
fn each_hash_slot_dwells_when_it_is_first_used_and_after_a_restart() {
    let mut cluster = Cluster::of_one();
    for (facade, client) in both(&dwelling(&cluster)) {
        let [name, beside, free, elsewhere] =
            ["{1}", "{1}:2", "{1}:3", "{3}"].map(|end| end.replace('{', &format!("{{{facade}")));
        assert_eq!(shared_keys(&cluster.servers[0], &name).len(), 0);
        dwells(client.acquire(&asks(&name), SOON));
        let keys = shared_keys(&cluster.servers[0], &name);
        assert_eq!(keys.len(), 4, "{keys:?}");
        let dwell = keys.iter().find(|key| key.ends_with(":dwell")).unwrap();
        assert!((10_000..=15_000).contains(&cluster.servers[0].command::<i64>(&["PTTL", dwell])), "{facade}");
        dwells(client.acquire(&asks(&beside), SOON));
        cluster.servers[0].command::<()>(&["DEL", dwell]);
        let [held, _] = [&name, &beside].map(|name| {
            let claim = asks(name);
            granted(client.acquire(&claim, SOON));
            claim
        });
        dwells(client.acquire(&asks(&elsewhere), SOON));
        // Another client finds it verified.
        let (_, other) = both(&dwelling(&cluster)).into_iter().next().unwrap();
        let waiter = Claim { queueing: Queueing::Wanted, ..asks(&name) };
        assert!(matches!(other.acquire(&waiter, SOON), Ok(Answer::Queued { .. })), "{facade}");
        assert_eq!(client.release(&valid(&held), SOON).unwrap(), Released::Released);
        granted(other.acquire(&waiter, SOON));

        cluster.servers[0].restart_with_data();
        eventually("the cluster serves again", || tells_dwell(&client, &asks(&free)));
    }
    assert_eq!(cluster.servers[0].command::<Vec<String>>(&["KEYS", "leasehold:[^{]*"]), [""; 0]);
}

/// A hash slot that was verified once is not verified again by the same connection.
#[test]
fn verifying_costs_one_request_for_each_hash_slot() {
    let cluster = Cluster::of_one();
    let server = &cluster.servers[0];
    for (facade, client) in both(&cluster.url()) {
        let name = format!("{{{facade}}}");
        let (first, _) = take(&client, &name);
        let before = evals(server);
        for number in 0..3 {
            let (claim, _) = take(&client, &format!("{name}{number}"));
            client.release(&release_of(&claim, Certainty::Answered), SOON).unwrap();
        }
        let release = ReleaseRequest { evidence: Evidence::ValidHold, ..release_of(&first, Certainty::Answered) };
        assert_eq!(client.release(&release, SOON).unwrap(), Released::Released);
        assert_eq!(evals(server), before, "{facade}");
        take(&client, &format!("{facade} elsewhere"));
        assert_eq!(evals(server), before + 1, "{facade}");
    }
}

/// How many scripts were sent with their texts.
pub(crate) fn evals(server: &RedisServer) -> u64 {
    calls(server, "eval")
}

#[test]
fn a_cluster_that_is_declared_new_grants_the_locks_of_all_hash_slots() {
    let cluster = Cluster::of_one();
    let [(_, client), (_, other)] = both(&dwelling(&cluster));
    dwells(client.acquire(&asks("first"), SOON));
    let config = RedisConfig::from_url(&dwelling(&cluster)).unwrap();
    let (_, granting) = both(&cluster.url()).into_iter().next().unwrap();
    let (held, _) = take(&granting, "held");
    let error = declare_new(&config).unwrap_err();
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("\"held\" is held"), "{error}");
    dwells(client.acquire(&asks("first"), SOON));
    granting.release(&release_of(&held, Certainty::Answered), SOON).unwrap();

    assert!(declare_new(&config).unwrap().dwell > Some(Duration::from_secs(10)));
    for number in 0..50 {
        granted(client.acquire(&asks(&format!("first:{number}")), SOON));
        granted(other.acquire(&asks(&format!("second:{number}")), SOON));
    }
}
