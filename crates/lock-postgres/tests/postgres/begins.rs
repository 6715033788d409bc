//! Fenced transactions as guards of both facades begin them.

use std::sync::Arc;
use std::time::Duration;

use lock_core::StoreConfig;
use lock_postgres::{FenceError, Fences, PostgresConfig, blocking, nonblocking};
use test_support::bounds::{wait_for, within};
use tokio_postgres::NoTls;

use crate::support::{BRIEF, Place, SOON, Session, claim, end, lasting, low, meanwhile, operator, take};

/// A place whose users have a table, and a configuration with a prefix.
fn shop() -> (Place, PostgresConfig) {
    let place = Place::new();
    place.session().run("CREATE TABLE sale (token bigint NOT NULL)").unwrap();
    let config = PostgresConfig::from_url(&format!("{}&prefix=shop", place.url())).unwrap();
    (place, config)
}

fn sold(session: &Session) -> i64 {
    session.value("SELECT count(*) FROM sale")
}

/// Ends the lease that holds a lock.
fn revoke(config: &PostgresConfig, name: &str) {
    let operators = blocking::connect(config).unwrap();
    let (name, inspect) = (name.parse().unwrap(), &operators as &dyn lock_core::BlockingBackend);
    let entry = inspect.holder(&name, SOON).unwrap().unwrap();
    let lock_core::Holder::Leasehold { tokens, .. } = &entry.holder else { panic!("{entry:?}") };
    inspect.revoke(&name, tokens.low(), &operator(), SOON).unwrap();
}

async fn with_tokio(place: &Place, config: &PostgresConfig) {
    let client = lock_async::Client::new(Arc::new(nonblocking::connect(config).await.unwrap())).unwrap();
    let (mut user, connection) = tokio_postgres::connect(&place.server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    user.batch_execute(&format!("SET search_path = {}", place.schema)).await.unwrap();
    let (fences, watcher) = (Fences::new(config), place.session());
    let guard = client.mutex("stock").acquire().await.unwrap();
    for outcome in ["COMMIT", "ROLLBACK"] {
        let transaction = fences.begin(&mut user, &guard).await.unwrap();
        let token = guard.fencing_token().get();
        transaction.batch_execute(&format!("INSERT INTO sale VALUES ({token})")).await.unwrap();
        assert!(watcher.run("SELECT 1 FROM hold WHERE name = 'shop:stock' FOR UPDATE NOWAIT").is_err());
        if outcome == "COMMIT" {
            transaction.commit().await.unwrap();
        }
    }
    assert_eq!(sold(&watcher), 1);
    revoke(config, "stock");
    let refused = fences.begin(&mut user, &guard).await.map(drop).unwrap_err();
    let FenceError::Refused { name, token } = &refused else { panic!("{refused}") };
    assert_eq!((name.as_str(), *token), ("stock", guard.fencing_token()));
    assert!(refused.to_string().contains("acquire it again"), "{refused}");
}

#[test]
fn a_guard_of_the_async_facade_fences_a_transaction_until_the_lock_is_lost() {
    let (place, config) = shop();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    within("the end of a scenario", || runtime.block_on(with_tokio(&place, &config)));
}

#[cfg(feature = "postgres")]
#[test]
fn a_guard_of_the_blocking_facade_fences_a_transaction_until_the_lock_is_lost() {
    let (place, config) = shop();
    let client = lock_blocking::Client::new(Arc::new(blocking::connect(&config).unwrap())).unwrap();
    let mut user = postgres::Client::connect(&place.server.url(), NoTls).unwrap();
    user.batch_execute(&format!("SET search_path = {}", place.schema)).unwrap();
    let (fences, watcher) = (Fences::new(&config), place.session());
    let guard = client.rw_lock("stock").write().acquire().unwrap();
    let mut transaction = fences.begin_blocking(&mut user, &guard).unwrap();
    transaction.batch_execute("INSERT INTO sale VALUES (1)").unwrap();
    assert!(watcher.run("SELECT 1 FROM hold WHERE name = 'shop:stock' FOR UPDATE NOWAIT").is_err());
    transaction.commit().unwrap();
    assert_eq!(sold(&watcher), 1);
    revoke(&config, "stock");
    let refused = fences.begin_blocking(&mut user, &guard).map(drop).unwrap_err();
    assert!(matches!(&refused, FenceError::Refused { .. }), "{refused}");
    user.batch_execute("SELECT 1").unwrap();
}

#[test]
fn a_transaction_that_cannot_be_fenced_says_why() {
    let (place, config) = shop();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = lock_blocking::Client::new(Arc::new(blocking::connect(&config).unwrap())).unwrap();
    let guard = client.mutex("stock").acquire().unwrap();
    let elsewhere = PostgresConfig::from_url(&format!("{}&schema=nowhere", place.server.url())).unwrap();
    let session = place.session();
    let mut user = session.client;
    let failed = within("the end of a scenario", || {
        runtime.block_on(async { Fences::new(&elsewhere).begin(&mut user, &guard).await.map(drop) })
    });
    let failed = failed.unwrap_err();
    assert!(matches!(&failed, FenceError::Database(_)), "{failed}");
    assert!(std::error::Error::source(&failed).is_some());
}

/// Nobody is notified by the commit of a user, and the holder may be gone: the head of the queue polls.
#[test]
fn waiters_behind_an_open_fence_time_out_or_get_the_lock_after_its_commit() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    user.begin("stock", low(&take(&client, &lasting(BRIEF, claim("stock"))))).unwrap();
    let locks = lock_blocking::Client::new(Arc::new(blocking::connect(&place.config()).unwrap())).unwrap();
    let patient = locks.mutex("stock").wait(SOON);
    let waiter = meanwhile(move || patient.acquire().map(drop));
    let waits = "SELECT count(*) = 1 FROM place WHERE name = 'stock'";
    let watcher = place.session();
    wait_for("a waiter", || watcher.value::<bool>(waits));
    let others = lock_blocking::Client::new(Arc::new(blocking::connect(&place.config()).unwrap())).unwrap();
    let error = others.mutex("stock").wait(Duration::from_secs(3)).acquire().map(drop).unwrap_err();
    assert!(matches!(error, lock_core::AcquireError::TimedOut { .. }), "{error:?}");
    wait_for("it has left", || watcher.value::<bool>(waits));
    assert!(!waiter.is_finished());
    user.run("COMMIT").unwrap();
    end(waiter).unwrap();
}

/// The waiters' places end before it does, unless they are refreshed beside it. A slow server is not what this is about.
#[test]
fn a_long_transaction_loses_none_of_those_who_wait_behind_it() {
    let place = Place::new();
    let (client, user) = (place.client(), place.session());
    user.begin("stock", low(&take(&client, &lasting(BRIEF, claim("stock"))))).unwrap();
    let config = PostgresConfig::from_url(&format!("{}&op_timeout=20s", place.url())).unwrap();
    let locks = || lock_blocking::Client::builder(Arc::new(blocking::connect(&config).unwrap()));
    let several: Vec<_> = (0..4).map(|_| locks().op_timeout(config.op_timeout()).build().unwrap()).collect();
    let wait = |i: usize| {
        let lock = several[i % several.len()].mutex("stock").wait(SOON * 3);
        meanwhile(move || lock.acquire().map(drop))
    };
    let waiters: Vec<_> = (0..20).map(wait).collect();
    std::thread::sleep(Duration::from_secs(12));
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    assert_eq!(place.session().value::<i64>("SELECT count(*) FROM place WHERE until > clock()"), 4);
    user.run("COMMIT").unwrap();
    for waiter in waiters {
        end(waiter).unwrap();
    }
}
