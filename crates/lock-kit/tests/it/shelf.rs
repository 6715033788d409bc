//! A cache for the tests: values in memory, on a clock. And a database that counts its calls.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{FencingToken, Moment};
use lock_host::{HostClock, ManualClock, SharedClock};
use lock_kit::{Entry, Found, blocking, nonblocking};

pub(crate) type AnyError = Box<dyn Error + Send + Sync>;
type Values = HashMap<String, (Option<u32>, Moment)>;
type Hook = Box<dyn FnOnce() + Send>;

pub(crate) struct Shelf {
    clock: SharedClock,
    values: Mutex<Values>,
    pub(crate) gets: AtomicU32,
    pub(crate) puts: Mutex<Vec<(Duration, FencingToken)>>,
    after_next_get: Mutex<Option<Hook>>,
}

impl Shelf {
    pub(crate) fn new(clock: &ManualClock) -> Self {
        Self::on(Arc::new(clock.clone()))
    }

    pub(crate) fn on_the_hosts_clock() -> Self {
        Self::on(Arc::new(HostClock))
    }

    fn on(clock: SharedClock) -> Self {
        let (values, gets, puts, after_next_get) = Default::default();
        Self { clock, values, gets, puts, after_next_get }
    }

    /// Runs this once, between the next look and its caller's next step.
    pub(crate) fn after_next_get(&self, hook: impl FnOnce() + Send + 'static) {
        *self.after_next_get.lock().unwrap() = Some(Box::new(hook));
    }

    pub(crate) fn gets(&self) -> u32 {
        self.gets.load(Ordering::SeqCst)
    }

    pub(crate) fn puts(&self) -> usize {
        self.puts.lock().unwrap().len()
    }

    pub(crate) fn find(&self, key: &str) -> Option<Found<Option<u32>>> {
        self.gets.fetch_add(1, Ordering::SeqCst);
        let now = self.clock.now();
        let found = self.values.lock().unwrap().get(key).filter(|(_, until)| *until > now).copied();
        let hook = self.after_next_get.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        found.map(|(value, until)| Found::expiring_in(value, until.since(now)))
    }

    pub(crate) fn keep(&self, entry: &Entry<'_, Option<u32>>) {
        self.store(entry.key, *entry.value, entry.ttl, entry.token);
    }

    pub(crate) fn store(&self, key: &str, value: Option<u32>, ttl: Duration, token: FencingToken) {
        self.puts.lock().unwrap().push((ttl, token));
        self.values.lock().unwrap().insert(key.to_owned(), (value, self.clock.now() + ttl));
    }
}

impl nonblocking::Cache for Shelf {
    type Value = Option<u32>;
    type Error = AnyError;

    async fn get(&self, key: &str) -> Result<Option<Found<Option<u32>>>, AnyError> {
        Ok(self.find(key))
    }

    async fn put(&self, entry: Entry<'_, Option<u32>>) -> Result<(), AnyError> {
        self.keep(&entry);
        Ok(())
    }

    fn is_absent(&self, value: &Option<u32>) -> bool {
        value.is_none()
    }
}

impl blocking::Cache for Shelf {
    type Value = Option<u32>;
    type Error = AnyError;

    fn get(&self, key: &str) -> Result<Option<Found<Option<u32>>>, AnyError> {
        Ok(self.find(key))
    }

    fn put(&self, entry: Entry<'_, Option<u32>>) -> Result<(), AnyError> {
        self.keep(&entry);
        Ok(())
    }

    fn is_absent(&self, value: &Option<u32>) -> bool {
        value.is_none()
    }
}

/// What went wrong with the lock.
#[track_caller]
pub(crate) fn of_the_lock<T: std::fmt::Debug>(outcome: Result<T, AnyError>) -> lock_host::Error {
    *outcome.unwrap_err().downcast().unwrap()
}

/// Counts its calls, and how many of them ran at the same time.
#[derive(Default)]
pub(crate) struct Database {
    calls: AtomicU32,
    running: AtomicU32,
    most: AtomicU32,
}

impl Database {
    pub(crate) fn begin(&self) -> u32 {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        self.calls.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn end(&self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    /// How many calls ran at the same time.
    pub(crate) fn at_once(&self) -> u32 {
        self.most.load(Ordering::SeqCst)
    }
}
