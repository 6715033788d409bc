//! Many of both kinds want one lock at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use test_support::bounds::wait_for;
use test_support::{CuratorAnswer, CuratorLock, CuratorPeer};

use crate::support::{LONG, end, locks, meanwhile, server, url};

/// How many of each kind.
const EACH: usize = 3;
/// How long they go on.
const TIME: Duration = Duration::from_secs(3);

/// What only a holder touches.
#[derive(Default)]
struct Room {
    inside: AtomicU32,
    /// How often anybody was inside.
    visits: AtomicU32,
}

impl Room {
    #[track_caller]
    fn visit(&self) {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two hold the lock");
        // Read, then written: a second holder would lose a visit.
        let visits = self.visits.load(Ordering::SeqCst);
        thread::sleep(Duration::from_millis(1));
        self.visits.store(visits + 1, Ordering::SeqCst);
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Has several threads of one Java program go in and out, and returns how often they were inside.
fn java(peer: &mut CuratorPeer, room: &Room, until: Instant) -> u32 {
    let ask = |peer: &mut CuratorPeer| peer.acquire(CuratorLock::Mutex, "/crowd", LONG);
    let (mut claims, mut visits) = ((0..EACH).map(|_| ask(peer)).collect::<Vec<_>>(), 0);
    while !claims.is_empty() {
        let mut granted = || claims.iter().position(|&claim| peer.answer_now(claim).is_some_and(is_granted));
        let at = wait_for("one of the peer's claims is granted", &mut granted);
        room.visit();
        visits += 1;
        let held = claims.swap_remove(at);
        peer.release(held);
        if Instant::now() < until {
            claims.push(ask(peer));
        }
    }
    visits
}

#[track_caller]
fn is_granted(answer: CuratorAnswer) -> bool {
    assert_eq!(answer, CuratorAnswer::Acquired);
    true
}

fn ours(locks: &lock_blocking::Client, room: &Room, until: Instant) -> u32 {
    let (mutex, mut visits) = (locks.mutex("crowd").wait(LONG), 0);
    while Instant::now() < until {
        let guard = mutex.acquire().unwrap();
        room.visit();
        guard.release().unwrap();
        visits += 1;
    }
    visits
}

#[test]
fn a_mixed_crowd_is_never_inside_at_once() {
    let server = server();
    let mut peer = CuratorPeer::connect(&server.address(), LONG);
    let room = Arc::new(Room::default());
    let until = Instant::now() + TIME;
    let clients = (0..EACH).map(|_| {
        let (locks, room) = (locks(&url(&server.address(), LONG)), Arc::clone(&room));
        meanwhile(move || ours(&locks, &room, until))
    });
    let clients: Vec<_> = clients.collect();
    let of_java = java(&mut peer, &room, until);
    let of_ours: u32 = clients.into_iter().map(end).sum();
    assert!(of_java > 5 && of_ours > 5, "{of_java} visits of Java and {of_ours} of ours");
    assert_eq!(room.visits.load(Ordering::SeqCst), of_java + of_ours, "somebody wrote over a visit");
}
