//! Where stores keep their locks.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use lock_core::{AsyncBackend, BlockingBackend, Location};
use lock_redis::RedisConfig;
use lock_sqlite::SqliteConfig;
use test_support::RedisServer;

use crate::support::Store;

fn of_tokio(backend: impl AsyncBackend) -> Location {
    let client = lock_async::Client::new(Arc::new(backend)).unwrap();
    client.mutex("a").member().unwrap().location.unwrap()
}

fn of_threads(backend: impl BlockingBackend) -> Location {
    let client = lock_blocking::Client::new(Arc::new(backend)).unwrap();
    client.mutex("a").member().unwrap().location.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_clients_of_a_store_get_the_same_location() {
    for store in Store::with_quorum() {
        let location = |name: &str, client: &lock_async::Client| client.mutex(name).member().unwrap().location.unwrap();
        let (one, other) = (store.tokio().await, store.tokio().await);
        assert_eq!(location("a", &one), location("a", &other));
        assert!(location("a", &one) < location("b", &other));
        assert_eq!(store.plain().mutex("a").member().unwrap().location.unwrap(), location("a", &one));
    }
    let [one, other] =
        [Store::memory(), Store::memory()].map(|store| store.plain().mutex("a").member().unwrap().location);
    assert_ne!(one, other);
}

#[tokio::test]
async fn a_file_is_located_after_links_and_with_its_prefix() {
    let folder = test_support::temp_dir();
    let (real, link) = (folder.path().join("real.db"), folder.path().join("link.db"));
    let open = |path: &std::path::Path, prefix: &str| {
        let config = SqliteConfig::from_url(&format!("sqlite:{}{prefix}", path.display())).unwrap();
        of_tokio(lock_sqlite::nonblocking::Sqlite::open(&config).unwrap())
    };
    let location = open(&real, "?prefix=shop");
    assert_eq!(location.key, "shop:a");
    assert_eq!(location.store, format!("sqlite:{}", real.canonicalize().unwrap().display()));
    symlink(&real, &link).unwrap();
    assert_eq!(open(&link, "?prefix=shop"), location);
}

#[tokio::test]
async fn a_server_is_located_without_its_password() {
    let server = RedisServer::start_with(test_support::RedisOptions::default().require_password("sesame"));
    let config = RedisConfig::from_url(&format!("{}/2?prefix=shop", server.url())).unwrap();
    let location = of_tokio(lock_redis::nonblocking::Redis::connect(&config).await.unwrap());
    assert_eq!(location.store, format!("redis://127.0.0.1:{}/2", server.port()));
    assert_eq!(location.key, "shop:a");
    assert_eq!(of_threads(lock_redis::blocking::Redis::connect(&config).unwrap()), location);
}

#[tokio::test]
async fn the_spelling_of_a_host_does_not_matter_but_its_name_does() {
    let at = |host: &str| {
        let client = redis::Client::open(format!("redis://{host}:1")).unwrap();
        of_threads(lock_redis::blocking::Redis::from(client)).store
    };
    assert_eq!(at("LocalHost"), at("localhost"));
    assert_ne!(at("localhost"), at("127.0.0.1"));
}
