//! From URLs and configurations to clients, in both facades.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use leasehold::blocking::Kit as _;
use leasehold::redlock::{Purpose, RedlockConfig};
use leasehold::{BackendConfig, ConnectError, ErrorKind, Kit as _};
use test_support::{Cluster, PostgresOptions, PostgresServer, RedisServer};

#[tokio::test]
async fn both_faces_meet_at_one_store() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["memory:meeting".to_owned(), format!("sqlite:{}", folder.path().join("locks.db").display())] {
        let tokio = leasehold::connect(&url).await.unwrap();
        let plain = leasehold::blocking::connect(&url).unwrap();
        let guard = tokio.mutex("a").acquire().await.unwrap();
        assert!(plain.mutex("a").try_acquire().unwrap().is_none(), "{url}");
        let token = guard.fencing_token();
        guard.release().await.unwrap();
        let guard = plain.mutex("a").try_acquire().unwrap().unwrap();
        assert!(guard.fencing_token() > token);
        assert!(tokio.mutex("a").try_acquire().await.unwrap().is_none(), "{url}");
    }
}

/// Nothing here takes as long; it only bounds a hang.
const WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

/// Several servers that form a deployment, and its URL.
fn quorum() -> (Vec<RedisServer>, String) {
    let servers: Vec<_> = (0..3).map(|_| RedisServer::start_with(password())).collect();
    let hosts: Vec<_> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    (servers, format!("redlock://:sesame@{}?prefix=shop&max_ttl=40s", hosts.join(",")))
}

fn password() -> test_support::RedisOptions {
    test_support::RedisOptions::default().require_password("sesame")
}

