//! Refusals: their kinds, and what they must not contain.

use std::thread;
use std::time::Duration;

use lock_core::{Effect, ErrorKind, Waiting};
use lock_redis::{RedisConfig, blocking};
use test_support::bounds::within;
use test_support::{RedisOptions, RedisServer};

use crate::support::{SHORT, SOON, both, claim, draw, eventually, hand_over, refusals};

#[test]
fn a_wrong_password_is_denied_and_never_shown() {
    let server = RedisServer::start_with(RedisOptions::default().require_password("sesame"));
    let wrong = format!("redis://app:opensaysme@127.0.0.1:{}", server.port());
    let without = format!("redis://127.0.0.1:{}", server.port());
    for url in [wrong.as_str(), without.as_str()] {
        for error in refusals(url) {
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::None), "{error}");
            assert!(error.remedy().is_some(), "{error:?}");
            assert!(!format!("{error} {error:?}").contains("opensaysme"));
        }
    }
    let config = RedisConfig::from_url(&server.url()).unwrap();
    let redis = blocking::Redis::connect(&config).unwrap();
    assert!(!format!("{config:?} {redis:?}").contains("sesame"));
    for (facade, client) in both(&server.url()) {
        assert!(!format!("{client:?}").contains("sesame"));
        draw(&client, facade);
    }
}

#[test]
fn a_missing_right_is_named() {
    let server = RedisServer::start();
    let port = server.port();
    let user = |name: &str, rights: &[&str]| {
        let mut words = vec!["ACL", "SETUSER", name, "on", ">pw", "~*", "&*"];
        words.extend(rights);
        server.command::<()>(&words);
    };
    user("greeter", &["+@all", "-info"]);
    for error in refusals(&format!("redis://greeter:pw@127.0.0.1:{port}")) {
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::None), "{error}");
        assert!(error.to_string().contains("info"), "{error}");
    }
    user("writer", &["+@all"]);
    let clients = both(&format!("redis://writer:pw@127.0.0.1:{port}"));
    user("writer", &["-incrby"]);
    let connections = || -> Vec<String> {
        let list: String = server.command(&["CLIENT", "LIST"]);
        let writers = list.lines().filter(|line| line.contains("user=writer"));
        writers.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
    };
    let before = connections();
    for (_, client) in &clients {
        let error = client.acquire(&claim("job"), SOON).unwrap_err();
        // The command was denied inside a script, which may have written before.
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::Unknown), "{error}");
        assert!(error.to_string().contains("+incrby"), "{error}");
    }
    assert!(clients.iter().all(|(_, client)| client.acquire(&claim("another"), SOON).is_err()));
    assert_eq!(connections(), before, "what is denied to one does not cost the others their connection");
    user("minimal", &["resetkeys", "~shop:*", "~leasehold:*", "resetchannels", "&leasehold:inbox:*", "-@all"]);
    let rights = "+@scripting +@pubsub +info +time +get +mget +set +del +exists +incrby +pexpire +pttl +lpop +rpush +llen \
                  +lrange +hget +hmget +hset +hdel +hlen +hvals +scan";
    user("minimal", &rights.split(' ').collect::<Vec<_>>());
    let shop = format!("redis://minimal:pw@127.0.0.1:{port}?prefix=shop");
    for (facade, client) in both(&shop) {
        hand_over(&client, facade);
    }
    user("minimal", &["resetchannels"]);
    let [(_, on_tokio), (_, plain)] = both(&shop);
    assert_eq!(on_tokio.capabilities().waiting, Waiting::Queue, "it may not subscribe");
    hand_over(&on_tokio, "on tokio");
    hand_over(&plain, "plain");
    let elsewhere = format!("redis://minimal:pw@127.0.0.1:{port}/1?prefix=shop");
    for error in refusals(&elsewhere) {
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Denied, Effect::None), "{error}");
        let text = error.to_string();
        assert!(text.contains("NOPERM") && text.contains("+select for a database other than 0"), "{text}");
        assert!(text.contains(&format!("redis://127.0.0.1:{port} ")) && !text.contains("Response"), "{text}");
    }
    user("minimal", &["+select"]);
    for (facade, client) in both(&elsewhere) {
        draw(&client, facade);
    }
}

