//! Waiters are notified of their turn, across connections.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use lock_core::{Backend, Claim, EventSink, StoreEvent, Terms};

use crate::rig::{Ask, Rig, WITHIN, claim, granted, position, secs, ttl};

/// Long enough for an unwanted event to arrive: a few dozen checks of the watcher.
const A_WHILE: Duration = Duration::from_millis(200);

pub(crate) fn ear(client: &impl Backend) -> Receiver<StoreEvent> {
    let (sender, events) = mpsc::channel();
    client.listen(EventSink::new(move |event| drop(sender.send(event))));
    events
}

#[track_caller]
fn assert_silent(events: &Receiver<StoreEvent>) {
    assert_eq!(events.recv_timeout(A_WHILE), Err(RecvTimeoutError::Timeout));
}

#[test]
fn a_release_by_another_process_arrives_as_a_grant() {
    let rig = Rig::new();
    let (here, there) = (rig.client(), rig.client());
    let (near, far) = (ear(&here), ear(&there));
    let (holder, waiter) = (claim("a"), claim("a"));
    granted(there.ask(&holder));
    position(here.ask(&waiter));
    assert_silent(&near);
    there.part(&holder);
    let StoreEvent::Granted { lease, valid_for, .. } = near.recv_timeout(WITHIN).unwrap() else { panic!("no grant") };
    assert_eq!(valid_for, secs(10));
    assert_eq!(granted(here.ask(&waiter)), lease);
    assert_silent(&near);
    assert_silent(&far);
}

#[test]
fn a_grant_before_the_watcher_knows_its_waiter_arrives_as_well() {
    let rig = Rig::new();
    let (here, there) = (rig.client(), rig.client());
    for _ in 0..20 {
        let events = ear(&here);
        let (holder, waiter) = (claim("a"), claim("a"));
        granted(there.ask(&holder));
        std::thread::scope(|scope| {
            scope.spawn(|| there.part(&holder));
            here.ask(&waiter);
        });
        let lease = granted(here.ask(&waiter));
        // Either the answer or the event comes first; both say the same. Events of the last round may come late.
        while let Ok(event) = events.recv_timeout(Duration::from_millis(20)) {
            let StoreEvent::Granted { lease: heard, .. } = event else { panic!("no grant: {event:?}") };
            assert!(heard == lease || heard.owner != lease.owner, "{heard:?} instead of {lease:?}");
        }
        here.part(&waiter);
    }
}

#[test]
fn only_the_first_in_line_is_notified_of_the_end_of_a_lease() {
    let rig = Rig::new();
    let (first, second) = (rig.client(), rig.client());
    let (first_ear, second_ear) = (ear(&first), ear(&second));
    granted(rig.client().ask(&Claim { terms: Terms::exclusive(ttl("5s")), ..claim("a") }));
    let (early, late) = (claim("a"), claim("a"));
    assert_eq!((position(first.ask(&early)), position(second.ask(&late))), (1, 2));
    assert_silent(&first_ear);
    rig.clock.advance(secs(5));
    assert_eq!(first_ear.recv_timeout(WITHIN), Ok(StoreEvent::Freed { name: early.name.clone() }));
    assert_silent(&second_ear);
    granted(first.ask(&early));
    assert_silent(&second_ear);
    first.part(&early);
    assert!(matches!(second_ear.recv_timeout(WITHIN), Ok(StoreEvent::Granted { .. })));
}

#[test]
fn the_end_of_the_place_before_it_wakes_the_next() {
    let rig = Rig::new();
    let client = rig.client();
    let events = ear(&client);
    granted(client.ask(&Claim { terms: Terms::exclusive(ttl("15s")), ..claim("a") }));
    position(rig.client().ask(&claim("a"))); // which nobody refreshes
    rig.clock.advance(secs(8));
    let waiter = claim("a");
    assert_eq!(position(client.ask(&waiter)), 2);
    rig.clock.advance(secs(1));
    assert_silent(&events);
    rig.clock.advance(secs(6));
    assert_eq!(events.recv_timeout(WITHIN), Ok(StoreEvent::Freed { name: waiter.name.clone() }));
    granted(client.ask(&waiter));
}

#[test]
fn the_end_of_a_dead_first_place_at_a_free_lock_wakes_the_next() {
    let rig = Rig::new();
    let (client, other) = (rig.client(), rig.client());
    let events = ear(&client);
    granted(other.ask(&Claim { terms: Terms::exclusive(ttl("5s")), ..claim("a") }));
    position(other.ask(&claim("a"))); // which nobody refreshes
    rig.clock.advance(secs(2));
    let waiter = claim("a");
    assert_eq!(position(client.ask(&waiter)), 2);
    rig.clock.advance(secs(4));
    assert_silent(&events); // free, and the turn of the one that is dead
    rig.clock.advance(secs(4));
    assert_eq!(events.recv_timeout(WITHIN), Ok(StoreEvent::Freed { name: waiter.name.clone() }));
    granted(client.ask(&waiter));
}

#[test]
fn a_client_that_waits_for_two_locks_is_notified_of_both() {
    let rig = Rig::new();
    let (here, there) = (rig.client(), rig.client());
    let events = ear(&here);
    let holders = ["a", "b"].map(claim);
    holders.iter().for_each(|holder| drop(granted(there.ask(holder))));
    let waiters = ["a", "b"].map(claim);
    waiters.iter().for_each(|waiter| assert_eq!(position(here.ask(waiter)), 1));
    assert_silent(&events);
    for turn in [1, 0] {
        there.part(&holders[turn]);
        let StoreEvent::Granted { lease, .. } = events.recv_timeout(WITHIN).unwrap() else { panic!("no grant") };
        assert_eq!((&lease.name, lease.owner), (&waiters[turn].name, waiters[turn].owner));
        assert_eq!(granted(here.ask(&waiters[turn])), lease);
    }
    assert_silent(&events);
}

#[test]
fn a_client_that_left_is_not_notified() {
    let rig = Rig::new();
    let client = rig.client();
    let events = ear(&client);
    let (holder, waiter, lapsed) = (claim("a"), claim("a"), claim("a"));
    granted(client.ask(&holder));
    position(client.ask(&waiter));
    position(client.ask(&lapsed));
    client.part(&waiter);
    rig.clock.advance(secs(10));
    client.part(&holder);
    assert_silent(&events);
}

#[test]
fn waiters_are_notified_that_the_file_was_replaced() {
    let rig = Rig::new();
    let client = rig.client();
    let events = ear(&client);
    granted(client.ask(&claim("a")));
    let waiter = claim("a");
    position(client.ask(&waiter));
    assert_silent(&events);
    std::fs::remove_file(rig.path()).unwrap();
    assert_eq!(events.recv_timeout(WITHIN), Ok(StoreEvent::RecheckAll));
    granted(client.ask(&waiter));
}

#[test]
fn an_async_and_a_blocking_listener_get_the_same_events() {
    let rig = Rig::new();
    let (here, there) = (rig.nonblocking(), rig.client());
    let events = ear(&here);
    let (holder, waiter) = (claim("a"), claim("a"));
    granted(there.ask(&holder));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ask = || runtime.block_on(lock_core::AsyncBackend::acquire(&here, &waiter, WITHIN)).unwrap();
    position(ask());
    there.part(&holder);
    let StoreEvent::Granted { lease, .. } = events.recv_timeout(WITHIN).unwrap() else { panic!("no grant") };
    assert_eq!(granted(ask()), lease);
}
