//! Clients over a user's pools of PostgreSQL, beside clients of URLs.

use leasehold::{ConnectError, FromPostgres, blocking};
use test_support::PostgresServer;
use tokio_postgres::NoTls;

/// The URL as drivers read it, without this library's options.
fn settings<C: std::str::FromStr<Err: std::fmt::Debug>>(url: &str) -> C {
    url.split_once('?').map_or(url, |(plain, _)| plain).parse().unwrap()
}

fn deadpool(url: &str) -> deadpool_postgres::Pool {
    let manager = deadpool_postgres::Manager::new(settings(url), NoTls);
    deadpool_postgres::Pool::builder(manager).max_size(2).build().unwrap()
}

fn r2d2(url: &str) -> leasehold::postgres::blocking::Pool<NoTls> {
    let manager = r2d2_postgres::PostgresConnectionManager::new(settings(url), NoTls);
    r2d2::Pool::builder().max_size(2).build(manager).unwrap()
}

fn leads_elsewhere(error: &ConnectError) -> bool {
    let text = error.to_string();
    text.contains("the pool leads to other of the server") && text.contains("name the same database")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_over_a_deadpool_pool_exchanges_locks_with_one_of_a_url() {
    let server = PostgresServer::start();
    let pooled = leasehold::Client::from_pool(deadpool(&server.url()), &server.url()).await.unwrap();
    let by_url = leasehold::connect(&server.url()).await.unwrap();

    let held = by_url.mutex("job").acquire().await.unwrap();
    assert!(pooled.mutex("job").try_acquire().await.unwrap().is_none());
    let job = pooled.mutex("job");
    let next = tokio::spawn(async move { job.acquire().await });
    held.release().await.unwrap();
    next.await.unwrap().unwrap().release().await.unwrap();

    let other = deadpool(&server.database("other"));
    let error = leasehold::Client::from_pool(other, &server.url()).await.unwrap_err();
    assert!(leads_elsewhere(&error), "{error}");
}

#[test]
fn a_client_over_an_r2d2_pool_exchanges_locks_with_one_of_a_url() {
    use blocking::{Client, FromPostgres};

    let server = PostgresServer::start();
    let pooled = Client::from_pool(r2d2(&server.url()), &server.url()).unwrap();
    let by_url = blocking::connect(&server.url()).unwrap();

    let held = by_url.mutex("job").acquire().unwrap();
    assert!(pooled.mutex("job").try_acquire().unwrap().is_none());
    let next = std::thread::spawn(move || pooled.mutex("job").acquire());
    held.release().unwrap();
    next.join().unwrap().unwrap().release().unwrap();

    let error = Client::from_pool(r2d2(&server.database("other")), &server.url()).unwrap_err();
    assert!(leads_elsewhere(&error), "{error}");
}
