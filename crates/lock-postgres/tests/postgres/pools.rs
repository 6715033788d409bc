//! Pools of the user's whose connections are not in order, or all in use.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use deadpool_postgres::Object;
use lock_core::AsyncBackend;
use lock_host::{Bridge, Bridged};
use lock_postgres::PostgresConfig;
use lock_postgres::nonblocking;
use test_support::bounds::wait_for;
use tokio_postgres::NoTls;

use crate::support::{
    Client, Place, SOON, claim, end, events_of, is_busy, is_queued, is_told, meanwhile, releases, take, waiting,
};

fn plain(url: &str) -> &str {
    url.split_once('?').unwrap().0
}

/// A deadpool pool of one connection.
#[derive(Clone)]
struct Small {
    bridge: Bridge,
    pool: deadpool_postgres::Pool,
}

impl Small {
    fn of(place: &Place) -> Self {
        let manager = deadpool_postgres::Manager::new(plain(&place.url()).parse().unwrap(), NoTls);
        let pool = deadpool_postgres::Pool::builder(manager).max_size(1).build().unwrap();
        Self { bridge: Bridge::start().unwrap(), pool }
    }

    fn client(&self, place: &Place) -> Client {
        let (pool, config) = (self.clone(), place.config());
        let connect = move || pool.bridge.block_on(nonblocking::pooled(pool.pool.clone(), &config));
        let pooled: Arc<dyn AsyncBackend> = Arc::new(end(meanwhile(move || wait_for("a connection", &connect))));
        Arc::new(Bridged::new(pooled, self.bridge.clone()))
    }

    /// The connection. Its waiters get it in turn.
    fn get(&self) -> Object {
        let pool = self.clone();
        end(meanwhile(move || pool.bridge.block_on(pool.pool.get()).unwrap()))
    }

    #[track_caller]
    fn has_waiters(&self, count: usize) {
        wait_for(&format!("{count} wait for a connection"), || self.pool.status().waiting == count);
    }
}

#[test]
fn a_transaction_that_somebody_left_open_in_a_deadpool_pool_takes_no_grant_back() {
    let place = Place::new();
    let pool = Small::of(&place);
    let run = |sql: &str| pool.bridge.block_on(pool.get().batch_execute(sql)).unwrap();
    run("BEGIN");
    let client = pool.client(&place);
    take(&client, &claim("a"));
    run("ROLLBACK");
    is_busy(place.client().acquire(&claim("a"), SOON));
}

#[test]
fn nor_in_an_r2d2_pool() {
    let place = Place::new();
    let manager = r2d2_postgres::PostgresConnectionManager::new(plain(&place.url()).parse().unwrap(), NoTls);
    let pool = r2d2::Pool::builder().max_size(1).test_on_check_out(false).build(manager).unwrap();
    let config: PostgresConfig = place.config();
    let client: Client = Arc::new(lock_postgres::blocking::pooled(pool.clone(), &config).unwrap());
    pool.get().unwrap().batch_execute("BEGIN").unwrap();
    take(&client, &claim("a"));
    pool.get().unwrap().batch_execute("ROLLBACK").unwrap();
    is_busy(place.client().acquire(&claim("a"), SOON));
}

/// The user gets the connection after the claim, and keeps it.
#[test]
fn a_waiter_is_told_of_its_turn_though_all_connections_of_the_pool_are_in_use() {
    let place = Place::new();
    let (holding, held, queued, pool) = (place.client(), claim("a"), waiting("a"), Small::of(&place));
    take(&holding, &held);
    let client = pool.client(&place);
    let (told, first) = (events_of(&*client), pool.get());
    let (asks, claim) = (Arc::clone(&client), queued.clone());
    let asking = meanwhile(move || asks.acquire(&claim, SOON));
    pool.has_waiters(1);
    let user = pool.clone();
    let second = meanwhile(move || user.get());
    pool.has_waiters(2);
    drop(first);
    is_queued(end(asking), 1);
    let _in_use = end(second);
    releases(&holding, &held);
    is_told(&told, &queued);
}

/// A lease that a client has outlasts its ttl by renewals.
#[test]
fn a_lease_is_renewed_though_all_connections_of_the_pool_are_in_use() {
    let place = Place::new();
    let (other, pool, brief) = (place.client(), Small::of(&place), Duration::from_secs(3));
    let locks = lock_blocking::Client::new(pool.client(&place)).unwrap();
    let guard = locks.mutex("a").ttl(brief).acquire().unwrap();
    let _in_use = pool.get();
    thread::sleep(brief * 2);
    assert!(guard.check().is_ok(), "it was renewed");
    is_busy(other.acquire(&claim("a"), SOON));
}

#[test]
fn a_lock_is_released_though_all_connections_of_the_pool_are_in_use() {
    let place = Place::new();
    let (other, pool) = (place.client(), Small::of(&place));
    let locks = lock_blocking::Client::new(pool.client(&place)).unwrap();
    let [first, second] = ["a", "b"].map(|name| locks.mutex(name).ttl(SOON * 10).acquire().unwrap());
    let _in_use = pool.get();
    first.release().unwrap();
    take(&other, &claim("a"));
    drop(second);
    let next = claim("b");
    let is_free = || matches!(other.acquire(&next, SOON), Ok(lock_core::Answer::Granted { .. }));
    wait_for("the lock of a guard that was dropped", is_free);
}
