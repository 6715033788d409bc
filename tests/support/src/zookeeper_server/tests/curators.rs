use std::time::Duration;

use super::LONG;
use crate::bounds::wait_for;
use crate::{CuratorAnswer, CuratorLock, CuratorPeer, CuratorState, ZookeeperOptions, ZookeeperServer};

fn connected(server: &ZookeeperServer) -> CuratorPeer {
    CuratorPeer::connect(&server.address(), Duration::from_secs(10))
}

#[test]
fn peers_with_curator_exclude_each_other_and_hand_over() {
    let server = ZookeeperServer::start_with(ZookeeperOptions::default().volatile());
    let (mut one, mut other) = (connected(&server), connected(&server));
    let first = one.acquire(CuratorLock::Mutex, "/lock", LONG);
    assert_eq!(one.answer(first), CuratorAnswer::Acquired);
    let hasty = other.acquire(CuratorLock::Mutex, "/lock", Duration::from_millis(100));
    assert_eq!(other.answer(hasty), CuratorAnswer::TimedOut);

    let waiting = other.acquire(CuratorLock::Mutex, "/lock", LONG);
    wait_for("the second peer is in the queue", || one.queue(first).len() == 2);
    let last = one.acquire(CuratorLock::Mutex, "/lock", LONG);
    wait_for("the third claim is in the queue", || one.queue(first).len() == 3);
    assert_eq!((other.answer_now(waiting), one.answer_now(last)), (None, None));
    one.release(first);
    assert_eq!(one.answer(first), CuratorAnswer::Released);
    assert_eq!(other.answer(waiting), CuratorAnswer::Acquired);
    assert_eq!(one.answer_now(last), None);
    other.close();
    assert_eq!(one.answer(last), CuratorAnswer::Acquired);
}

#[test]
fn peers_with_curator_read_together_and_write_alone() {
    let server = ZookeeperServer::start_with(ZookeeperOptions::default().volatile());
    let (mut one, mut other) = (connected(&server), connected(&server));
    let readers = [one.acquire(CuratorLock::Read, "/lock", LONG), one.acquire(CuratorLock::Read, "/lock", LONG)];
    assert_eq!(readers.map(|reader| one.answer(reader)), [CuratorAnswer::Acquired, CuratorAnswer::Acquired]);
    let writer = other.acquire(CuratorLock::Write, "/lock", LONG);
    wait_for("the writer is in the queue", || one.queue(readers[0]).len() == 3);
    assert_eq!(other.answer_now(writer), None);
    readers.iter().for_each(|&reader| one.release(reader));
    assert_eq!(other.answer(writer), CuratorAnswer::Acquired);
}

#[test]
fn threads_of_a_peer_take_turns_one_after_the_other() {
    let server = ZookeeperServer::start_with(ZookeeperOptions::default().volatile());
    let mut peer = connected(&server);
    let begun = peer.begin_turns(&["/lock", "/lock", "/other"].map(str::to_owned), Duration::from_millis(300));
    let mut turns = peer.turns(begun);
    assert!((0..3).all(|thread| turns.iter().any(|turn| turn.thread == thread)));
    turns.retain(|turn| turn.thread != 2);
    turns.sort_unstable_by_key(|turn| turn.acquired);
    assert!(turns.windows(2).all(|pair| pair[0].leaving <= pair[1].acquired), "two held the lock at once");
    assert!(turns.iter().all(|turn| turn.wanted <= turn.acquired && turn.leaving <= turn.released));
}

#[test]
fn a_peer_says_what_it_holds() {
    let server = ZookeeperServer::start_with(ZookeeperOptions::default().volatile());
    let mut peer = connected(&server);
    assert_eq!(peer.state_now(), None);
    let held = peer.acquire(CuratorLock::Mutex, "/lock", LONG);
    assert_eq!(peer.answer(held), CuratorAnswer::Acquired);
    assert!(peer.is_acquired(held));
    peer.release(held);
    assert_eq!(peer.answer(held), CuratorAnswer::Released);
    assert!(!peer.is_acquired(held));
}

#[test]
fn a_peer_with_curator_loses_its_locks_with_its_session() {
    let mut server = ZookeeperServer::start();
    let mut dying = CuratorPeer::connect(&server.address(), Duration::from_secs(1));
    let mut other = CuratorPeer::connect(&server.address(), Duration::from_secs(5));
    let held = dying.acquire(CuratorLock::Mutex, "/lock", LONG);
    assert_eq!(dying.answer(held), CuratorAnswer::Acquired);
    let waiting = other.acquire(CuratorLock::Mutex, "/lock", LONG);
    dying.kill();
    assert_eq!(other.answer(waiting), CuratorAnswer::Acquired);

    server.kill();
    other.wait_for_state(CuratorState::Suspended);
    other.wait_for_state(CuratorState::Lost);
    server.restart_empty();
    other.wait_for_state(CuratorState::Reconnected);
}
