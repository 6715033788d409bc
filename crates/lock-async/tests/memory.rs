//! How much memory a held lease and a waiter keep in this process, without what the store keeps.
//!
//! Allocations are counted, so the result is the same on each run and machine. A field that is added to each lease or
//! waiter shows here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests may")]

use std::alloc::System;
use std::io;
use std::ops::Sub;
use std::sync::Arc;
use std::time::Duration;

use lock_async::{Client, Guard, Mutex};
use lock_core::{AsyncBackend, Claim, Fairness, NameKind, Note, Owner, Queueing, Terms, Ttl, Width};
use lock_host::{Build, Builder, ManualClock, Settings};
use lock_memory::MemoryStore;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use test_support::bounds::Watchdog;

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// So many that the client's fixed memory does not matter.
const MANY: usize = 4096;
/// About what a general allocator needs for a block in addition to its contents.
const BLOCK: usize = 16;
const TTL: Duration = Duration::from_secs(30);

/// The limits for each, in bytes. One more field of 200 bytes exceeds them.
struct Limits {
    lease: usize,
    waiter: usize,
}

const LIMITS: Limits = Limits { lease: 1_080, waiter: 1_620 };
/// The limits with an observer, which the feature `tracing` adds.
const OBSERVED: Limits = Limits { lease: 1_330, waiter: 1_850 };

/// The allocated memory.
#[derive(Clone, Copy, Debug)]
struct Memory {
    bytes: usize,
    blocks: usize,
}

impl Memory {
    fn in_use() -> Self {
        let stats = HEAP.stats();
        Self { bytes: stats.bytes_allocated - stats.bytes_deallocated, blocks: stats.allocations - stats.deallocations }
    }

    fn each(self) -> usize {
        (self.bytes + self.blocks * BLOCK) / MANY
    }
}

impl Sub for Memory {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(before.bytes), blocks: self.blocks.saturating_sub(before.blocks) }
    }
}

struct Bench {
    clock: ManualClock,
    store: MemoryStore,
    holder: Client,
}

impl Bench {
    fn new() -> Self {
        let clock = ManualClock::new();
        let store = MemoryStore::new(Arc::new(clock.clone()));
        let holder = client(&store, &clock);
        Self { clock, store, holder }
    }

    async fn hold(&self, mutexes: &[Mutex]) -> Vec<Guard> {
        let mut guards = Vec::with_capacity(MANY);
        for mutex in mutexes {
            guards.push(mutex.acquire().await.unwrap());
        }
        // The keeper has renewed each of them.
        self.clock.advance(TTL * 2 / 5);
        while guards.iter().any(|guard| guard.remaining() < TTL * 4 / 5) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        guards
    }

    /// How many wait for this lock.
    async fn waiters(&self, name: &str) -> u32 {
        let entry = self.holder.inspect().unwrap().holder(&name.parse().unwrap(), TTL).await.unwrap();
        entry.map_or(0, |entry| entry.waiters)
    }
}

/// How many observers a client has by default.
struct Observers(usize);

impl Build for Observers {
    type Backend = dyn AsyncBackend;

    fn build(settings: Settings<dyn AsyncBackend>) -> io::Result<Self> {
        Ok(Self(settings.observers.len()))
    }
}

fn limits() -> Limits {
    let backend: Arc<dyn AsyncBackend> = Arc::new(MemoryStore::default().nonblocking());
    let Observers(count) = Builder::new(backend).build().unwrap();
    if count == 0 { LIMITS } else { OBSERVED }
}

fn client(store: &MemoryStore, clock: &ManualClock) -> Client {
    Client::builder(Arc::new(store.nonblocking())).clock(Arc::new(clock.clone())).build().unwrap()
}

fn names() -> Vec<String> {
    (0..MANY).map(|number| format!("lock:{number}")).collect()
}

fn mutexes(client: &Client) -> Vec<Mutex> {
    names().iter().map(|name| client.mutex(name).ttl(TTL).wait(TTL * 100)).collect()
}

/// What the store keeps for so many holders, and for a waiter behind each.
async fn at_the_store() -> [Memory; 2] {
    let (names, store) =
        (names().into_iter().map(|name| name.parse().unwrap()).collect::<Vec<_>>(), MemoryStore::default());
    let (terms, note) = (Terms::exclusive(Ttl::new(TTL).unwrap()), Note::from_wire("1@test"));
    let backend = store.nonblocking();
    let mut kept = [Memory::in_use(); 2];
    for (kept, part) in kept.iter_mut().zip(1..) {
        let before = Memory::in_use();
        for (number, name) in (0_u64..).zip(&names) {
            let mut owner = [part; 16];
            owner[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
            let claim = Claim {
                name: Clone::clone(name),
                owner: Owner::from_random(owner),
                terms,
                width: Width::ONE,
                floor: None,
                note: note.clone(),
                queueing: Queueing::Wanted,
                replaces: None,
                fairness: Fairness::Fair,
                kind: NameKind::Lock,
            };
            backend.acquire(&claim, TTL).await.unwrap();
        }
        *kept = Memory::in_use() - before;
    }
    kept
}

async fn each_is_at_most(what: &str, most: usize, measure: impl Fn() -> Memory) {
    // Other threads free temporary memory, which may take a moment.
    let mut each = measure().each();
    for _ in 0..500 {
        if each <= most {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        each = measure().each();
    }
    println!("{what}: {each} bytes ({:?})", measure());
    assert!(each <= most, "{what} keeps {each} bytes; the limit is {most}");
}

#[tokio::test]
async fn a_lease_and_a_waiter_keep_little() {
    let _watchdog = Watchdog::over_this_test();
    let (limits, [held, queued]) = (limits(), at_the_store().await);
    let bench = Bench::new();
    let mutexes_held = mutexes(&bench.holder);
    // The client's fixed memory.
    bench.holder.mutex("first").acquire().await.unwrap().release().await.unwrap();
    let before = Memory::in_use();
    // Memory of an earlier hold is not kept for a later one.
    for guard in bench.hold(&mutexes_held).await {
        guard.release().await.unwrap();
    }
    let guards = bench.hold(&mutexes_held).await;
    each_is_at_most("a held lease", limits.lease, || Memory::in_use() - before - held).await;

    let other = client(&bench.store, &bench.clock);
    let mutexes_wanted = mutexes(&other);
    let before = Memory::in_use();
    let waiting: Vec<_> =
        mutexes_wanted.into_iter().map(|mutex| tokio::spawn(async move { mutex.acquire().await.map(drop) })).collect();
    for name in names() {
        while bench.waiters(&name).await == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    each_is_at_most("a waiter", limits.waiter, || Memory::in_use() - before - queued).await;
    drop((waiting, guards));
}
