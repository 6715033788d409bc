//! The greeting of a server: what is checked, refused and warned about.

use lock_core::{Backend, Effect, ErrorKind};
use lock_redis::{RedisConfig, blocking, nonblocking};
use test_support::{RedisOptions, RedisServer};

use crate::support::{both, bridged, draw, eventually, refusals};

/// What is worth a warning, in each facade.
fn warnings(url: &str) -> [Vec<String>; 2] {
    let config = RedisConfig::from_url(url).unwrap();
    let on_tokio = bridged(async || nonblocking::Redis::connect(&config).await.unwrap());
    [on_tokio.warnings(), blocking::Redis::connect(&config).unwrap().warnings()]
}

#[test]
fn a_server_that_may_drop_locks_is_warned_of_unless_that_is_allowed() {
    let arguments = ["--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"];
    let server = RedisServer::start_with(RedisOptions::default().arguments(&arguments).require_password("sesame"));
    for told in warnings(&server.url()) {
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with(&format!("redis://***@127.0.0.1:{} may drop", server.port())), "{told:?}");
        assert!(told[0].contains("volatile-lru") && told[0].contains("?eviction=allow"), "{told:?}");
    }
    let nothing: [Vec<String>; 2] = Default::default();
    assert_eq!(warnings(&format!("{}?eviction=allow", server.url())), nothing);
    server.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(warnings(&server.url()), nothing);
}

#[test]
fn a_replica_is_refused_also_one_that_takes_writes() {
    let (primary, replica) = (RedisServer::start(), RedisServer::start());
    replica.command::<()>(&["CONFIG", "SET", "replica-read-only", "no"]);
    replica.command::<()>(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    eventually("the replica has synced", || {
        replica.command::<String>(&["INFO", "replication"]).contains("master_link_status:up")
    });
    for error in refusals(&replica.url()) {
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{error}");
        assert!(error.to_string().contains("is a replica; connect to the primary"), "{error}");
    }
    replica.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    for (facade, client) in both(&replica.url()) {
        draw(&client, facade);
    }
}

#[test]
fn a_node_of_a_cluster_is_refused_when_it_is_greeted() {
    // It serves no slot, so the error for a key would be another one.
    let server = RedisServer::start_with(RedisOptions::default().arguments(&["--cluster-enabled", "yes"]));
    for error in refusals(&server.url()) {
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unsupported, Effect::None), "{error}");
        assert!(error.to_string().contains("belongs to a cluster; use redis+cluster://HOST"), "{error}");
    }
}

#[test]
fn scripts_are_loaded_once_for_a_server_and_not_by_each_client() {
    let server = RedisServer::start();
    let loads = || {
        let stats: String = server.command(&["INFO", "commandstats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_script|load:calls="));
        line.and_then(|line| line.split(',').next()).map_or(0, |calls| calls.parse::<u32>().unwrap())
    };
    for _ in 0..2 {
        for (facade, client) in both(&server.url()) {
            draw(&client, facade);
            assert_eq!(loads(), 11, "{facade}: each was loaded once");
        }
    }
}
