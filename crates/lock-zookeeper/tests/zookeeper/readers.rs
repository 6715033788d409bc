//! Readers and writers of programs with Curator and of this library hold and wait in one queue.

use std::sync::Arc;

use lock_core::{ErrorKind, Holder};
use test_support::bounds::wait_for;
use test_support::{CuratorAnswer, CuratorClaim, CuratorLock, CuratorPeer, ZookeeperServer};

use crate::support::{
    Client, LONG, SOON, Viewer, claim, end, locks, meanwhile, reading, server, url, waiting, writing,
};

/// One of each.
struct Scene {
    client: Client,
    peer: CuratorPeer,
    viewer: Viewer,
    /// Last, because the others end first.
    _server: Arc<ZookeeperServer>,
}

impl Scene {
    fn new() -> Self {
        let server = server();
        let (client, peer) =
            (Client::new(&url(&server.address(), LONG)), CuratorPeer::connect(&server.address(), LONG));
        Self { client, peer, viewer: Viewer::at(&server.address()), _server: server }
    }

    /// Has a claim of the peer wait behind others, and waits until it does.
    fn queue(&mut self, lock: CuratorLock, path: &str) -> CuratorClaim {
        let before = self.viewer.children(path).len();
        let claim = self.peer.acquire(lock, path, LONG);
        wait_for("the peer is in the queue", || self.viewer.children(path).len() > before);
        claim
    }

    #[track_caller]
    fn take(&mut self, lock: CuratorLock, path: &str) -> CuratorClaim {
        let claim = self.peer.acquire(lock, path, LONG);
        self.has(claim);
        claim
    }

    #[track_caller]
    fn has(&mut self, claim: CuratorClaim) {
        assert_eq!(self.peer.answer(claim), CuratorAnswer::Acquired);
    }

    #[track_caller]
    fn release(&mut self, claim: CuratorClaim) {
        self.peer.release(claim);
        assert_eq!(self.peer.answer(claim), CuratorAnswer::Released);
    }
}

#[test]
fn readers_of_both_hold_together_and_a_java_writer_waits_for_all_of_them() {
    let mut scene = Scene::new();
    let path = "/readers/together";
    let ours = reading(claim("readers/together"));
    scene.client.take(&ours);
    let java = scene.take(CuratorLock::Read, path);
    assert!(matches!(scene.client.is_busy(&writing(claim("readers/together"))), Holder::Leasehold { .. }));
    let writer = scene.queue(CuratorLock::Write, path);
    scene.release(java);
    assert_eq!(scene.peer.answer_now(writer), None);
    let behind = reading(waiting("readers/together"));
    scene.client.queue(&behind, 2);
    scene.client.releases(&ours);
    scene.has(writer);
    assert!(!scene.client.is_granted(behind.owner));
    scene.release(writer);
    scene.client.wait_for_grant(&behind);
}

#[test]
fn our_writer_waits_for_java_readers_and_java_readers_wait_for_it() {
    let mut scene = Scene::new();
    let path = "/readers/writer";
    let first = scene.take(CuratorLock::Read, path);
    let second = scene.take(CuratorLock::Read, path);
    let writer = writing(waiting("readers/writer"));
    assert_eq!(scene.client.queue(&writer, 1), Holder::Foreign);
    let later = scene.queue(CuratorLock::Read, path);
    scene.release(first);
    scene.client.queue(&writer, 1);
    assert!(!scene.client.is_granted(writer.owner));
    scene.release(second);
    scene.client.wait_for_grant(&writer);
    assert_eq!(scene.peer.answer_now(later), None);
    scene.client.releases(&writer);
    scene.has(later);
    scene.release(later);
}

#[test]
fn writers_of_both_are_served_in_the_order_of_one_queue() {
    let mut scene = Scene::new();
    let path = "/readers/writers";
    let first = scene.take(CuratorLock::Write, path);
    let second = writing(waiting("readers/writers"));
    scene.client.queue(&second, 1);
    let third = scene.queue(CuratorLock::Write, path);
    let fourth = reading(waiting("readers/writers"));
    scene.client.queue(&fourth, 3);
    scene.release(first);
    scene.client.wait_for_grant(&second);
    assert_eq!((scene.peer.answer_now(third), scene.client.is_granted(fourth.owner)), (None, false));
    scene.client.releases(&second);
    scene.has(third);
    assert!(!scene.client.is_granted(fourth.owner));
    scene.release(third);
    scene.client.wait_for_grant(&fourth);
}

/// Curator's two kinds of lock do not see each other, so neither do ours: the first entry of a directory decides what it is.
#[test]
fn a_name_is_a_mutex_or_a_read_write_lock() {
    let Scene { client, viewer, .. } = &Scene::new();
    let mutex = claim("readers/mutex");
    client.take(&mutex);
    for other in [reading(claim("readers/mutex")), writing(claim("readers/mutex")), writing(waiting("readers/mutex"))] {
        let error = client.acquire(&other, SOON).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OtherKind, "{error}");
        assert!(error.to_string().contains("in use as a mutex, not as a read-write lock"), "{error}");
        assert_eq!(viewer.children("/readers/mutex").len(), 1, "no entry is left behind");
    }
    client.releases(&mutex);
    client.take(&writing(claim("readers/mutex")));
}

/// In one client, too: a lease of the mutex is not handed to a writer.
#[test]
fn a_client_does_not_use_a_name_as_both() {
    let server = server();
    let locks = locks(&url(&server.address(), LONG));
    let held = locks.mutex("readers/both").acquire().unwrap();
    let other = locks.rw_lock("readers/both");
    let waits = meanwhile({
        let write = other.write();
        move || write.acquire().map(drop)
    });
    let error = end(waits).unwrap_err().to_string();
    assert!(error.contains("in use as a mutex, not as a read-write lock"), "{error}");
    held.release().unwrap();
    other.read().acquire().unwrap().release().unwrap();
    other.write().acquire().unwrap().release().unwrap();
}
