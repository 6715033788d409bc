//! Programs with Curator and this library exclude each other and wait in one queue.

use std::sync::Arc;
use std::time::Duration;

use lock_core::{Claim, Effect, ErrorKind, Holder};
use test_support::bounds::wait_for;
use test_support::{CuratorAnswer, CuratorClaim, CuratorLock, CuratorPeer, Fault, Proxy, ZookeeperServer};

use crate::support::{Client, LONG, SOON, Viewer, at, claim, server, url, waiting};

/// A session that ends while a test looks on.
const BRIEF: Duration = Duration::from_secs(1);

/// One of each.
struct Scene {
    client: Client,
    peer: CuratorPeer,
    viewer: Viewer,
    /// Last, because the others end first.
    server: Arc<ZookeeperServer>,
}

impl Scene {
    fn new() -> Self {
        let server = server();
        let peer = CuratorPeer::connect(&server.address(), LONG);
        Self { client: client(&server), peer, viewer: Viewer::at(&server.address()), server }
    }
}

fn client(server: &ZookeeperServer) -> Client {
    Client::new(&url(&server.address(), LONG))
}

#[track_caller]
fn take(peer: &mut CuratorPeer, lock: CuratorLock, path: &str) -> CuratorClaim {
    let claim = peer.acquire(lock, path, LONG);
    assert_eq!(peer.answer(claim), CuratorAnswer::Acquired);
    claim
}

/// Has a claim of the peer wait behind others, and waits until it does.
fn queue(peer: &mut CuratorPeer, path: &str, viewer: &Viewer) -> CuratorClaim {
    let before = viewer.children(path).len();
    let claim = peer.acquire(CuratorLock::Mutex, path, LONG);
    wait_for("the peer is in the queue", || viewer.children(path).len() > before);
    claim
}

#[track_caller]
fn release(peer: &mut CuratorPeer, claim: CuratorClaim) {
    peer.release(claim);
    assert_eq!(peer.answer(claim), CuratorAnswer::Released);
}

#[test]
fn a_java_program_waits_for_our_holder_and_gets_the_lock_on_release() {
    let Scene { client, mut peer, viewer, server: _server } = Scene::new();
    let held = claim("curator/ours");
    let lease = client.take(&held);
    let hasty = peer.acquire(CuratorLock::Mutex, "/curator/ours", Duration::from_millis(100));
    assert_eq!(peer.answer(hasty), CuratorAnswer::TimedOut);
    let java = queue(&mut peer, "/curator/ours", &viewer);
    assert!(client.renew(&lease, SOON).unwrap().is_some());
    assert_eq!(peer.answer_now(java), None);
    client.releases(&held);
    assert_eq!(peer.answer(java), CuratorAnswer::Acquired);
    assert_eq!(client.renew(&lease, SOON).unwrap(), None);
}

#[test]
fn our_claim_waits_for_a_java_program_calls_it_foreign_and_gets_the_lock_on_release() {
    let Scene { client, mut peer, viewer, server: _server } = Scene::new();
    let java = take(&mut peer, CuratorLock::Mutex, "/curator/theirs");
    assert_eq!(client.is_busy(&claim("curator/theirs")), Holder::Foreign);
    assert_eq!(viewer.children("/curator/theirs").len(), 1, "a claim without a place leaves none");
    let ours = waiting("curator/theirs");
    assert_eq!(client.queue(&ours, 1), Holder::Foreign);
    assert!(!client.is_granted(ours.owner));
    release(&mut peer, java);
    client.wait_for_grant(&ours);
}

