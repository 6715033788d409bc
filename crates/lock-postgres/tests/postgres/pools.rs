//! Pools of the user's whose connections are not in order.

use std::sync::Arc;

use lock_core::AsyncBackend;
use lock_host::{Bridge, Bridged};
use lock_postgres::PostgresConfig;
use lock_postgres::nonblocking;
use tokio_postgres::NoTls;

use crate::support::{Client, Place, SOON, claim, is_busy, take};

fn plain(url: &str) -> &str {
    url.split_once('?').unwrap().0
}

#[test]
fn a_transaction_that_somebody_left_open_in_a_deadpool_pool_takes_no_grant_back() {
    let place = Place::new();
    let (bridge, config) = (Bridge::start().unwrap(), place.config());
    let manager = deadpool_postgres::Manager::new(plain(&place.url()).parse().unwrap(), NoTls);
    let pool = deadpool_postgres::Pool::builder(manager).max_size(1).build().unwrap();
    let pooled = bridge.block_on(nonblocking::pooled(pool.clone(), &config)).unwrap();
    let run =
        |sql: &'static str| bridge.block_on(async { pool.get().await.unwrap().batch_execute(sql).await }).unwrap();
    run("BEGIN");
    let client: Client = Arc::new(Bridged::new(Arc::new(pooled) as Arc<dyn AsyncBackend>, bridge.clone()));
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
