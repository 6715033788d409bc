//! A user's clients and pools.

use std::sync::Arc;

use lock_core::{AsyncBackend, Backend, BlockingBackend, Isolation};
#[cfg(any(feature = "deadpool", feature = "r2d2"))]
use lock_core::{BackendError, Effect};
#[cfg(any(feature = "deadpool", feature = "r2d2"))]
use lock_redis::RedisConfig;
use lock_redis::{blocking, nonblocking};
use test_support::RedisServer;

use crate::support::{Client, bridged, draw, take};

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
    let on_tokio: Client = Arc::new(bridged(async || nonblocking::Redis::from(client.clone())));
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
    let redis = bridged(async || {
        nonblocking::Redis::from(client.get_multiplexed_async_connection().await.unwrap()).with_prefix("shop").unwrap()
    });
    let keeper = Arc::clone(redis.inner()).for_keeper();
    assert_eq!(keeper.capabilities().isolation, Isolation::Shared);
    take(&(Arc::new(redis) as Client), "job");
    assert!(server.command::<bool>(&["EXISTS", "shop:job"]));
}

#[test]
#[cfg(feature = "connection-manager")]
fn a_connection_manager_works() {
    let server = RedisServer::start();
    let client = redis::Client::open(server.url()).unwrap();
    let manager = bridged(async || nonblocking::Redis::from(client.get_connection_manager().await.unwrap()));
    works(&server, &(Arc::new(manager) as Client));
}

#[test]
#[cfg(feature = "deadpool")]
fn a_deadpool_pool_works_and_its_absence_is_unreachable() {
    let mut server = RedisServer::start();
    let pool = crate::facades::deadpool(&server.url());
    let pool: Client = Arc::new(bridged(async || nonblocking::Redis::from(pool)));
    works(&server, &pool);
    server.kill();
    let claim = crate::support::claim("job");
    let error = pool.acquire(&claim, crate::support::SOON).unwrap_err();
    assert_eq!(error.kind(), lock_core::ErrorKind::Unreachable, "{error}");
}

#[test]
#[cfg(feature = "r2d2")]
fn an_r2d2_pool_works_and_a_stopped_server_does_not_hang_it() {
    use lock_core::ErrorKind;

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

/// The capabilities of a pool with a URL for notifications, and the error for the URL of another server.
#[cfg(any(feature = "deadpool", feature = "r2d2"))]
fn pools_with_a_url(pooled: impl Fn(&str, &str) -> Result<Client, BackendError>) {
    use lock_core::{ErrorKind, Waiting};

    let (server, other) = (RedisServer::start(), RedisServer::start());
    let client = pooled(&server.url(), &format!("{}/?prefix=shop", server.url())).unwrap();
    assert_eq!(client.capabilities().isolation, Isolation::Isolated);
    assert_eq!(client.capabilities().waiting, Waiting::QueueWithPush);
    take(&client, "job");
    assert!(server.command::<bool>(&["EXISTS", "shop:job"]));
    assert!(server.command::<Vec<String>>(&["KEYS", "leasehold:probe:*"]).is_empty());
    for elsewhere in [other.url(), format!("{}/1", server.url())] {
        let error = pooled(&server.url(), &elsewhere).err().unwrap();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None), "{error}");
        assert!(
            error.to_string().contains("the pool leads to a different server or database from redis://127.0.0.1"),
            "{error}"
        );
    }
    let dwelling = format!("{}/?failover=dwell", server.url());
    for (url, kind, words) in [
        ("redis+sentinel://127.0.0.1:1/mymaster", ErrorKind::Config, "a fail-over; give the URL of one server"),
        (&dwelling, ErrorKind::Unsupported, "remove these options from the URL"),
    ] {
        let error = pooled(&server.url(), url).err().unwrap();
        assert_eq!((error.kind(), error.effect()), (kind, Effect::None), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
#[cfg(feature = "deadpool")]
fn a_deadpool_pool_with_a_url_is_notified() {
    pools_with_a_url(|pool, url| {
        let (pool, config) = (crate::facades::deadpool(pool), RedisConfig::from_url(url).unwrap());
        Ok(Arc::new(crate::support::try_bridged(async || nonblocking::Redis::pooled(pool, &config).await)?))
    });
}

#[test]
#[cfg(feature = "deadpool")]
fn a_waiter_over_a_pool_reopens_the_connection_for_notifications() {
    use lock_core::{Claim, Queueing};

    use crate::support::{SOON, claim, eventually};

    let server = RedisServer::start();
    let (pool, config) = (crate::facades::deadpool(&server.url()), RedisConfig::from_url(&server.url()).unwrap());
    let pooled = bridged(async || nonblocking::Redis::pooled(pool, &config).await.unwrap());
    let client: Client = Arc::new(pooled);
    take(&client, "job");
    let channels = || server.command::<Vec<String>>(&["PUBSUB", "CHANNELS", "leasehold:inbox:*"]).len();
    // Its own, and the one of all clients.
    assert_eq!((channels(), server.command::<u8>(&["CLIENT", "KILL", "TYPE", "pubsub"])), (2, 1));
    eventually("the connection is gone", || channels() == 0);
    let waiter = Claim { queueing: Queueing::Wanted, ..claim("job") };
    eventually("it is made again", || {
        client.acquire(&waiter, SOON).unwrap();
        channels() == 2
    });
}

#[test]
#[cfg(feature = "r2d2")]
fn an_r2d2_pool_with_a_url_is_notified() {
    pools_with_a_url(|pool, url| {
        let redis = blocking::Redis::pooled(crate::facades::r2d2(pool), &RedisConfig::from_url(url).unwrap())?;
        Ok(Arc::new(redis))
    });
}
