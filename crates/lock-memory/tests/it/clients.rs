//! Async and blocking clients on one store.

use std::sync::{Arc, Mutex};

use lock_core::{
    Answer, AsyncBackend, Backend, BlockingBackend, Durability, EventSink, Fenced, Isolation, Released, RequestOrder,
    StoreEvent, Waiting,
};
use lock_host::ManualClock;
use lock_memory::{MemoryConfig, MemoryStore, blocking, nonblocking};

use crate::support::*;

fn manual() -> (ManualClock, MemoryStore) {
    let clock = ManualClock::new();
    let store = MemoryStore::new(Arc::new(clock.clone()));
    (clock, store)
}

/// A sink that records its events.
fn recorder() -> (EventSink, Arc<Mutex<Vec<StoreEvent>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = EventSink::new({
        let told = Arc::clone(&told);
        move |event| told.lock().unwrap().push(event)
    });
    (sink, told)
}

#[test]
fn the_store_says_what_it_can_do() {
    let (asynchronous, plain) = (nonblocking::Memory::default(), blocking::Memory::default());
    let capabilities = asynchronous.capabilities();
    assert_eq!(capabilities, plain.capabilities());
    assert_eq!((capabilities.backend, capabilities.waiting), ("memory", Waiting::QueueWithPush));
    assert_eq!(capabilities.durability, Durability::Process);
    assert_eq!((capabilities.ordering, capabilities.isolation), (RequestOrder::InOrder, Isolation::Isolated));
}

#[tokio::test]
async fn async_and_blocking_clients_exclude_each_other() {
    let (clock, store) = manual();
    let (asynchronous, plain) = (store.nonblocking(), store.blocking());
    let (lease, _) = granted(asynchronous.acquire(&claim(1), TTL).await.unwrap());
    assert!(matches!(plain.acquire(&try_claim(2), TTL).unwrap(), Answer::Busy { .. }));
    assert_eq!(plain.fence(&lease, TTL).unwrap(), Fenced::Acknowledged);
    clock.advance(TTL);
    let (taken, _) = granted(plain.acquire(&try_claim(2), TTL).unwrap());
    assert!(matches!(asynchronous.acquire(&try_claim(1), TTL).await.unwrap(), Answer::Busy { .. }));
    assert_eq!(asynchronous.fence(&lease, TTL).await.unwrap(), Fenced::Higher(taken.tokens.low()));
}

#[tokio::test]
async fn only_the_client_that_queued_is_told_of_a_hand_over() {
    let (_, store) = manual();
    let (asynchronous, plain) = (store.nonblocking(), store.blocking());
    let ((sink, async_told), (plain_sink, plain_told)) = (recorder(), recorder());
    asynchronous.listen(sink);
    plain.listen(plain_sink);
    asynchronous.acquire(&claim(1), TTL).await.unwrap();
    plain.acquire(&claim(2), TTL).unwrap();
    asynchronous.acquire(&claim(3), TTL).await.unwrap();
    assert_eq!(asynchronous.release(&release_of(1), TTL).await.unwrap(), Released::Released);
    let told = plain_told.lock().unwrap().clone();
    assert!(
        matches!(&told[..], [StoreEvent::Granted { lease, valid_for, .. }] if lease.owner == owner(2) && *valid_for == PLACE),
        "{told:?}"
    );
    plain.release(&release_of(2), TTL).unwrap();
    assert!(matches!(&async_told.lock().unwrap()[..], [StoreEvent::Granted { wanted: false, .. }]));
}

#[test]
fn all_sinks_of_a_client_are_told() {
    let (_, store) = manual();
    let (one, other) = (store.blocking(), store.blocking());
    let ((earlier, earlier_told), (later, later_told)) = (recorder(), recorder());
    other.listen(earlier);
    one.acquire(&claim(1), TTL).unwrap();
    other.acquire(&claim(2), TTL).unwrap();
    other.listen(later);
    one.release(&release_of(1), TTL).unwrap();
    assert_eq!((earlier_told.lock().unwrap().len(), later_told.lock().unwrap().len()), (1, 1));
}

#[test]
fn a_client_without_a_sink_sees_its_grant_when_it_asks_again() {
    let (_, store) = manual();
    let (one, other) = (store.blocking(), store.blocking());
    one.acquire(&claim(1), TTL).unwrap();
    other.acquire(&claim(2), TTL).unwrap();
    one.release(&release_of(1), TTL).unwrap();
    assert_eq!(tokens(&granted(other.acquire(&claim(2), TTL).unwrap()).0), (2, 2));
}

#[test]
fn a_sink_may_ask_the_store_and_own_a_client_of_it() {
    let (_, store) = manual();
    let (one, other) = (store.blocking(), store.blocking());
    let looker = store.blocking();
    other.listen(EventSink::new(move |_| {
        assert!(BlockingBackend::holder(&looker, &name("invoice:42"), TTL).unwrap().is_some());
    }));
    one.acquire(&claim(1), TTL).unwrap();
    other.acquire(&claim(2), TTL).unwrap();
    one.release(&release_of(1), TTL).unwrap();
    drop(other);
    assert!(one.holder(&name("invoice:42"), TTL).unwrap().is_some());
}

#[tokio::test]
async fn stores_are_shared_by_name_only() {
    let named = MemoryConfig::from_url("memory:shared-by-name").unwrap();
    nonblocking::Memory::open(&named).acquire(&claim(1), TTL).await.unwrap();
    assert!(matches!(blocking::Memory::open(&named).acquire(&try_claim(2), TTL).unwrap(), Answer::Busy { .. }));
    let unnamed = MemoryConfig::default();
    for _ in 0..2 {
        let own = nonblocking::Memory::open(&unnamed);
        assert!(AsyncBackend::holder(&own, &name("invoice:42"), TTL).await.unwrap().is_none());
        granted(own.acquire(&claim(1), TTL).await.unwrap());
    }
}

#[test]
fn debug_output_never_shows_an_owner() {
    let (_, store) = manual();
    store.blocking().acquire(&claim(0xab), TTL).unwrap();
    assert!(!format!("{store:?}").contains(&owner(0xab).to_wire()[..6]));
}

#[test]
fn a_dropped_client_gets_no_events() {
    let (_, store) = manual();
    let (sink, told) = recorder();
    let client = store.blocking();
    client.listen(sink);
    assert_eq!(Arc::strong_count(&told), 2);
    drop(client);
    assert_eq!(Arc::strong_count(&told), 1, "its sink is gone, too");
}

#[test]
fn a_lock_that_nobody_uses_leaves_nothing_behind() {
    let (_, store) = manual();
    let client = store.blocking();
    client.acquire(&claim(1), TTL).unwrap();
    assert!(format!("{store:?}").contains("invoice:42"));
    client.release(&release_of(1), TTL).unwrap();
    assert!(!format!("{store:?}").contains("invoice:42"));
}
