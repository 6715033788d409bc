//! Clients over a user's pools, beside clients of URLs.

use std::time::{Duration, Instant};

use leasehold::backend::Waiting;
use leasehold::{ConnectError, FromRedis, blocking};
use test_support::RedisServer;

/// How soon a notified waiter has the lock: far sooner than by asking again.
const AT_ONCE: Duration = Duration::from_secs(2);

fn deadpool(server: &RedisServer) -> leasehold::redis::nonblocking::Pool {
    deadpool_redis::Config::from_url(server.url()).create_pool(Some(deadpool_redis::Runtime::Tokio1)).unwrap()
}

fn r2d2(server: &RedisServer) -> leasehold::redis::blocking::Pool {
    r2d2::Pool::builder().max_size(2).build(redis::Client::open(server.url()).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_with_a_url_is_notified_and_one_without_polls() {
    let server = RedisServer::start();
    let pooled = leasehold::Client::from_pool(deadpool(&server)).push(server.url()).connect().await.unwrap();
    assert_eq!(pooled.capabilities().waiting, Waiting::QueueWithPush);
    let alone = leasehold::Client::from_pool(deadpool(&server)).connect().await.unwrap();
    assert_eq!(alone.capabilities().waiting, Waiting::Queue);
    let by_url = leasehold::Client::from_redis(redis::Client::open(server.url()).unwrap()).unwrap();

    let held = by_url.mutex("job").acquire().await.unwrap();
    let job = pooled.mutex("job").wait(20 * AT_ONCE);
    let next = tokio::spawn(async move { job.acquire().await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let released_at = Instant::now();
    held.release().await.unwrap();
    let next = next.await.unwrap().unwrap();
    assert!(released_at.elapsed() < AT_ONCE);
    assert!(alone.mutex("job").try_acquire().await.unwrap().is_none());
    next.release().await.unwrap();
}

#[test]
fn an_r2d2_pool_with_a_url_is_notified_and_one_without_polls() {
    use blocking::{Client, FromRedis};

    let server = RedisServer::start();
    let pooled = Client::from_pool(r2d2(&server)).push(server.url()).connect().unwrap();
    assert_eq!(pooled.capabilities().waiting, Waiting::QueueWithPush);
    let alone = Client::from_pool(r2d2(&server)).connect().unwrap();
    assert_eq!(alone.capabilities().waiting, Waiting::Queue);
    let by_url = Client::from_redis(redis::Client::open(server.url()).unwrap()).unwrap();

    let held = by_url.mutex("job").acquire().unwrap();
    let next = std::thread::spawn(move || pooled.mutex("job").wait(20 * AT_ONCE).acquire());
    std::thread::sleep(Duration::from_millis(500));
    let released_at = Instant::now();
    held.release().unwrap();
    let next = next.join().unwrap().unwrap();
    assert!(released_at.elapsed() < AT_ONCE);
    assert!(alone.mutex("job").try_acquire().unwrap().is_none());
    next.release().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_waits_for_no_connection_of_a_deadpool_pool() {
    let server = RedisServer::start();
    let pool = deadpool(&server);
    let locks = leasehold::Client::from_pool(pool.clone()).push(server.url()).connect().await.unwrap();
    let held = locks.mutex("job").acquire().await.unwrap();
    let mut all = Vec::new();
    for _ in 0..pool.status().max_size {
        all.push(pool.get().await.unwrap());
    }
    let ended = tokio::time::timeout(20 * AT_ONCE, held.release()).await.unwrap();
    assert_eq!(ended, Ok(()));
}

#[test]
fn a_release_waits_for_no_connection_of_an_r2d2_pool() {
    use blocking::{Client, FromRedis};

    let server = RedisServer::start();
    let pool = r2d2(&server);
    let locks = Client::from_pool(pool.clone()).push(server.url()).connect().unwrap();
    let held = locks.mutex("job").acquire().unwrap();
    let _all = [pool.get().unwrap(), pool.get().unwrap()];
    let ended = held.release();
    assert_eq!(ended, Ok(()));
}

#[tokio::test]
async fn a_bad_url_is_refused_before_anything_is_sent_and_shown_without_its_password() {
    let server = RedisServer::start();
    let builder = leasehold::Client::from_pool(deadpool(&server)).push("redis://:sesame@127.0.0.1/?prefix=");
    assert!(!format!("{builder:?}").contains("sesame"));
    assert!(matches!(builder.connect().await, Err(ConnectError::Invalid(_))));
}
