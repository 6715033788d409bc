//! The suite of all backends on real files: each test has a directory of its own.
//!
//! Leases are timed by a clock that is moved by hand, but for the cases with other processes.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lock_conformance::{Exemption, Facade, Fault, Faults, Harness, OnCommand};
use lock_core::{AsyncBackend, BlockingBackend};
use lock_host::{HostClock, ManualClock, SharedClock};
use lock_sqlite::{SqliteConfig, Timing};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::runtime::Handle;

lock_conformance::suite!(SqliteHarness);

/// A file in a directory that is deleted when this is dropped.
struct SqliteHarness {
    /// `None` if the file belongs to another process.
    directory: Option<TempDir>,
    /// `None` if other processes use the file: they cannot move this clock.
    clock: Option<ManualClock>,
    breaker: Breaker,
}

impl SqliteHarness {
    fn config(&self) -> SqliteConfig {
        SqliteConfig::new(&self.breaker.path)
    }

    fn timing(&self) -> Timing {
        match &self.clock {
            Some(clock) => Timing::with_clock(Arc::new(clock.clone())),
            None => Timing::of_host().unwrap(),
        }
    }
}

impl Harness for SqliteHarness {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let breaker = Breaker::new(directory.path().join("locks.db"));
        Self { directory: Some(directory), clock: Some(ManualClock::new()), breaker }
    }

    fn async_backend(&self, _runtime: &Handle) -> Arc<dyn AsyncBackend> {
        let client = lock_sqlite::nonblocking::Sqlite::open_with(&self.config(), self.timing()).unwrap();
        Arc::new(self.breaker.on_command.cover(client))
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        let client = lock_sqlite::blocking::Sqlite::open_with(&self.config(), self.timing()).unwrap();
        Arc::new(self.breaker.on_command.cover(client))
    }

    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(lock_sqlite::blocking::Sqlite::open_with(&self.config(), self.timing()).unwrap())
    }

    fn clock(&self) -> SharedClock {
        match &self.clock {
            Some(clock) => Arc::new(clock.clone()),
            None => Arc::new(HostClock),
        }
    }

    fn elapse(&self, by: Duration) {
        match &self.clock {
            Some(clock) => clock.advance(by),
            None => std::thread::sleep(by),
        }
    }

    fn faults(&self) -> &dyn Faults {
        &self.breaker
    }

    fn exempt(&self, _facade: Facade) -> Vec<Exemption> {
        Vec::new()
    }

    fn address(&self) -> Option<String> {
        // Another file: all clients of one file use the same clock.
        let directory = self.directory.as_ref()?;
        Some(directory.path().join("shared.db").to_str().unwrap().to_owned())
    }

    fn attach(address: &str) -> Self {
        Self { directory: None, clock: None, breaker: Breaker::new(address.into()) }
    }
}

/// Breaks the file if that is possible, and the path to it otherwise.
struct Breaker {
    path: PathBuf,
    on_command: OnCommand,
    /// Holds the write lock while the store hangs.
    writer: Mutex<Option<Connection>>,
    struck: AtomicU64,
}

impl Breaker {
    fn new(path: PathBuf) -> Self {
        Self { path, on_command: OnCommand::default(), writer: Mutex::default(), struck: AtomicU64::new(0) }
    }

    /// Takes the write lock, as a process does that stops in the middle of a write.
    fn occupy(&self) {
        let writer = Connection::open(&self.path).unwrap();
        writer.busy_timeout(Duration::from_secs(10)).unwrap();
        writer.execute_batch("BEGIN IMMEDIATE").unwrap();
        *self.writer.lock().unwrap() = Some(writer);
    }

    /// Waits until everybody has closed the file, whose log is then gone. Two that close it at the same moment leave the log to each other, so
    /// one more closes it.
    fn see_it_closed(&self) {
        let log = PathBuf::from(format!("{}-wal", self.path.display()));
        let begin = Instant::now();
        while log.exists() {
            assert!(begin.elapsed() < Duration::from_secs(20), "somebody has the file open still");
            let last = Connection::open(&self.path).unwrap();
            last.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(())).unwrap();
            drop(last);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Faults for Breaker {
    fn offers(&self) -> &[Fault] {
        &Fault::ALL
    }

    fn begin(&self, fault: Fault) {
        let struck = match fault {
            Fault::Cut | Fault::LoseReplies => {
                self.on_command.begin(fault);
                0
            }
            Fault::Hang => {
                self.occupy();
                1
            }
            Fault::RestartWithData => {
                self.see_it_closed();
                1
            }
            Fault::RestartEmpty => {
                std::fs::remove_file(&self.path).unwrap();
                1
            }
        };
        self.struck.store(struck, Ordering::SeqCst);
    }

    fn fired(&self) -> u64 {
        self.struck.load(Ordering::SeqCst) + self.on_command.fired()
    }

    fn end(&self) {
        self.on_command.end();
        self.writer.lock().unwrap().take();
    }
}
