//! Clients of a MariaDB: by its URL, and over pools of the user's.

use std::time::Duration;

use leasehold::mysql::{FenceError, Fences, MysqlConfig};
use leasehold::{ConnectError, FromMysql, blocking};
use mysql_async::TxOpts;
use mysql_async::prelude::Queryable;
use test_support::{MysqlOptions, MysqlServer};

const WITHIN: Duration = Duration::from_secs(20);

fn leads_elsewhere(error: &ConnectError) -> bool {
    let text = error.to_string();
    text.contains("the pool leads to test_locks_0 of the server") && text.contains("name the same database")
}

#[tokio::test(flavor = "multi_thread")]
async fn both_faces_meet_at_a_mariadb() {
    let server = MysqlServer::start_with(MysqlOptions::default().volatile().require_password("sesame"));
    let tokio = leasehold::connect(&server.url()).await.unwrap();
    let plain = blocking::connect(&server.url().replace("mysql://", "mariadb://")).unwrap();
    let guard = tokio.mutex("a").acquire().await.unwrap();
    assert!(plain.mutex("a").try_acquire().unwrap().is_none());
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    let guard = plain.mutex("a").wait(WITHIN).acquire().unwrap();
    assert!(guard.fencing_token() > token);
    assert!(tokio.mutex("a").try_acquire().await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_over_a_pool_exchanges_locks_with_one_of_a_url() {
    let server = MysqlServer::start();
    let pool = mysql_async::Pool::new(server.url().as_str());
    let pooled = leasehold::Client::from_pool(pool, &server.url()).await.unwrap();
    let by_url = leasehold::connect(&server.url()).await.unwrap();

    let held = by_url.mutex("job").acquire().await.unwrap();
    assert!(pooled.mutex("job").try_acquire().await.unwrap().is_none());
    let job = pooled.mutex("job");
    let next = tokio::spawn(async move { job.acquire().await });
    held.release().await.unwrap();
    next.await.unwrap().unwrap().release().await.unwrap();

    let other = mysql_async::Pool::new(server.new_database().as_str());
    let error = leasehold::Client::from_pool(other, &server.url()).await.unwrap_err();
    assert!(leads_elsewhere(&error), "{error}");
}

#[test]
fn a_client_over_a_pool_for_threads_exchanges_locks_with_one_of_a_url() {
    use blocking::{Client, FromMysql};

    let server = MysqlServer::start();
    let pool = |url: &str| mysql::Pool::new(mysql::Opts::from_url(url).unwrap()).unwrap();
    let pooled = Client::from_pool(pool(&server.url()), &server.url()).unwrap();
    let by_url = blocking::connect(&server.url()).unwrap();

    let held = by_url.mutex("job").acquire().unwrap();
    assert!(pooled.mutex("job").try_acquire().unwrap().is_none());
    let next = std::thread::spawn(move || pooled.mutex("job").acquire());
    held.release().unwrap();
    next.join().unwrap().unwrap().release().unwrap();

    let error = Client::from_pool(pool(&server.new_database()), &server.url()).unwrap_err();
    assert!(leads_elsewhere(&error), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_fenced_by_a_guard() {
    let server = MysqlServer::start();
    let config = MysqlConfig::from_url(&server.url()).unwrap();
    let (locks, fences) = (leasehold::connect(&server.url()).await.unwrap(), Fences::new(&config));
    let mut db = mysql_async::Conn::new(mysql_async::Opts::from_url(&server.url()).unwrap()).await.unwrap();
    db.query_drop("CREATE TABLE account (balance BIGINT)").await.unwrap();

    let guard = locks.mutex("account").acquire().await.unwrap();
    let mut transaction = fences.begin(&mut db, &guard, TxOpts::default()).await.unwrap();
    transaction.query_drop("INSERT INTO account VALUES (100)").await.unwrap();
    transaction.commit().await.unwrap();

    server.execute("UPDATE leasehold_hold SET until = 1");
    let refused = fences.begin(&mut db, &guard, TxOpts::default()).await.unwrap_err();
    assert!(matches!(refused, FenceError::Refused { .. }), "{refused}");
}
