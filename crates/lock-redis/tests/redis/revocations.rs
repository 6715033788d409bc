//! Holders are notified at once that their lease was revoked, where the server can push.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use lock_core::inspect::Revoked;
use lock_core::{Claim, EventSink, FencingToken, LockName, LossReason, Mode, StoreEvent, Terms, Ttl, Waiting};
use test_support::sentinels::{self, url_of};
use test_support::{Cluster, RedisServer, Sentinel};

use crate::facades::{Connect, FACADES, on_threads};
use crate::queue::queue;
use crate::support::{SOON, both, claim, eventually, granted, hand_over, operator, take};

/// A lease of this ttl is renewed after a third of it: later than a test waits.
const TTL: Duration = Duration::from_secs(300);

fn revoke(url: &str, name: &str, token: FencingToken) {
    let (name, [(_, inspect), _]): (LockName, _) = (name.parse().unwrap(), both(url));
    assert_eq!(inspect.revoke(&name, token, &operator(), SOON), Ok(Revoked::Revoked));
}

/// Nobody waits for a lock. The first lease is revoked at once, before any client that is not connected for that can listen.
fn holders_are_told(url: &str, facades: &[(&str, Connect)]) {
    for (facade, connect) in facades {
        let client = connect(url);
        for time in ["at once", "later"] {
            let name = format!("{facade} {time}");
            let held = client.acquire(&name, TTL);
            revoke(url, &name, held.token());
            let lost = eventually(&format!("{name}: it is told"), || held.loss());
            assert_eq!(lost.reason, LossReason::Revoked { by: operator() }, "{name}");
        }
    }
}

#[test]
fn a_holder_is_told_that_its_lease_was_revoked() {
    holders_are_told(&RedisServer::start().url(), FACADES);
}

#[test]
fn a_holder_behind_sentinels_is_told_that_its_lease_was_revoked() {
    let server = sentinels::server(&[]);
    let sentinel = Sentinel::watching(&server);
    holders_are_told(&url_of(&[sentinel.port()]), &FACADES[..2]);
}

#[test]
fn a_holder_in_a_cluster_is_told_that_its_lease_was_revoked() {
    holders_are_told(&Cluster::start().url(), &FACADES[..2]);
}

/// A program that holds its locks briefly pays for no subscription, and one that holds on does.
#[test]
fn a_client_that_holds_briefly_is_not_subscribed() {
    let server = RedisServer::start();
    let client = on_threads(&server.url());
    let subscribers = || server.command::<String>(&["CLIENT", "LIST", "TYPE", "pubsub"]).lines().count();
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        let held = client.acquire("brief", TTL);
        thread::sleep(Duration::from_millis(20));
        held.release();
    }
    assert_eq!(subscribers(), 0);
    let _held = client.acquire("lasting", TTL);
    eventually("it is subscribed", || subscribers() == 1);
}

#[test]
fn a_reader_s_client_hears_of_its_revocation_under_its_own_name() {
    let server = RedisServer::start();
    let url = format!("{}?prefix=shop", server.url());
    for (facade, client) in both(&url) {
        let (sink, told) = mpsc::channel();
        client.listen(EventSink::new(move |event| _ = sink.send(event)));
        let waited_for = format!("waited for by {facade}");
        take(&client, &waited_for);
        queue(&client, &waited_for);
        let terms = Terms { mode: Mode::Shared, ttl: Ttl::DEFAULT };
        let lease = granted(client.acquire(&Claim { terms, ..claim(facade) }, SOON));
        revoke(&url, facade, lease.tokens.high());
        let revoked = StoreEvent::Revoked { name: lease.name };
        eventually("it hears of it", || told.recv_timeout(SOON).ok().filter(|event| *event == revoked));
    }
}

/// A right to the client's own inbox alone is enough to wait with.
#[test]
fn whoever_may_not_hear_of_revocations_is_notified_as_a_waiter() {
    let server = RedisServer::start();
    let own = format!("&leasehold:inbox:{}", "?".repeat(32));
    server.command::<()>(&["ACL", "SETUSER", "waiter", "on", ">pw", "~*", "+@all", "resetchannels", &own]);
    let url = format!("redis://waiter:pw@127.0.0.1:{}", server.port());
    for (facade, client) in both(&url) {
        hand_over(&client, facade);
        assert_eq!(client.capabilities().waiting, Waiting::QueueWithPush, "{facade}");
        let (_, lease) = take(&client, "revoked");
        revoke(&url, "revoked", lease.tokens.high());
    }
}
