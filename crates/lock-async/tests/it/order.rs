//! The order in which the waiters of two processes are served. Each process has a client.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use lock_async::Client;

use crate::support::{Bench, until};

/// The processes of the waiters, in order of arrival.
const ARRIVE: &str = "aaaabb";

/// The processes in the order in which they are served.
async fn served(chain: u32) -> String {
    let bench = Bench::new();
    let guard = bench.client().mutex("x").acquire().await.unwrap();
    let client = || {
        let builder = Client::builder(Arc::new(bench.store.nonblocking())).clock(Arc::new(bench.clock.clone()));
        builder.chain(chain).build().unwrap()
    };
    let (first, second) = (client(), client());
    let (order, begun) = (Arc::new(Mutex::new(String::new())), Arc::new(AtomicUsize::new(0)));
    for (before, process) in ARRIVE.chars().enumerate() {
        let client = if process == 'a' { &first } else { &second };
        let (mutex, order, begins) = (client.mutex("x"), Arc::clone(&order), Arc::clone(&begun));
        tokio::spawn(async move {
            begins.fetch_add(1, Ordering::SeqCst);
            let guard = mutex.acquire().await.unwrap();
            order.lock().unwrap().push(process);
            guard.release().await.unwrap();
        });
        until(|| begun.load(Ordering::SeqCst) > before).await;
        let places = if process == 'a' { 1 } else { 2 };
        until(|| bench.places("x") == places).await;
    }
    guard.release().await.unwrap();
    until(|| order.lock().unwrap().len() == ARRIVE.len()).await;
    order.lock().unwrap().clone()
}

/// The first place of a process was taken for its only waiter then, and its next one is for the three others.
#[tokio::test]
async fn a_process_serves_its_own_waiters_in_a_row() {
    assert_eq!(served(16).await, "abaaab");
}

#[tokio::test]
async fn a_chain_ends_before_the_last_waiter_of_a_process() {
    assert_eq!(served(1).await, "abaaba");
}

#[tokio::test]
async fn processes_take_turns_with_a_chain_of_zero() {
    assert_eq!(served(0).await, "ababaa");
}
