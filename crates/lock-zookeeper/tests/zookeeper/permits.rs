//! The permits of semaphores: slots that nobody shares, and what becomes of them.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lock_core::{Answer, Claim, ErrorKind, FencingToken, Limit, Mode, Width};
use test_support::bounds::wait_for;
use test_support::{AfterDrop, Fault, Proxy};

use crate::support::{Client, LONG, SOON, Viewer, at, claim, end, meanwhile, server, url, waiting};

const LIMIT: u32 = 4;

fn permits(count: u32, claim: Claim) -> Claim {
    let width = Width::for_waiters(count.try_into().unwrap());
    Claim { width, ..claim.in_mode(Mode::permits(count, LIMIT).unwrap()) }
}

#[test]
fn slots_are_nodes_that_end_with_the_lease() {
    let server = server();
    let (client, viewer) = (Client::new(&url(&server.address(), LONG)), Viewer::at(&server.address()));
    let slots = || {
        let mut children = viewer.children("/permits/nodes");
        children.retain(|child| child.starts_with("_c_slot-"));
        children.sort();
        children
    };
    let (two, one) = (permits(2, claim("permits/nodes")), permits(1, claim("permits/nodes")));
    assert_eq!(client.take(&two).slots.get(), [0, 1]);
    assert_eq!(client.take(&one).slots.get(), [2]);
    assert_eq!(slots(), ["_c_slot-0", "_c_slot-1", "_c_slot-2"]);
    client.releases(&two);
    assert_eq!(slots(), ["_c_slot-2"]);
    assert_eq!(client.take(&permits(3, claim("permits/nodes"))).slots.get(), [0, 1, 3]);
    client.is_busy(&permits(1, claim("permits/nodes")));
    assert_eq!(viewer.children("/permits/nodes").len(), 4 + 2, "a claim without a place leaves none");
}

/// Holders that are granted permits at the same time take different slots, and tokens rise on each of them.
#[test]
fn racing_holders_share_no_slot_and_tokens_of_each_slot_rise() {
    let server = server();
    // Who has a slot locks it, and finds the last token there.
    let last: Arc<[Mutex<Option<FencingToken>>; LIMIT as usize]> = Arc::default();
    let works = |client: Client| {
        let last = Arc::clone(&last);
        meanwhile(move || {
            for _ in 0..10 {
                let claim = permits(1, waiting("permits/racing"));
                let lease = match client.acquire(&claim, SOON).unwrap() {
                    Answer::Granted { lease, .. } => lease,
                    Answer::Queued { .. } => client.wait_for_grant(&claim),
                    other => panic!("{other:?}"),
                };
                let [slot] = lease.slots.get() else { panic!("{lease:?}") };
                let mut before = last[*slot as usize].try_lock().expect("nobody else has the slot");
                assert!(before.is_none_or(|before| before < lease.tokens.low()), "{before:?}, then {lease:?}");
                *before = Some(lease.tokens.high());
                thread::sleep(Duration::from_millis(2));
                drop(before);
                client.releases(&claim);
            }
        })
    };
    let clients = [0; 6].map(|_| Client::new(&url(&server.address(), LONG)));
    clients.map(works).into_iter().for_each(end);
}

/// A claim whose answer was lost gets the same slots and tokens when it is repeated.
#[test]
fn the_answer_that_was_lost_is_found_again() {
    let server = server();
    let proxy = Proxy::start(server.port());
    let client = Client::new(&url(&at(proxy.port()), LONG));
    let mine = permits(2, claim("permits/lost"));
    client.take(&permits(1, claim("permits/lost")));
    proxy.set(Fault::DropReplies(AfterDrop::Cut));
    assert!(client.acquire(&mine, Duration::from_secs(1)).is_err());
    proxy.heal();
    let lease = wait_for("an answer", || client.acquire(&mine, SOON));
    let Answer::Granted { lease, .. } = lease else { panic!("{lease:?}") };
    assert_eq!(lease.slots.get(), [1, 2]);
    assert_eq!(client.take(&mine), lease);
    assert!(client.renew(&lease, SOON).unwrap().is_some());
    client.releases(&mine);
    assert_eq!(client.take(&permits(3, claim("permits/lost"))).slots.get(), [1, 2, 3]);
}

/// When a holder dies, its slots are those of the next one, under higher tokens.
#[test]
fn the_slots_of_a_dead_holder_go_to_the_next_one() {
    let server = server();
    let proxy = Proxy::start(server.port());
    let (dying, next) =
        (Client::new(&url(&at(proxy.port()), Duration::from_secs(5))), Client::new(&url(&server.address(), LONG)));
    let before = dying.take(&permits(LIMIT, claim("permits/dying")));
    let waits = permits(2, waiting("permits/dying"));
    next.queue(&waits, 1);
    proxy.set(Fault::Refuse);
    proxy.cut();
    let lease = next.wait_for_grant(&waits);
    assert_eq!(lease.slots.get(), [0, 1]);
    assert!(lease.tokens.low() > before.tokens.high());
}

/// A slot, or the entry, is deleted by hand: the holder learns of it, and its release leaves nothing behind.
#[test]
fn nodes_that_are_deleted_by_hand_end_the_lease_and_nothing_of_it_stays() {
    let server = server();
    let (client, viewer) = (Client::new(&url(&server.address(), LONG)), Viewer::at(&server.address()));
    let path = "/permits/by hand";
    let is_entry = |child: &String| child.contains("-permits-");
    for is_deleted in [is_entry as fn(&String) -> bool, |child| child == "_c_slot-1"] {
        let held = permits(2, claim("permits/by hand"));
        let lease = client.take(&held);
        let child = viewer.children(path).into_iter().find(is_deleted).unwrap();
        viewer.delete(&format!("{path}/{child}"));
        assert_eq!(client.renew(&lease, SOON).unwrap(), None);
        client.gives_up(&held);
        assert_eq!(viewer.children(path), [""; 0]);
        let whole = permits(LIMIT, claim("permits/by hand"));
        assert_eq!(client.take(&whole).slots.get(), [0, 1, 2, 3]);
        client.releases(&whole);
    }
}

/// A claim with another limit is refused. Once the semaphore is free, its limit is that of the next claim.
#[test]
fn another_limit_is_refused_and_takes_nothing() {
    let server = server();
    let client = Client::new(&url(&server.address(), LONG));
    let held = permits(1, claim("permits/limit"));
    client.take(&held);
    let other = claim("permits/limit").in_mode(Mode::permits(1, LIMIT * 2).unwrap());
    let error = client.acquire(&other, SOON).unwrap_err();
    assert_eq!(
        (error.kind(), error.used_as().and_then(Mode::limit).map(Limit::get)),
        (ErrorKind::OtherKind, Some(LIMIT))
    );
    client.releases(&held);
    client.take(&other);
}
