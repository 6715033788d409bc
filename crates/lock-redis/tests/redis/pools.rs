//! Clients and pools of the user's.

use std::sync::Arc;

use lock_core::{AsyncBackend, Backend, BlockingBackend, Isolation};
use lock_redis::{blocking, nonblocking};
use test_support::RedisServer;

use crate::support::{Client, OnTokio, draw, take};

/// Excludes, and is excluded; draws tokens that rise after the server lost everything.
#[cfg(any(feature = "connection-manager", feature = "deadpool", feature = "r2d2"))]
fn works(server: &RedisServer, handed_in: &Client) {
    use crate::support::{SOON, both, claim, is_busy};

    let [(_, ours), _] = both(&server.url());
    take(handed_in, "theirs");
    is_busy(ours.acquire(&claim("theirs"), SOON));
    take(&ours, "ours");
    is_busy(handed_in.acquire(&claim("ours"), SOON));
    let before = draw(handed_in, "job");
    server.command::<()>(&["SET", "leasehold:counter", "5"]);
    assert!(draw(handed_in, "job") > before);
    assert_eq!(handed_in.capabilities().isolation, Isolation::Shared);
}

#[test]
fn a_client_is_an_address_and_the_keeper_gets_its_own_connection() {
    let server = RedisServer::start();
    let client = redis::Client::open(server.url()).unwrap();
    let on_tokio: Client = Arc::new(OnTokio::new(async || nonblocking::Redis::from(client.clone())));
    let plain: Client = Arc::new(blocking::Redis::from(client.clone()));
    for redis in [on_tokio, plain] {
        assert_eq!(redis.capabilities().isolation, Isolation::Isolated);
        draw(&redis, "job");
    }
    let one = Arc::new(blocking::Redis::from(client.clone()));
    let keeper = BlockingBackend::for_keeper(Arc::clone(&one) as Arc<dyn BlockingBackend>);
    assert_eq!(keeper.capabilities().isolation, one.capabilities().isolation);
    draw(&keeper, "job");
    let one = Arc::new(nonblocking::Redis::from(client));
    let keeper = Arc::clone(&one).for_keeper();
    assert_eq!(keeper.capabilities().isolation, one.capabilities().isolation);
}

#[test]
fn a_shared_connection_stays_shared() {
    let server = RedisServer::start();
    let client = redis::Client::open(server.url()).unwrap();
    let redis = OnTokio::new(async || {
        nonblocking::Redis::from(client.get_multiplexed_async_connection().await.unwrap()).with_prefix("shop").unwrap()
    });
    let keeper = Arc::clone(&redis.inner).for_keeper();
    assert_eq!(keeper.capabilities().isolation, Isolation::Shared);
    take(&(Arc::new(redis) as Client), "job");
    assert!(server.command::<bool>(&["EXISTS", "shop:job"]));
}

#[test]
#[cfg(feature = "connection-manager")]
fn a_connection_manager_works() {
    let server = RedisServer::start();
    let client = redis::Client::open(server.url()).unwrap();
    let manager = OnTokio::new(async || nonblocking::Redis::from(client.get_connection_manager().await.unwrap()));
    works(&server, &(Arc::new(manager) as Client));
}

#[test]
#[cfg(feature = "deadpool")]
fn a_deadpool_pool_works_and_its_absence_is_unreachable() {
    let mut server = RedisServer::start();
    let config = deadpool_redis::Config::from_url(server.url());
    let pool = config.create_pool(Some(deadpool_redis::Runtime::Tokio1)).unwrap();
    let pool: Client = Arc::new(OnTokio::new(async || nonblocking::Redis::from(pool)));
    works(&server, &pool);
    server.kill();
    let claim = crate::support::claim("job");
    let error = pool.acquire(&claim, crate::support::SOON).unwrap_err();
    assert_eq!(error.kind(), lock_core::ErrorKind::Unreachable, "{error}");
}

#[test]
#[cfg(feature = "r2d2")]
fn an_r2d2_pool_works_and_a_stopped_server_does_not_hang_it() {
    use lock_core::{Effect, ErrorKind};

    use crate::support::{SHORT, claim};

    let server = RedisServer::start();
    let pool = r2d2::Pool::builder()
        .max_size(2)
        .connection_customizer(Box::new(blocking::SocketTimeouts::new(SHORT)))
        .build(redis::Client::open(server.url()).unwrap())
        .unwrap();
    let pool: Client = Arc::new(blocking::Redis::from(pool));
    works(&server, &pool);
    server.stop();
    let error = pool.acquire(&claim("job"), SHORT).unwrap_err();
    assert!(error.kind().is_transient(), "{error}");
    assert_eq!(error.effect() == Effect::None, error.kind() == ErrorKind::Unreachable);
    server.resume();
}