#[test]
fn both_are_served_in_the_order_of_one_queue() {
    let Scene { client: one, mut peer, viewer, server } = Scene::new();
    let other = client(&server);
    let path = "/curator/queue";
    let first = take(&mut peer, CuratorLock::Mutex, path);
    let second = waiting("curator/queue");
    one.queue(&second, 1);
    let third = queue(&mut peer, path, &viewer);
    let fourth = waiting("curator/queue");
    other.queue(&fourth, 3);
    let fifth = queue(&mut peer, path, &viewer);
    let sixth = waiting("curator/queue");
    one.queue(&sixth, 5);

    release(&mut peer, first);
    let earlier = one.wait_for_grant(&second);
    assert!(matches!(other.queue(&fourth, 2), Holder::Leasehold { tokens, .. } if tokens == earlier.tokens));
    assert_eq!((peer.answer_now(third), other.is_granted(fourth.owner)), (None, false));
    one.releases(&second);
    assert_eq!(peer.answer(third), CuratorAnswer::Acquired);
    assert_eq!((other.queue(&fourth, 1), peer.answer_now(fifth)), (Holder::Foreign, None));
    release(&mut peer, third);
    assert!(other.wait_for_grant(&fourth).tokens.low() > earlier.tokens.high());
    assert_eq!((peer.answer_now(fifth), one.is_granted(sixth.owner)), (None, false));
    other.releases(&fourth);
    assert_eq!(peer.answer(fifth), CuratorAnswer::Acquired);
    assert!(!one.is_granted(sixth.owner));
    release(&mut peer, fifth);
    one.wait_for_grant(&sixth);
}

#[test]
fn a_waiter_in_the_middle_that_gives_up_wakes_nobody_and_keeps_nobody_asleep() {
    let Scene { client, mut peer, viewer, server: _server } = Scene::new();
    let path = "/curator/middle";
    let held = claim("curator/middle");
    client.take(&held);
    let hasty = peer.acquire(CuratorLock::Mutex, path, SOON / 20);
    wait_for("the peer is in the queue", || viewer.children(path).len() == 2);
    let ours = waiting("curator/middle");
    client.queue(&ours, 2);
    assert_eq!(peer.answer(hasty), CuratorAnswer::TimedOut);
    client.queue(&ours, 1);
    assert!(!client.is_granted(ours.owner));
    client.releases(&held);
    client.wait_for_grant(&ours);
}

#[test]
fn the_death_of_a_java_program_hands_the_lock_to_us() {
    let server = server();
    let (client, mut dying) = (client(&server), CuratorPeer::connect(&server.address(), BRIEF));
    take(&mut dying, CuratorLock::Mutex, "/curator/dying");
    let ours = waiting("curator/dying");
    client.queue(&ours, 1);
    dying.kill();
    client.wait_for_grant(&ours);
}

#[test]
fn the_death_of_our_client_hands_the_lock_to_a_java_program() {
    let server = server();
    let (mut peer, viewer) = (CuratorPeer::connect(&server.address(), LONG), Viewer::at(&server.address()));
    let proxy = Proxy::start(server.port());
    let dying = Client::new(&url(&at(proxy.port()), BRIEF));
    dying.take(&claim("curator/cut"));
    let java = queue(&mut peer, "/curator/cut", &viewer);
    proxy.set(Fault::Refuse);
    assert_eq!((peer.answer_now(java), proxy.cut()), (None, 1));
    assert_eq!(peer.answer(java), CuratorAnswer::Acquired);
}

/// Curator keeps its read-write locks in the same directories, under other names, and its two kinds of lock do not exclude each other.
#[test]
fn a_directory_with_a_java_read_write_lock_is_in_other_use() {
    let Scene { client, mut peer, viewer, server: _server } = Scene::new();
    for (kind, path) in [(CuratorLock::Read, "/curator/read"), (CuratorLock::Write, "/curator/write")] {
        let java = take(&mut peer, kind, path);
        let [hasty, patient]: [Claim; 2] = [claim(&path[1..]), waiting(&path[1..])];
        for ours in [&hasty, &patient] {
            let error = client.acquire(ours, SOON).unwrap_err();
            assert_eq!((error.kind(), error.effect()), (ErrorKind::OtherKind, Effect::None), "{error}");
            for words in [&path[1..], "in use as a read-write lock, not as a mutex"] {
                assert!(error.to_string().contains(words), "{error}");
            }
            assert_eq!(error.remedy(), Some("choose another name for one of them"));
            assert_eq!(viewer.children(path), peer.queue(java), "no entry is left behind");
            assert_eq!(viewer.children(path).len(), 1);
        }
        release(&mut peer, java);
        client.take(&hasty);
    }
}
