//! What must be true of every store. Each case is written once, for both facades.
//!
//! A case gets an unused store. Its name states a fact, and it panics if the fact is not true. No case asserts that
//! something happens within less than seconds: it waits until it is so, and compares the clients' clock.

pub mod ages;
pub mod barging;
pub mod cross_process;
mod events;
pub mod exclusion;
pub mod facades;
pub mod failure;
pub mod fencing;
pub mod keeping;
pub mod latching;
pub mod limits;
pub mod ownership;
pub mod permits;
pub mod reading;
pub mod replacing;
pub mod rules;
pub mod semaphores;
pub mod sharing;
pub mod tickets;
pub mod time;
pub mod truth;
pub mod unknown;
pub mod waiting;

use std::sync::atomic::{AtomicU64, Ordering};

use crate::facade::options;
use crate::verbs::LONG;
use crate::{Bench, Client};

/// Lets every client take turns with a lock on several threads, and checks that each turn is exclusive and that tokens
/// rise.
fn take_turns(bench: &Bench, clients: &[Client]) {
    let (inside, highest) = (AtomicU64::new(0), AtomicU64::new(0));
    let worker = &|client: &Client| {
        for _ in 0..4 {
            let guard = client.acquire("a", &options(LONG)).unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two hold it at once");
            let token = guard.token().get();
            assert!(highest.swap(token, Ordering::SeqCst) < token, "token {token} is not above all before");
            std::thread::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
            guard.release().unwrap();
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            clients.iter().flat_map(|client| [client; 3]).map(|client| scope.spawn(move || worker(client))).collect();
        bench.until("all have had their turns", || threads.iter().all(|thread| thread.is_finished()));
    });
}