#[tokio::test(flavor = "multi_thread")]
async fn both_faces_meet_at_a_quorum() {
    let (mut servers, url) = quorum();
    let tokio = leasehold::connect(&url).await.unwrap();
    let error = tokio.mutex("a").try_acquire().await.unwrap_err().to_string();
    assert!(error.contains("0 of 3 nodes vote") && !error.contains("sesame"), "{error}");
    let config = RedlockConfig::from_url(&url).unwrap();
    leasehold::redlock::nonblocking::open(&config).unwrap().pass(Purpose::Init, WITHIN).await.unwrap();

    let tokio = leasehold::connect(&url).await.unwrap();
    let plain = leasehold::blocking::connect(&url).unwrap();
    let guard = tokio.mutex("a").acquire().await.unwrap();
    assert!(plain.mutex("a").try_acquire().unwrap().is_none());
    assert_eq!(servers[0].command::<u8>(&["EXISTS", "shop:a"]), 1, "the prefix is the nodes', too");
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    let guard = plain.mutex("a").wait(WITHIN).acquire().unwrap();
    assert!(guard.fencing_token() > token);
    assert!(tokio.mutex("a").try_acquire().await.unwrap().is_none());
    drop(guard);
    let leadership = tokio.election("e").campaign().await.unwrap();
    assert!(plain.election("e").leader().unwrap().is_some(), "a majority shows who leads");
    leadership.resign().await.unwrap();
    assert!(plain.election("e").leader().unwrap().is_none());
    servers[0].kill();
    servers[1].kill();
    for error in [
        leasehold::connect(&url).await.map(|_| ()).unwrap_err(),
        leasehold::blocking::connect(&url).map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(&error, ConnectError::Backend(error) if error.kind() == ErrorKind::Unreachable), "{error}");
        assert!(error.to_string().contains("127.0.0.1:"), "it names a node: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_faces_meet_at_a_cluster() {
    let cluster = Cluster::of_one();
    let (tokio, plain) =
        (leasehold::connect(&cluster.url()).await.unwrap(), leasehold::blocking::connect(&cluster.url()));
    let plain = plain.unwrap();
    // In three hash slots.
    let all = [tokio.mutex("a"), tokio.mutex("b"), tokio.mutex("c")];
    let guard = leasehold::all(all).wait(WITHIN).acquire().await.unwrap();
    for name in ["a", "b", "c"] {
        assert!(plain.mutex(name).try_acquire().unwrap().is_none(), "{name}");
    }
    guard.release().await.unwrap();
    let guard = plain.mutex("a").wait(WITHIN).acquire().unwrap();
    assert!(tokio.mutex("a").try_acquire().await.unwrap().is_none());
    guard.release().unwrap();
}

/// Two clients want the same locks, which are at three primaries, in another order each.
#[tokio::test(flavor = "multi_thread")]
async fn several_locks_in_different_hash_slots_are_acquired_as_one() {
    let cluster = Cluster::start();
    let tokio = leasehold::connect(&cluster.url()).await.unwrap();
    let plain = leasehold::blocking::connect(&cluster.url()).unwrap();
    let [a, b, c] = [0, 1, 2].map(|server| cluster.name_at(server, "part"));
    let (upwards, downwards) = ([a.clone(), b.clone(), c.clone()], [c, b.clone(), a]);
    let guard = tokio.all(upwards.clone()).wait(WITHIN).acquire().await.unwrap();
    assert!(plain.mutex(&b).try_acquire().unwrap().is_none());
    assert!(plain.all(downwards.clone()).try_acquire().unwrap().is_none());
    guard.release().await.unwrap();
    let competitor = std::thread::spawn(move || {
        (0..20).for_each(|_| plain.all(downwards.clone()).wait(WITHIN).acquire().unwrap().release().unwrap());
        plain
    });
    for _ in 0..20 {
        tokio.all(upwards.clone()).wait(WITHIN).acquire().await.unwrap().release().await.unwrap();
    }
    let plain = tokio::task::spawn_blocking(|| competitor.join().unwrap()).await.unwrap();
    for name in upwards {
        assert!(plain.mutex(&name).try_acquire().unwrap().is_some(), "{name} is still held");
    }
}

#[tokio::test]
async fn a_node_that_cannot_be_is_refused_before_anything_is_touched() {
    let (servers, url) = quorum();
    let good: Vec<_> = servers.iter().map(|server| format!("node={}", server.url())).collect();
    for bad in ["sqlite:/x", "redis://:sesame@127.0.0.1/x", "redis://:sesame@127.0.0.1?x=1"] {
        let url = format!("redlock://?{}&node={}", good.join("&"), bad.replace('&', "%26"));
        let refused = [
            leasehold::connect(&url).await.map(|_| ()).unwrap_err(),
            leasehold::blocking::connect(&url).map(|_| ()).unwrap_err(),
        ];
        for error in refused {
            assert!(matches!(error, ConnectError::Invalid(_)) && !error.to_string().contains("sesame"), "{error}");
        }
    }
    assert!(servers.iter().all(|server| server.command::<u64>(&["DBSIZE"]) == 0), "{url}");
}

#[test]
fn configurations_are_read_and_unknown_fields_refused() {
    let read = |text: &str| serde_json::from_str::<BackendConfig>(text);
    assert!(matches!(read(r#"{ "backend": "memory" }"#), Ok(BackendConfig::Memory(_))));
    assert!(matches!(read(r#"{ "backend": "sqlite", "path": "locks.db" }"#), Ok(BackendConfig::Sqlite(_))));
    let redis = read(r#"{ "backend": "redis", "url": "redis://:sesame@h", "op_timeout": "200ms" }"#).unwrap();
    assert_eq!(redis.op_timeout(), Some(std::time::Duration::from_millis(200)));
    assert!(!format!("{redis:?}").contains("sesame"));
    let nodes = r#""nodes": ["redis://a", "rediss://:sesame@b/1", "redis://c"]"#;
    let text = format!(r#"{{ "backend": "redlock", {nodes}, "max_ttl": "2m", "prefix": "shop", "op_timeout": "1s" }}"#);
    let redlock = read(&text).unwrap();
    assert_eq!(redlock.op_timeout(), Some(std::time::Duration::from_secs(1)));
    assert!(matches!(&redlock, BackendConfig::Redlock(config) if config.nodes()[1].address() == "b:6379/1"));
    assert!(!format!("{redlock:?}").contains("sesame"));
    let redlock = format!(r#""redlock", {nodes}"#);
    let postgres = r#""postgres", "url": "postgres://h/shop""#;
    let mysql = r#""mysql", "url": "mysql://h/shop""#;
    for backend in
        [r#""memory""#, r#""sqlite", "path": "a""#, r#""redis", "url": "redis://h""#, postgres, mysql, &redlock]
    {
        let refusal = read(&format!(r#"{{ "backend": {backend}, "pht": "a" }}"#)).unwrap_err().to_string();
        assert!(refusal.contains("unknown field `pht`"), "{refusal}");
    }
}

#[test]
fn a_configuration_can_be_a_url() {
    let read = |text: &str| serde_json::from_str::<BackendConfig>(text);
    assert!(matches!(read(r#" "memory:jobs" "#), Ok(BackendConfig::Memory(_))));
    assert!(matches!("memory:jobs".parse(), Ok(BackendConfig::Memory(_))));
    let redis = read(r#" "redis://:sesame@h?op_timeout=200ms" "#).unwrap();
    assert_eq!(redis.op_timeout(), Some(std::time::Duration::from_millis(200)));
    assert!(matches!(redis, BackendConfig::Redis(_)) && !format!("{redis:?}").contains("sesame"));
    let read_toml = |text: &str| text.parse::<toml::Table>().unwrap()["store"].clone().try_into::<BackendConfig>();
    assert!(matches!(read_toml(r#"store = "redlock://a,b,c" "#), Ok(BackendConfig::Redlock(_))));
}

#[test]
fn the_error_of_a_refused_configuration_names_the_field_and_the_allowed_values_but_no_secret() {
    for (text, told) in [
        (r#" "redsi://:sesame@h" "#, "did you mean redis://HOST?"),
        (r#" "redis://:sesame@h?x=1" "#, "redis URL"),
        (r#" "sesame" "#, "store URL \"(hidden)\" is not valid: it has no scheme; write sqlite:PATH"),
        (
            r#"{ "backend": "redis://:sesame@h" }"#,
            "field `backend`: expected one of memory, sqlite, redis, postgres, mysql, zookeeper, etcd, redlock",
        ),
        (r#"{ "backend": "redis", "redis://:sesame@h": "" }"#, "a field has a URL as its name (hidden"),
        (r#"{ "backend": "redis", "a`:sesame@h": "" }"#, "a field has a URL as its name (hidden"),
        (r#"{ "backend": "redis", "url": "redsi://:sesame@h" }"#, "redis URL"),
        (r#"{ "url": "redis://:sesame@h" }"#, "missing field `backend`"),
        (r#" "postgres://app:sesame@h/shop?x=1" "#, "postgres URL"),
        (r#"{ "backend": "postgres", "url": "postgres://app:sesame@h" }"#, "it names no database"),
        (r#"["redis://:sesame@h"]"#, "expected the URL of a store, or a table with the field `backend`"),
    ] {
        let refusal = serde_json::from_str::<BackendConfig>(text).unwrap_err().to_string();
        assert!(refusal.contains(told) && !refusal.contains("sesame"), "{refusal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_faces_meet_at_a_postgres() {
    let server = PostgresServer::start_with(PostgresOptions::default().volatile().require_password("sesame"));
    let tokio = leasehold::connect(&server.url()).await.unwrap();
    let plain = leasehold::blocking::connect(&server.url()).unwrap();
    let guard = tokio.mutex("a").acquire().await.unwrap();
    assert!(plain.mutex("a").try_acquire().unwrap().is_none());
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    let guard = plain.mutex("a").wait(WITHIN).acquire().unwrap();
    assert!(guard.fencing_token() > token);
    assert!(tokio.mutex("a").try_acquire().await.unwrap().is_none());
}

/// What the crate's documentation shows.
#[test]
fn the_documented_configuration_is_read() {
    #[derive(serde::Deserialize)]
    struct Settings {
        store: BackendConfig,
        lock: leasehold::LockOptions,
    }
    let documentation = include_str!("../../src/lib.rs").replace("//! ", "");
    let text = documentation.split("```toml").nth(1).unwrap().split("```").next().unwrap();
    let settings: Settings = toml::from_str(text).unwrap();
    assert!(matches!(settings.store, BackendConfig::Redis(config) if config.prefix() == Some("shop")));
    assert_eq!(settings.lock.why, "nightly report");
}

#[test]
fn connecting_without_a_runtime_says_what_to_do() {
    for url in [
        "memory:",
        "sqlite:locks.db",
        "redis://127.0.0.1",
        "postgres://app@127.0.0.1/shop",
        "mysql://app@127.0.0.1/shop",
    ] {
        let connect = || drop(pin!(leasehold::connect(url)).poll(&mut Context::from_waker(Waker::noop())));
        let panic = std::panic::catch_unwind(connect).unwrap_err();
        let message = panic.downcast_ref::<&str>().unwrap();
        assert!(message.contains("needs a tokio runtime") && message.contains("tokio::main"), "{url}: {message}");
    }
}

#[tokio::test]
async fn errors_of_connecting_name_no_secret() {
    for url in [
        "redis://:sesame@127.0.0.1:1",
        "rediss://:sesame@127.0.0.1:1",
        "redsi://:sesame@h",
        "redis://:sesame@h/?x=1",
        "redlock://:sesame@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3",
        "redlock://:sesame@a,b",
        "postgres://app:sesame@127.0.0.1:1/shop",
        "mysql://app:sesame@127.0.0.1:1/shop",
        "postgres://app:sesame@127.0.0.1",
    ] {
        let error = leasehold::connect(url).await.unwrap_err();
        let plain = leasehold::blocking::connect(url).unwrap_err();
        assert_eq!(matches!(error, ConnectError::Invalid(_)), matches!(plain, ConnectError::Invalid(_)));
        for text in [error.to_string(), format!("{error:?}"), plain.to_string(), format!("{plain:?}")] {
            assert!(!text.contains("sesame"), "{text}");
        }
    }
}
