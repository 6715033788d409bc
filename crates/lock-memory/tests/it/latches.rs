//! Who is notified of a latch, and that nothing of it stays behind.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::latch::{Act, Count, Generation, Request, Seen, Watching};
use lock_core::{Backend, BlockingBackend, EventSink, StoreEvent, Ttl};
use lock_host::ManualClock;
use lock_memory::MemoryStore;
use lock_memory::blocking::Memory;

use crate::support::name;

const TTL: Duration = Duration::from_secs(10);

fn ask(client: &Memory, latch: &str, act: Act) -> Seen {
    client.latch(&Request { name: name(latch), act }, TTL).unwrap()
}

fn arrive(client: &Memory, latch: &str, id: &str) -> Seen {
    ask(client, latch, Act::Arrive { id: id.parse().unwrap(), call: 1, ttl: Ttl::new(TTL).unwrap() })
}

#[test]
fn clients_that_watch_are_told_of_the_last_arrival_and_of_a_reset() {
    let store = MemoryStore::default();
    let [watcher, looker, other] = [(); 3].map(|()| store.blocking());
    let told = Arc::new(Mutex::new(Vec::new()));
    for (client, who) in [(&watcher, "watcher"), (&looker, "looker")] {
        let told = Arc::clone(&told);
        client.listen(EventSink::new(move |event| told.lock().unwrap().push((who, event))));
    }
    let told = || std::mem::take(&mut *told.lock().unwrap());
    let changed = [("watcher", StoreEvent::LatchChanged { name: name("a") })];
    let watch = || assert!(ask(&watcher, "a", Act::Look { watching: Watching::Wanted }).told);
    watch();
    assert!(!ask(&looker, "a", Act::Look { watching: Watching::Unwanted }).told);
    let ttl = Ttl::new(TTL).unwrap();
    let generation = ask(&other, "a", Act::Make { ttl }).state.unwrap().generation;
    ask(&other, "a", Act::Expect { count: Count::new(2).unwrap(), generation, ttl });
    arrive(&other, "a", "x");
    assert_eq!(told(), [], "one is missing");
    arrive(&other, "a", "y");
    assert_eq!(told(), changed);
    let complete = ask(&watcher, "a", Act::Look { watching: Watching::Wanted });
    assert!(!complete.told && complete.state.is_some_and(|state| state.is_complete()), "there is nothing to wait for");
    let mut ended = complete.state.unwrap().generation;
    for _ in 0..2 {
        ask(&other, "a", Act::Reset { generation: ended, ttl: Ttl::new(TTL).unwrap() });
        assert_eq!(told(), if ended == complete.state.unwrap().generation { [].to_vec() } else { changed.to_vec() });
        watch();
        ended = ask(&other, "a", Act::Look { watching: Watching::Unwanted }).state.unwrap().generation;
    }
}

#[test]
fn expired_latches_are_dropped_along_the_way() {
    let clock = ManualClock::new();
    let store = MemoryStore::new(Arc::new(clock.clone()));
    let client = store.blocking();
    for number in 0..100 {
        arrive(&client, &format!("old {number}"), "x");
    }
    clock.advance(TTL);
    for number in 0..100 {
        arrive(&client, &format!("new {number}"), "x");
    }
    let shown = format!("{store:?}");
    assert!(shown.contains("new 99") && !shown.contains("old 99"), "{shown}");
}

#[test]
fn a_reset_of_a_later_generation_changes_nothing() {
    let client = MemoryStore::default().blocking();
    let state = arrive(&client, "a", "x").state.unwrap();
    let later = Generation::new(state.generation.get() + 1);
    let seen = ask(&client, "a", Act::Reset { generation: later, ttl: Ttl::new(TTL).unwrap() });
    assert_eq!(seen.state, Some(state));
}

#[test]
fn an_arrival_counts_once_even_if_it_is_repeated_after_a_reset() {
    let client = MemoryStore::default().blocking();
    for _ in 0..2 {
        assert_eq!(arrive(&client, "a", "x").state.unwrap().arrived, 1);
    }
    let generation = arrive(&client, "a", "y").state.unwrap().generation;
    ask(&client, "a", Act::Reset { generation, ttl: Ttl::new(TTL).unwrap() });
    assert_eq!(arrive(&client, "a", "x").state.unwrap().arrived, 0, "it arrived before the reset");
    let expects = Act::Expect {
        count: Count::new(1).unwrap(),
        generation: arrive(&client, "a", "x").state.unwrap().generation,
        ttl: Ttl::new(TTL).unwrap(),
    };
    ask(&client, "a", expects);
    assert_eq!(arrive(&client, "a", "z").state.unwrap().arrived, 1);
    assert_eq!(arrive(&client, "a", "late").state.unwrap().arrived, 1, "it is complete");
}

#[test]
fn a_shorter_ttl_does_not_shorten_the_life_of_a_latch() {
    let clock = ManualClock::new();
    let client = MemoryStore::new(Arc::new(clock.clone())).blocking();
    arrive(&client, "a", "x");
    ask(&client, "a", Act::Make { ttl: Ttl::new(TTL / 10).unwrap() });
    clock.advance(TTL / 2);
    let look = Act::Look { watching: Watching::Unwanted };
    assert_eq!(ask(&client, "a", look).state.map(|state| state.arrived), Some(1));
}
