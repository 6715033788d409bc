//! Servers that become replicas and primaries in the same run, and the identifiers of their histories.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_core::{Certainty, FencingToken, Renewed};
use lock_redis::by_hand::texts;
use test_support::{RedisOptions, RedisServer, RedisVersion};

use crate::support::{BOTH, SOON, both, draw, eventually, release_of, take};

const MARKER: &str = "leasehold:incarnation";

/// A server that syncs its replicas without delay.
pub(crate) fn server() -> RedisServer {
    server_of(RedisVersion::Installed)
}

/// The same, of this version.
pub(crate) fn server_of(version: RedisVersion) -> RedisServer {
    let undelayed = ["--repl-diskless-sync-delay", "0"];
    RedisServer::start_with(RedisOptions::default().version(version).arguments(&undelayed))
}

pub(crate) fn info(server: &RedisServer, field: &str) -> String {
    let info: String = server.command(&["INFO"]);
    info.lines().find_map(|line| line.strip_prefix(field)).unwrap().trim().to_owned()
}

fn incarnation(server: &RedisServer) -> String {
    format!("{}:{}", info(server, "run_id:"), info(server, "master_replid:"))
}

/// Makes one server the replica of another and waits until it has its data.
pub(crate) fn replicate(replica: &RedisServer, primary: &RedisServer) {
    replica.command::<()>(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    eventually("the replica has caught up", || {
        let info: String = replica.command(&["INFO", "replication"]);
        info.contains("master_link_status:up")
            && info.contains("master_sync_in_progress:0")
            && primary.command::<String>(&["INFO", "replication"]).contains("state=online")
    });
}

pub(crate) fn promote(server: &RedisServer) {
    server.command::<()>(&["REPLICAOF", "NO", "ONE"]);
}

#[test]
fn tokens_never_repeat_after_a_fail_back_within_one_run() {
    for (facade, connect) in BOTH {
        let (a, b) = (server(), server());
        let before = connect(&a.url());
        let mut last = draw(&before, "job");
        replicate(&b, &a);
        promote(&b);
        eventually("the primary is alone", || info(&a, "connected_slaves:") == "0");
        let run = info(&a, "run_id:");
        for _ in 0..3 {
            last = last.max(draw(&connect(&a.url()), "job"));
        }
        replicate(&a, &b);
        promote(&a);
        assert_eq!(info(&a, "run_id:"), run, "it is the same run");
        let after = draw(&connect(&a.url()), "job");
        assert!(after > last, "{facade}: {after} was drawn after {last}");
        assert_eq!(a.command::<String>(&["GET", MARKER]), incarnation(&a), "{facade}");
    }
}

#[test]
fn connections_that_live_through_a_fail_back_draw_no_token_twice() {
    for (facade, connect) in BOTH {
        let (a, b) = (server(), server());
        replicate(&b, &a);
        let (one, other) = (connect(&a.url()), connect(&a.url()));
        draw(&one, "job");
        promote(&b);
        let last = draw(&other, "job").max(draw(&other, "job"));
        replicate(&a, &b);
        promote(&a);
        let after = draw(&one, "job");
        assert!(after > last, "{facade}: {after} was drawn after {last}");
    }
}

#[test]
fn tokens_come_from_the_clock_where_there_are_replicas() {
    let (primary, replica) = (server(), server());
    replicate(&replica, &primary);
    for (facade, client) in both(&primary.url()) {
        draw(&client, facade);
        // As if the server had come back with the data of a replica, under connections that live.
        primary.command::<()>(&["SET", "leasehold:counter", "5"]);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - Duration::from_secs(1);
        assert!(u128::from(draw(&client, facade).get()) > now.as_micros(), "{facade}");
    }
}

#[test]
fn a_backup_costs_no_held_lock() {
    let server = server();
    for (facade, client) in both(&server.url()) {
        let (claim, lease) = take(&client, facade);
        let before = incarnation(&server);
        // The first replica after a while without any names the history anew.
        server.command::<()>(&["CONFIG", "SET", "repl-backlog-ttl", "1"]);
        eventually("the backlog is gone", || info(&server, "repl_backlog_active:") == "0");
        server.back_up();
        assert_ne!(incarnation(&server), before, "{facade}: the history has the old name");
        assert_eq!(info(&server, "master_replid2:"), "0".repeat(40));
        let [(_, one), (_, another)] = both(&server.url());
        assert!(draw(&one, "another").max(draw(&another, "another")) > lease.tokens.high(), "{facade}");
        assert_eq!(server.command::<String>(&["GET", MARKER]), incarnation(&server), "{facade}");
        assert!(matches!(client.renew(std::slice::from_ref(&lease), SOON).unwrap()[..], [Renewed::Renewed { .. }]));
        client.release(&release_of(&claim, Certainty::Answered), SOON).unwrap();
        assert!(draw(&client, facade) > lease.tokens.high(), "{facade}");
    }
}

#[test]
fn a_late_verification_raises_the_counter_and_leaves_a_newer_marker() {
    let server = server();
    let verify = |incarnation: &str, seen: &str| {
        let keys = ["leasehold:counter", MARKER, "leasehold:dwell", "leasehold:max_ttl"];
        let arguments = [incarnation, seen, "promoted", "30000", "10000"];
        let (is_another, _): (u8, u64) =
            server.command(&[&["EVAL", texts().verify, "4"][..], &keys, &arguments].concat());
        is_another
    };
    assert_eq!(verify("run:one", ""), 1);
    assert_eq!(verify("run:one", ""), 0);
    assert_eq!(verify("run:two", "run:one"), 1);
    server.command::<()>(&["SET", "leasehold:counter", "5"]);
    assert_eq!(verify("run:zero", "run:one"), 1);
    assert_eq!(server.command::<String>(&["GET", MARKER]), "run:two");
    assert!(FencingToken::new(server.command(&["GET", "leasehold:counter"])).unwrap().get() > 5);
}
