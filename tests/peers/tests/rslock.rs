//! rslock and leasehold on one key of one Redis exclude each other.

use std::time::Duration;

use rslock::LockManager;
use test_support::RedisServer;

const TTL: Duration = Duration::from_secs(10);

#[tokio::test]
async fn rslock_and_leasehold_exclude_each_other_and_release_for_each_other() {
    let server = RedisServer::start();
    let theirs = LockManager::new(vec![server.url()]);
    let ours = leasehold::connect(&server.url()).await.unwrap();
    let name = "invoice:42";

    let held = theirs.lock(name.as_bytes(), TTL).await.expect("rslock takes a free lock");
    assert!(ours.mutex(name).try_acquire().await.unwrap().is_none(), "held by rslock");
    theirs.unlock(&held).await;

    let guard = ours.mutex(name).try_acquire().await.unwrap().expect("rslock has released it");
    assert!(theirs.lock(name.as_bytes(), TTL).await.is_err(), "held by leasehold");
    guard.release().await.unwrap();
    let held = theirs.lock(name.as_bytes(), TTL).await.expect("leasehold has released it");

    let waiting = tokio::spawn(async move { ours.mutex(name).acquire().await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "waits for rslock");
    theirs.unlock(&held).await;
    let guard = tokio::time::timeout(TTL, waiting).await.expect("rslock has released it").unwrap().unwrap();
    assert!(guard.check().is_ok());
}

#[tokio::test]
async fn rslock_stays_out_while_readers_or_permits_are_held_and_the_reverse() {
    let server = RedisServer::start();
    let theirs = LockManager::new(vec![server.url()]);
    let ours = leasehold::connect(&server.url()).await.unwrap();

    let catalog = ours.rw_lock("catalog").read();
    let (one, two) = (catalog.acquire().await.unwrap(), catalog.acquire().await.unwrap());
    assert!(theirs.lock(b"catalog", TTL).await.is_err(), "two read");
    one.release().await.unwrap();
    assert!(theirs.lock(b"catalog", TTL).await.is_err(), "one reads");
    two.release().await.unwrap();
    let held = theirs.lock(b"catalog", TTL).await.expect("nobody reads");
    assert!(catalog.try_acquire().await.unwrap().is_none(), "held by rslock");
    theirs.unlock(&held).await;
    catalog.try_acquire().await.unwrap().expect("rslock has released it").release().await.unwrap();

    let gpus = ours.semaphore("gpu", 2);
    let permit = gpus.acquire().await.unwrap();
    assert!(theirs.lock(b"gpu", TTL).await.is_err(), "one permit is held");
    permit.release().await.unwrap();
    let held = theirs.lock(b"gpu", TTL).await.expect("all permits are free");
    assert!(gpus.try_acquire().await.unwrap().is_none(), "held by rslock");
    theirs.unlock(&held).await;
    assert!(gpus.try_acquire().await.unwrap().is_some());
}
