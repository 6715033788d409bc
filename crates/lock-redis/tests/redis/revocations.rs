//! Holders are told at once that their lease was revoked, where the server can push.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use lock_async::Client;
use lock_core::inspect::Revoked;
use lock_core::{AsyncBackend, Event, EventSink, LossReason};
use lock_redis::{RedisConfig, cluster, nonblocking};
use test_support::{Cluster, RedisServer};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::inspect::inspectors;
use crate::queue::queue;
use crate::support::{SOON, both, eventually, operator, take};

/// A lease of this ttl is renewed after a third of it: later than the test waits.
const TTL: Duration = Duration::from_secs(300);

/// A lock and a reader's lease are revoked.
async fn the_holder_is_told<B: AsyncBackend>(url: &str, backend: B) {
    let client = Client::new(Arc::new(backend)).unwrap();
    let held = client.mutex("held").ttl(TTL).acquire().await.unwrap();
    let read = client.rw_lock("read").read().ttl(TTL).acquire().await.unwrap();
    let leases = [("held", held.fencing_token()), ("read", read.fencing_token())];
    let url = url.to_owned();
    let revoking = tokio::task::spawn_blocking(move || {
        let [(_, inspect), _] = inspectors(&url);
        leases.map(|(name, token)| inspect.revoke(&name.parse().unwrap(), token, &operator(), SOON))
    });
    assert_eq!(revoking.await.unwrap(), [Ok(Revoked::Revoked), Ok(Revoked::Revoked)]);
    for lost in [timeout(SOON, held.lost()).await, timeout(SOON, read.lost()).await] {
        assert_eq!(lost.expect("it is told").reason, LossReason::Revoked { by: operator() });
    }
}

#[test]
fn a_holder_is_told_that_its_lease_was_revoked() {
    let server = RedisServer::start();
    let config = RedisConfig::from_url(&server.url()).unwrap();
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let redis = nonblocking::Redis::connect(&config).await.unwrap();
        the_holder_is_told(&server.url(), redis).await;
    });
}

#[test]
fn a_holder_in_a_cluster_is_told_that_its_lease_was_revoked() {
    let cluster = Cluster::start();
    let config = RedisConfig::from_url(&cluster.url()).unwrap();
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let redis = cluster::nonblocking::Cluster::connect(&config).await.unwrap();
        the_holder_is_told(&cluster.url(), redis).await;
    });
}

/// A blocking client listens once it has waited for a lock.
#[test]
fn a_client_that_waited_hears_of_revocations() {
    let server = RedisServer::start();
    let url = format!("{}?prefix=shop", server.url());
    for (facade, client) in both(&url) {
        let (sink, told) = mpsc::channel();
        client.listen(EventSink::new(move |event| _ = sink.send(event)));
        let name = format!("waited for by {facade}");
        take(&client, &name);
        queue(&client, &name);
        let (_, lease) = take(&client, facade);
        let [(_, inspect), _] = inspectors(&url);
        assert_eq!(inspect.revoke(&lease.name, lease.tokens.high(), &operator(), SOON), Ok(Revoked::Revoked));
        let revoked = Event::Revoked { name: lease.name };
        let heard = eventually("it hears of it", || told.recv_timeout(SOON).ok().filter(|event| *event == revoked));
        assert_eq!(heard, revoked);
    }
}
