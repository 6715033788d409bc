//! Who is told about a latch, and that nothing of it stays behind.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::latch::{Act, Count, Request, Seen, Watching};
use lock_core::{Backend, BlockingLatch, Event, EventSink, Ttl};
use lock_host::ManualClock;
use lock_memory::MemoryStore;
use lock_memory::blocking::Memory;

use crate::support::name;

const TTL: Duration = Duration::from_secs(10);

fn ask(client: &Memory, latch: &str, act: Act) -> Seen {
    client.ask(&Request { name: name(latch), act }, TTL).unwrap()
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
    let changed = [("watcher", Event::LatchChanged { name: name("a") })];
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
