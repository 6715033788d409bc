//! What is stored of a latch, and who is notified.

use std::sync::mpsc;

use lock_core::latch::{Act, Count, LatchState, Request, Seen, Watching};
use lock_core::{BackendError, BlockingBackend, ErrorKind, EventSink, StoreEvent, Ttl};
use test_support::RedisServer;

use crate::support::{SOON, both, eventually};

const LOOK: Act = Act::Look { watching: Watching::Wanted };

fn ask(client: &dyn BlockingBackend, name: &str, act: Act) -> Result<Seen, BackendError> {
    client.latch(&Request { name: name.parse().unwrap(), act }, SOON)
}

fn ttl() -> Ttl {
    "1m".parse().unwrap()
}

fn arrive(client: &dyn BlockingBackend, name: &str, id: &str) -> LatchState {
    let act = Act::Arrive { id: id.parse().unwrap(), call: 1, ttl: ttl() };
    ask(client, name, act).unwrap().state.unwrap()
}

fn expect(client: &dyn BlockingBackend, name: &str, count: u32) {
    let generation = ask(client, name, Act::Make { ttl: ttl() }).unwrap().state.unwrap().generation;
    ask(client, name, Act::Expect { count: Count::new(count).unwrap(), generation, ttl: ttl() }).unwrap();
}

#[test]
fn a_client_that_watches_is_notified_of_the_last_arrival_and_of_a_reset() {
    let server = RedisServer::start();
    let url = format!("{}?prefix=shop", server.url());
    let [(_, other), _] = both(&url);
    for (facade, client) in both(&url) {
        let (sink, told) = mpsc::channel();
        client.listen(EventSink::new(move |event| _ = sink.send(event)));
        expect(&*other, facade, 2);
        eventually("the store will notify it", || ask(&*client, facade, LOOK).unwrap().told);
        assert_eq!(server.command::<i64>(&["HLEN", &format!("leasehold:{{shop:{facade}}}:latch:w")]), 1);
        arrive(&*other, facade, "x");
        let changed = StoreEvent::LatchChanged { name: facade.parse().unwrap() };
        assert!(told.try_iter().all(|event| event != changed), "one is missing");
        let complete = arrive(&*other, facade, "y");
        assert!(complete.is_complete());
        let next = || told.recv_timeout(SOON).expect("it is notified in time");
        while next() != changed {}
        assert!(!ask(&*client, facade, LOOK).unwrap().told, "there is nothing to wait for");
        let reset = |generation| ask(&*other, facade, Act::Reset { generation, ttl: ttl() }).unwrap().state.unwrap();
        let second = reset(complete.generation);
        assert!(ask(&*client, facade, LOOK).unwrap().told);
        reset(second.generation);
        while next() != changed {}
    }
}

#[test]
fn all_keys_of_a_latch_expire_and_a_complete_one_takes_no_more() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        arrive(&*client, facade, "x");
        let first = arrive(&*client, facade, "y");
        ask(&*client, facade, Act::Reset { generation: first.generation, ttl: ttl() }).unwrap();
        expect(&*client, facade, 1);
        arrive(&*client, facade, "x");
        assert_eq!(arrive(&*client, facade, "late").arrived, 1);
        let keys = server.command::<Vec<String>>(&["KEYS", &format!("leasehold:{{{facade}}}:latch*")]);
        assert_eq!(keys.len(), 3, "{keys:?}");
        for key in keys {
            let left = server.command::<i64>(&["PTTL", &key]);
            assert!((50_000..=60_000).contains(&left), "{key}: {left}");
        }
    }
}

#[test]
fn a_full_server_counts_nothing_and_waiters_poll() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        expect(&*client, facade, 2);
        arrive(&*client, facade, "x");
        eventually("the store will notify it", || ask(&*client, facade, LOOK).unwrap().told);
        server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        let act = Act::Arrive { id: "y".parse().unwrap(), call: 2, ttl: ttl() };
        assert_eq!(ask(&*client, facade, act).unwrap_err().kind(), ErrorKind::Unavailable, "{facade}");
        let seen = ask(&*client, facade, LOOK).unwrap();
        assert_eq!((seen.state.unwrap().arrived, seen.told), (1, false), "{facade}");
        server.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    }
}

/// A waiter that stays does not keep the inboxes of those that have left.
#[test]
fn the_inboxes_of_waits_that_are_over_are_dropped() {
    let server = RedisServer::start();
    for (facade, client) in both(&server.url()) {
        expect(&*client, facade, 2);
        eventually("the store will notify it", || ask(&*client, facade, LOOK).unwrap().told);
        let (watchers, watched) =
            (format!("leasehold:{{{facade}}}:latch:w"), format!("leasehold:{{{facade}}}:latch:t"));
        for gone in ["leasehold:inbox:1", "leasehold:inbox:2"] {
            server.command::<()>(&["HSET", &watchers, gone, gone]);
            server.command::<()>(&["ZADD", &watched, "1", gone]);
        }
        assert!(ask(&*client, facade, LOOK).unwrap().told, "{facade}");
        let left: Vec<String> = server.command(&["HVALS", &watchers]);
        assert_eq!((left.len(), server.command::<i64>(&["ZCARD", &watched])), (1, 1), "{facade}: {left:?}");
        arrive(&*client, facade, "x");
        arrive(&*client, facade, "y");
        assert_eq!(server.command::<i64>(&["EXISTS", &watchers, &watched]), 0, "{facade}");
    }
}
