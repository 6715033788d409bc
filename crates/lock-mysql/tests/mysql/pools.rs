//! Pools of the user's: with settings of their own, all in use, or of another database.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lock_core::{Answer, BackendError, ErrorKind};
use lock_host::Bridge;
use lock_mysql::{MysqlConfig, blocking, nonblocking};
use mysql::prelude::Queryable;
use mysql::{OptsBuilder, PoolConstraints, PoolOpts};
use test_support::Product;
use test_support::bounds::wait_for;

use crate::support::{
    Client, Place, SOON, claim, driver_opts, granted, is_busy, is_queued, low, permits, release_of, releases, take,
    waiting,
};

/// The settings that the sessions of a pool may have.
const ODD: [&str; 5] = [
    "SET autocommit = 0",
    "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'",
    "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET group_concat_max_len = 64",
    "SET time_zone = '+09:00'",
];

/// Those, and one that MariaDB alone has: too little time for a request.
fn odd() -> Vec<&'static str> {
    let limited = (Product::tested() != Product::Mysql).then_some("SET max_statement_time = 0.001");
    ODD.into_iter().chain(limited).collect()
}

/// A pool of this many connections at most.
fn pool(url: &str, most: usize, init: &[&str]) -> mysql::Pool {
    let constraints = PoolConstraints::new(1, most).unwrap();
    let options = OptsBuilder::from_opts(driver_opts(url)).prefer_socket(false).init(init.to_vec());
    let options = options.pool_opts(PoolOpts::default().with_constraints(constraints));
    wait_for("a pool", || mysql::Pool::new(options.clone()))
}

fn over(pool: &mysql::Pool, place: &Place) -> Client {
    Arc::new(wait_for("a connection", || blocking::pooled(pool.clone(), &place.config())))
}

/// One client hands its locks to another one.
fn exchange(one: &Client, other: &Client) {
    for name in ["report", "日本語 \\ ' \" ||"] {
        let (first, second) = (claim(name), waiting(name));
        let lease = take(one, &first);
        is_busy(other.acquire(&claim(name), SOON));
        is_queued(other.acquire(&second, SOON), 1);
        let entry = other.holder(&lease.name, SOON).unwrap().unwrap();
        assert_eq!((entry.name.as_str(), entry.waiters), (name, 1));
        one.renew(std::slice::from_ref(&lease), SOON).unwrap();
        releases(one, &first);
        assert!(low(&granted(other.acquire(&second, SOON))) > low(&lease));
        releases(other, &second);
    }
    let several: Vec<_> = (0..20).map(|_| permits("gpu", 1, 20)).collect();
    several.iter().for_each(|claim| drop(take(one, claim)));
    is_busy(other.acquire(&permits("gpu", 1, 20), SOON));
    several.iter().for_each(|claim| releases(one, claim));
}

#[test]
fn what_the_sessions_of_a_pool_for_threads_were_told_does_not_matter() {
    let place = Place::new();
    let pool = pool(&place.url, 4, &odd());
    exchange(&over(&pool, &place), &place.client());
    exchange(&place.client(), &over(&pool, &place));
}

#[test]
fn what_the_sessions_of_a_pool_for_tokio_were_told_does_not_matter() {
    let place = Place::new();
    let bridge = Bridge::start().unwrap();
    let url = format!("{}?prefer_socket=false", place.url);
    let options = mysql_async::OptsBuilder::from_opts(mysql_async::Opts::from_url(&url).unwrap()).setup(odd());
    let pool = mysql_async::Pool::new(options);
    let connect = || bridge.block_on(nonblocking::pooled(pool.clone(), &place.config()));
    let store = Arc::new(wait_for("a connection", connect));
    let client: Client = Arc::new(lock_host::Bridged::new(store, bridge.clone()));
    exchange(&client, &place.client());
    exchange(&place.client(), &client);
}

#[test]
fn leases_are_renewed_and_released_while_the_pool_is_in_use() {
    let place = Place::new();
    let pool = pool(&place.url, 1, &[]);
    let store = wait_for("a connection", || blocking::pooled(pool.clone(), &place.config()));
    let (locks, other) = (lock_blocking::Client::new(Arc::new(store)).unwrap(), place.client());
    let ttl = Duration::from_secs(6);
    let guard = locks.mutex("report").ttl(ttl).acquire().unwrap();
    let in_use = pool.get_conn().unwrap();
    thread::sleep(ttl * 4 / 3);
    assert!(guard.check().is_ok(), "it was renewed");
    is_busy(other.acquire(&claim("report"), SOON));
    guard.release().unwrap();
    let next = waiting("report");
    wait_for("the lock is free", || matches!(other.acquire(&next, SOON), Ok(Answer::Granted { .. })));
    let refused = locks.mutex("other").acquire().map(drop).unwrap_err();
    assert!(refused.to_string().contains("connection"), "{refused}");
    drop(in_use);
    wait_for("a connection is free again", || locks.mutex("other").acquire().map(drop));
}

fn refusal(pool: &mysql::Pool, config: &MysqlConfig) -> BackendError {
    blocking::pooled(pool.clone(), config).map(drop).unwrap_err()
}

#[test]
fn a_pool_of_another_database_is_refused() {
    let [place, other] = [Place::new(), Place::new()];
    let error = refusal(&pool(&other.url, 1, &[]), &place.config());
    assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    for words in [place.database(), other.database(), "let both name the same database"] {
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
}

/// Leases would end by that clock.
#[test]
fn a_session_with_a_clock_of_its_own_gets_no_lock() {
    let place = Place::new();
    for timestamp in ["1000000000", "2000000000"] {
        let clock = format!("SET timestamp = {timestamp}");
        let client = over(&pool(&place.url, 1, &[&clock]), &place);
        let error = client.acquire(&claim("report"), SOON).unwrap_err();
        assert!(error.to_string().contains("a clock of its own"), "{error}");
    }
    take(&place.client(), &claim("report"));
}

/// The transaction of a user must not be committed, or seen, by a request.
#[test]
fn a_connection_that_comes_back_within_a_transaction_is_clean() {
    let place = Place::new();
    place.session().run("CREATE TABLE note (text VARCHAR(9))").unwrap();
    let pool = pool(&place.url, 1, &[]);
    let client = over(&pool, &place);
    for i in 0..3 {
        let mut user = pool.get_conn().unwrap();
        user.query_drop("START TRANSACTION").unwrap();
        user.query_drop("INSERT INTO note VALUES ('draft')").unwrap();
        drop(user);
        let claim = claim(&format!("report {i}"));
        take(&client, &claim);
        client.release(&release_of(&claim), SOON).unwrap();
    }
    assert_eq!(place.session().value::<i32>("SELECT COUNT(*) FROM note"), 0);
}
