//! The end of a session: asked for, at the server, or with the client.

use std::time::Duration;

use lock_core::{Answer, Holder, StoreEvent};
use test_support::bounds::{wait_at_most, wait_for};
use test_support::{Fault, Proxy, ZookeeperServer};

use crate::support::{Client, LONG, SHORT, SOON, Viewer, at, claim, lasts_while_cut_off, server, url, waiting};

/// A session that ends while a test looks on.
const BRIEF: Duration = Duration::from_secs(1);
/// Far less than a long session.
const AT_ONCE: Duration = Duration::from_secs(10);

#[test]
fn a_session_that_is_to_end_is_told_once_and_ends_with_its_entries() {
    let server = server();
    let [client, other] = [(); 2].map(|()| Client::new(&url(&server.address(), LONG)));
    let [held, next] = [claim("session/held"), waiting("session/held")];
    let lease = client.take(&held);
    let place = waiting("session/place");
    other.take(&claim("session/place"));
    client.queue(&place, 1);
    other.queue(&next, 1);
    assert_eq!(client.sessions_ended(), 0);
    client.end_session();
    assert_eq!(client.sessions_ended(), 1, "it is told before the call returns");
    wait_at_most(AT_ONCE, "the next one is granted", || other.is_granted(next.owner));
    let viewer = Viewer::at(&server.address());
    wait_for("the place ends", || viewer.children("/session/place").len() == 1);

    // Under a new session.
    assert_eq!(client.renew(&lease, SOON).unwrap(), None);
    assert!(matches!(client.is_busy(&claim("session/held")), Holder::Leasehold { .. }));
    let later = claim("session/later");
    let lease = client.take(&later);
    assert!(client.renew(&lease, SOON).unwrap().is_some());
    client.releases(&later);
    assert_eq!((client.sessions_ended(), other.sessions_ended()), (1, 0));
    client.end_session();
    client.end_session();
    assert_eq!(client.sessions_ended(), 2, "the third one has not begun");
    client.take(&later);
}

#[test]
fn a_session_outlasts_a_server_that_is_restarted_with_its_data() {
    let mut server = ZookeeperServer::start();
    let client = Client::new(&url(&server.address(), LONG));
    let lease = client.take(&claim("kept"));
    server.restart_with_data();
    let renewed = wait_for("a renewal", || client.renew(&lease, SHORT));
    assert!(renewed.is_some() && client.sessions_ended() == 0);
    wait_for("waiters and holders are told to ask", || {
        [StoreEvent::RecheckAll, StoreEvent::RecheckHolds].iter().all(|event| client.events().contains(event))
    });
}

/// A request lasts for a second at most, and opening a session takes several exchanges.
#[test]
fn a_session_that_takes_longer_to_open_than_a_request_may_last_is_opened_all_the_same() {
    let server = server();
    let proxy = Proxy::start(server.port());
    proxy.set(Fault::Delay(SHORT / 6));
    let client = Client::new(&url(&at(proxy.port()), LONG));
    client.take(&claim("slow"));
    client.end_session();
    let held = claim("slow");
    wait_at_most(SHORT * 15, "a grant", || match client.acquire(&held, SHORT) {
        Ok(Answer::Granted { .. }) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    assert!(proxy.fired() > 0);
}

#[test]
fn a_session_that_the_server_has_forgotten_is_told_once_and_tokens_rise() {
    let mut server = ZookeeperServer::start();
    let client = Client::new(&url(&server.address(), BRIEF));
    let lease = client.take(&claim("forgotten"));
    server.restart_empty();
    wait_for("the client knows that its session has ended", || client.sessions_ended() > 0);
    wait_for("an answer of the new server", || client.acquire(&claim("forgotten"), SHORT));
    assert_eq!(client.renew(&lease, SOON).unwrap(), None);
    let later = client.take(&claim("later"));
    assert!(later.tokens.low() > lease.tokens.high(), "{later:?} {lease:?}");
    assert_eq!(client.sessions_ended(), 1);
}

#[test]
fn a_session_that_ends_while_its_client_is_cut_off_is_told_once() {
    let server = server();
    let (proxy, other) = (Proxy::start(server.port()), Client::new(&url(&server.address(), LONG)));
    let client = Client::new(&url(&at(proxy.port()), BRIEF));
    let lease = client.take(&claim("cut off"));
    let next = waiting("cut off");
    other.queue(&next, 1);
    lasts_while_cut_off(&client, &lease, &proxy, || other.is_granted(next.owner));
    wait_for("the client knows that its session has ended", || client.sessions_ended() > 0);
    proxy.heal();
    assert_eq!(wait_for("a renewal", || client.renew(&lease, SHORT)), None);
    client.take(&claim("after a cut"));
    assert_eq!(client.sessions_ended(), 1);
}

#[test]
fn a_client_that_is_dropped_closes_its_session_at_once() {
    let server = server();
    let [dying, other] = [(); 2].map(|()| Client::new(&url(&server.address(), LONG)));
    let next = waiting("dropped");
    dying.take(&claim("dropped"));
    other.queue(&next, 1);
    drop(dying);
    wait_at_most(AT_ONCE, "the next one is granted", || other.is_granted(next.owner));
}

#[test]
fn so_does_one_of_a_runtime_that_ends() {
    let server = server();
    let other = Client::new(&url(&server.address(), LONG));
    let (held, next) = (claim("dropped by a runtime"), waiting("dropped by a runtime"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let dying = runtime.block_on(async {
        let config = crate::support::config(&url(&server.address(), LONG));
        let store = lock_zookeeper::nonblocking::connect(&config).await.unwrap();
        lock_core::AsyncBackend::acquire(&store, &held, SOON).await.unwrap();
        store
    });
    other.queue(&next, 1);
    drop(runtime);
    drop(dying);
    wait_at_most(AT_ONCE, "the next one is granted", || other.is_granted(next.owner));
}
