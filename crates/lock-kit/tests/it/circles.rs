//! Sets in any order do not wait for each other in a circle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use fastrand::Rng;
use test_support::bounds::within;
use tokio::time::timeout;

use crate::support::{PATIENCE, Store};

const LOCKS: usize = 5;
const TASKS: u64 = 64;

/// How many hold each lock now.
#[derive(Default)]
struct Held([AtomicU32; LOCKS]);

impl Held {
    fn enter(&self, set: &[usize]) {
        set.iter().for_each(|&lock| assert_eq!(self.0[lock].fetch_add(1, Ordering::SeqCst), 0, "lock {lock}"));
    }

    fn leave(&self, set: &[usize]) {
        set.iter().for_each(|&lock| _ = self.0[lock].fetch_sub(1, Ordering::SeqCst));
    }
}

/// Two locks in random order.
fn pair(rng: &mut Rng) -> [usize; 2] {
    let first = rng.usize(..LOCKS);
    let other = (first + rng.usize(1..LOCKS)) % LOCKS;
    [first, other]
}

fn name(lock: usize) -> String {
    format!("lock:{lock}")
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_lock_random_pairs_all_get_through() {
    use lock_kit::nonblocking::Kit;

    for store in Store::each() {
        let clients = [store.tokio().await, store.tokio().await, store.tokio().await];
        let held = Arc::new(Held::default());
        let tasks = clients.iter().cycle().zip(0..TASKS).map(|(client, seed)| {
            let (client, held) = (client.clone(), Arc::clone(&held));
            tokio::spawn(async move {
                let mut rng = Rng::with_seed(seed);
                for _ in 0..4 {
                    let set = pair(&mut rng);
                    let guard = client.all(set.map(name)).acquire().await.unwrap();
                    held.enter(&set);
                    tokio::task::yield_now().await;
                    held.leave(&set);
                    guard.release().await.unwrap();
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            timeout(PATIENCE, task).await.expect("no task waits for another one in a circle").unwrap();
        }
    }
}

#[test]
fn threads_that_lock_random_pairs_all_get_through() {
    use lock_kit::blocking::Kit;

    for store in Store::each() {
        let clients = [store.plain(), store.plain(), store.plain()];
        let held = Held::default();
        let (clients, held) = (&clients, &held);
        within("all threads, none of which waits for another one in a circle", || {
            thread::scope(|scope| {
                for (client, seed) in clients.iter().cycle().zip(0..TASKS / 4) {
                    scope.spawn(move || {
                        let mut rng = Rng::with_seed(seed);
                        for _ in 0..4 {
                            let set = pair(&mut rng);
                            let guard = client.all(set.map(name)).acquire().unwrap();
                            held.enter(&set);
                            thread::yield_now();
                            held.leave(&set);
                            guard.release().unwrap();
                        }
                    });
                }
            });
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_of_several_stores_have_one_order() {
    use lock_kit::nonblocking::all;

    let stores = Store::each();
    let mut clients = Vec::new();
    for store in &stores {
        clients.push((store.tokio().await, store.tokio().await));
    }
    let held = Arc::new(Held::default());
    let tasks = (0..16).map(|seed| {
        let (clients, held) = (clients.clone(), Arc::clone(&held));
        tokio::spawn(async move {
            let mut rng = Rng::with_seed(seed);
            for _ in 0..4 {
                let mut set = [0, 1, 2];
                rng.shuffle(&mut set);
                let client = |store: usize| if seed % 2 == 0 { &clients[store].0 } else { &clients[store].1 };
                let guard = all(set.map(|store| client(store).mutex("a"))).acquire().await.unwrap();
                held.enter(&set);
                tokio::task::yield_now().await;
                held.leave(&set);
                guard.release().await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        timeout(PATIENCE, task).await.expect("no task waits for another one in a circle").unwrap();
    }
}
