//! Redis 6.2, which wraps the errors inside a script into an error of its own, and Valkey, which has words of its own.

use lock_core::{Certainty, Effect, ErrorKind};
use test_support::{RedisOptions, RedisServer, RedisVersion};

use crate::faults::exists;
use crate::support::{SOON, both, claim, draw, hand_over, refusals, release_of, take};

fn server_of(version: RedisVersion) -> RedisServer {
    RedisServer::start_with(RedisOptions::default().version(version))
}

fn server() -> RedisServer {
    server_of(RedisVersion::Oldest)
}

#[test]
fn refusals_inside_scripts_keep_their_codes() {
    refusals_keep_their_codes(&server());
}

#[test]
fn refusals_inside_scripts_keep_their_codes_at_valkey() {
    refusals_keep_their_codes(&server_of(RedisVersion::Valkey));
}

fn refusals_keep_their_codes(server: &RedisServer) {
    let clients = both(&server.url());
    let troubles: [(&str, &[&str], &[&str]); 2] = [
        ("READONLY", &["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]),
        ("OOM", &["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]),
    ];
    for (code, begin, end) in troubles {
        server.command::<()>(begin);
        for (facade, client) in &clients {
            let error = client.acquire(&claim("job"), SOON).unwrap_err();
            let found = (error.kind(), error.effect());
            assert_eq!(found, (ErrorKind::Unavailable, Effect::None), "{facade}, {code}: {error}");
            assert!(error.to_string().contains(&format!(": {code} ")), "{error}");
        }
        server.command::<()>(end);
        for (facade, client) in &clients {
            draw(client, facade);
        }
    }
}

#[test]
fn a_damaged_key_of_ours_is_no_lock_of_another_kind() {
    let server = server();
    let clients = both(&server.url());
    for (facade, client) in &clients {
        let (held, _) = take(client, facade);
        server.command::<()>(&["SET", &format!("leasehold:{{{facade}}}:q"), "no queue"]);
        let error = client.release(&release_of(&held, Certainty::Answered), SOON).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::Unknown), "{error}");
        assert!(exists(&server, facade));
        server.command::<()>(&["SADD", &format!("{facade}:other"), "no lock"]);
        let error = client.acquire(&claim(&format!("{facade}:other")), SOON).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::OtherKind, Effect::None), "{error}");
    }
}

#[test]
fn an_error_names_the_missing_permission() {
    [RedisVersion::Oldest, RedisVersion::Valkey].iter().for_each(|version| names_permission(&server_of(*version)));
}

fn names_permission(server: &RedisServer) {
    for (facade, client) in both(&server.url()) {
        hand_over(&client, facade);
    }
    server.command::<()>(&["ACL", "SETUSER", "some", "on", ">pw", "~*", "&*", "+@all", "-incrby"]);
    let url = format!("redis://some:pw@127.0.0.1:{}", server.port());
    for (_, client) in both(&url) {
        let error = client.acquire(&claim("job"), SOON).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::Unknown), "{error}");
        assert!(error.to_string().contains("+incrby"), "{error}");
    }
    server.command::<()>(&["ACL", "SETUSER", "some", "-info"]);
    for error in refusals(&url) {
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    }
}