#[test]
fn an_error_names_the_server_that_cannot_be_reached() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, expected) in [
        (
            format!("redis://app:sesame@{nobody}/1"),
            format!("redis connect: redis://{nobody} refused the connection; check"),
        ),
        (
            "redis://:sesame@leasehold.invalid".into(),
            "cannot resolve the host name of redis://leasehold.invalid:6379".into(),
        ),
        (
            "unix:///nowhere/redis.sock?pass=sesame".into(),
            "unix:///nowhere/redis.sock cannot be reached: No such".into(),
        ),
    ] {
        for error in refusals(&url) {
            let text = error.to_string();
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::None), "{text}");
            assert!(text.contains(&expected) && !text.contains("sesame"), "{text}");
        }
    }
}

#[test]
fn a_silent_server_is_named_with_the_limit() {
    let server = RedisServer::start();
    let clients = both(&server.url());
    let told = |limit| format!("no answer from redis://127.0.0.1:{} within {limit}", server.port());
    server.stop();
    for (_, client) in &clients {
        let error = client.acquire(&claim("job"), SHORT).unwrap_err().to_string();
        assert!(error.contains(&told("300ms")), "{error}");
    }
    for error in refusals(&server.url()) {
        assert!(error.to_string().contains(&told("1s")), "{error}");
    }
    server.resume();
}

#[test]
fn a_database_that_is_not_there_is_a_matter_of_configuration() {
    let server = RedisServer::start();
    for error in refusals(&format!("{}/99", server.url())) {
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None), "{error}");
    }
}

#[test]
#[cfg(feature = "tls")]
fn tls_to_a_plain_port_is_a_matter_of_configuration() {
    let server = RedisServer::start();
    for error in refusals(&format!("rediss://127.0.0.1:{}", server.port())) {
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None), "{error}");
        assert!(error.to_string().contains("redis:// instead of rediss://"), "{error}");
    }
}

#[test]
fn a_replica_takes_no_locks() {
    let server = RedisServer::start();
    let clients = both(&server.url());
    server.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    for (_, client) in &clients {
        let error = client.acquire(&claim("job"), SOON).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{error}");
        assert!(error.to_string().contains("READONLY"), "{error}");
    }
    server.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    for (facade, client) in &clients {
        draw(client, facade);
    }
}

#[test]
fn a_server_busy_with_a_script_is_unavailable() {
    let server = RedisServer::start_with(RedisOptions::default().arguments(&["--lua-time-limit", "10"]));
    let clients = both(&server.url());
    let mut endless = server.connection();
    let running = thread::spawn(move || redis::cmd("EVAL").arg("while true do end").arg(0).exec(&mut endless));
    for (_, client) in &clients {
        eventually("the server is busy", || match client.acquire(&claim("job"), Duration::from_secs(2)) {
            Ok(_) => false,
            Err(error) => {
                assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{error}");
                true
            }
        });
    }
    let kill = redis::cmd("SCRIPT").arg("KILL").exec(&mut server.connection());
    assert!(kill.is_ok() && within("the end of the script", || running.join().unwrap().is_err()));
}

#[test]
fn a_damaged_counter_is_not_taken_for_a_lock_of_another_kind() {
    let server = RedisServer::start();
    let clients = both(&server.url());
    server.command::<()>(&["DEL", "leasehold:counter"]);
    server.command::<()>(&["HSET", "leasehold:counter", "a", "1"]);
    for (_, client) in &clients {
        let error = client.acquire(&claim("job"), SOON).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    }
    assert_eq!(server.command::<u8>(&["EXISTS", "job"]), 0);
}
