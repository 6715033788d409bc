//! Grants and renewals that have to be on disk.

use lock_core::{Certainty, Claim, Effect, ErrorKind, Queueing};
use test_support::sentinels::{PASSWORDS, url_of};
use test_support::{Cluster, RedisOptions, RedisServer, RedisVersion, Sentinel};

use crate::promotions::replicate;
use crate::replicas::{IN_VAIN, calls};
use crate::support::{BOTH, SOON, both, claim, eventually, hand_over, refusals, release_of, take};

/// A server that can wait for its disk.
fn valkey(arguments: &[&str]) -> RedisServer {
    let options = RedisOptions::default().version(RedisVersion::Valkey).arguments(arguments);
    RedisServer::start_with(options.arguments(&["--repl-diskless-sync-delay", "0"]))
}

const ON_DISK: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

#[test]
fn a_server_that_cannot_wait_for_its_disk_is_refused() {
    for (server, kind, words) in [
        (
            RedisServer::start_with(RedisOptions::default().version(RedisVersion::Oldest)),
            ErrorKind::Unsupported,
            "use Redis 7.2 or later, or Valkey",
        ),
        (valkey(&[]), ErrorKind::Config, "set appendonly to yes"),
    ] {
        for error in refusals(&format!("{}?fsync=wait", server.url())) {
            assert_eq!((error.kind(), error.effect()), (kind, Effect::None), "{error}");
            assert!(error.to_string().contains(words) && error.to_string().contains("fsync=wait"), "{error}");
        }
    }
}

#[test]
fn a_lease_counts_once_it_is_on_disk() {
    let server = valkey(&ON_DISK);
    for (facade, client) in both(&format!("{}?fsync=wait", server.url())) {
        server.command::<()>(&["CONFIG", "RESETSTAT"]);
        let (claim_of_held, held) = take(&client, facade);
        client.renew(std::slice::from_ref(&held), SOON).unwrap();
        assert_eq!((calls(&server, "waitaof"), calls(&server, "wait")), (2, 0), "{facade}");
        client.release(&release_of(&claim_of_held, Certainty::Answered), SOON).unwrap();
        assert_eq!(calls(&server, "waitaof"), 2, "{facade}: a release waited");
        hand_over(&client, facade);

        let (_, held) = take(&client, facade);
        // What is written is left to the system from now on.
        server.command::<()>(&["CONFIG", "SET", "appendfsync", "no"]);
        let another = claim(&format!("{facade} in vain"));
        for error in [
            client.acquire(&another, IN_VAIN).unwrap_err(),
            client.renew(std::slice::from_ref(&held), IN_VAIN).unwrap_err(),
        ] {
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown), "{facade}: {error}");
            assert!(error.to_string().contains("not written it to disk in time"), "{facade}: {error}");
        }
        let waiter = Claim { queueing: Queueing::Wanted, ..claim(facade) };
        assert!(client.acquire(&waiter, SOON).is_ok(), "{facade}: a place need not be on disk");
        server.command::<()>(&["CONFIG", "SET", "appendfsync", "always"]);
        take(&client, &format!("{facade} again"));
    }
}

#[test]
fn a_lease_at_the_primary_of_sentinels_or_of_a_cluster_counts_once_it_is_on_disk() {
    let on_disk = RedisOptions::default().version(RedisVersion::Valkey).append_only();
    let primary = RedisServer::start_with(on_disk.clone().require_password(PASSWORDS.0));
    let sentinel = Sentinel::watching(&primary);
    let cluster = Cluster::of_one_with(on_disk);
    let urls = [url_of(&[sentinel.port()]), cluster.url()];
    for (server, url) in [&primary, &cluster.servers[0]].into_iter().zip(urls) {
        for (facade, client) in both(&format!("{url}&fsync=wait")) {
            server.command::<()>(&["CONFIG", "RESETSTAT"]);
            let (_, held) = take(&client, facade);
            client.renew(std::slice::from_ref(&held), SOON).unwrap();
            assert_eq!((calls(server, "waitaof"), calls(server, "wait")), (2, 0), "{facade}: {url}");
        }
    }
}

#[test]
fn a_replica_that_keeps_nothing_on_disk_does_not_count() {
    let (primary, replica) = (valkey(&ON_DISK), valkey(&[]));
    replicate(&replica, &primary);
    for (facade, connect) in BOTH {
        let client = connect(&format!("{}?replicas=1&fsync=wait", primary.url()));
        let error = client.acquire(&claim(facade), IN_VAIN).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown), "{facade}: {error}");
        assert!(error.to_string().contains("0 of 1 replicas"), "{facade}: {error}");
    }
    replica.command::<()>(&["CONFIG", "SET", "appendfsync", "always"]);
    replica.command::<()>(&["CONFIG", "SET", "appendonly", "yes"]);
    for (facade, client) in both(&format!("{}?replicas=1&fsync=wait", primary.url())) {
        eventually("the replica has it on disk", || client.acquire(&claim(&format!("{facade} later")), SOON / 5));
    }
}
