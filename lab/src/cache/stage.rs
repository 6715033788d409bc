//! A stage: how callers get values, what they miss, and what is measured.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use leasehold::blocking::Client;
use serde::Serialize;

use super::caller::{Caller, Method, STALE_FOR, VALUE_TTL};
use super::database::Database;
use super::shelf::{Absent, Shelf, Value};
use crate::shared::failure::Failure;
use crate::shared::ground::Ground;
use crate::shared::story::Promise;

const OLD: u64 = 1;
const NEW: u64 = 2;

/// How callers get values, and what they miss.
#[derive(Debug)]
pub(crate) struct Stage {
    /// Three words at most.
    pub(crate) label: &'static str,
    /// What is done.
    pub(crate) title: &'static str,
    pub(crate) method: Method,
    pub(crate) missing: Missing,
    /// Whether the database is called once; of many values, whether at most half of the calls come at once.
    pub(crate) promise: Promise,
    /// Why the database is called so often.
    pub(crate) why: &'static str,
}

/// What the callers miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// One value for all of them, which has expired.
    Expired,
    /// The same, but the cache has kept the old value.
    Outdated,
    /// Something that does not exist.
    Nonexistent(Absent),
    /// A value for each of them. All were cached at the same time.
    Many,
}

/// How many callers there are.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Callers {
    pub(crate) callers: u32,
}

/// The result of a stage.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Outcome {
    /// Calls of the database.
    pub(crate) calls: u64,
    /// How many of them ran at the same time.
    pub(crate) at_once: u64,
    /// Callers that got an old value.
    pub(crate) old: u64,
}

impl Outcome {
    /// Whether the database is spared, with so many callers.
    pub(crate) fn is_right(&self, missing: Missing, callers: u32) -> bool {
        match missing {
            Missing::Expired | Missing::Outdated | Missing::Nonexistent(_) => self.calls == 1,
            Missing::Many => self.at_once <= u64::from(callers) / 2,
        }
    }
}

impl Stage {
    /// Lets the callers call.
    pub(crate) fn play(&self, ground: &Ground, number: usize, callers: u32) -> Result<Outcome, Failure> {
        let absent = match self.missing {
            Missing::Nonexistent(absent) => absent,
            Missing::Expired | Missing::Outdated | Missing::Many => Absent::Cached,
        };
        let shelf = Shelf::new(absent);
        let key = ground.key(&format!("value-{number}"));
        match self.missing {
            Missing::Many => self.play_over_time(ground, &shelf, &key, callers),
            Missing::Expired | Missing::Nonexistent(_) => self.play_at_once(ground, &shelf, &key, callers),
            Missing::Outdated => {
                shelf.keep(&key, Some(OLD), STALE_FOR);
                self.play_at_once(ground, &shelf, &key, callers)
            }
        }
    }

    /// All callers ask for one value at the same moment.
    fn play_at_once(&self, ground: &Ground, shelf: &Shelf, key: &str, callers: u32) -> Result<Outcome, Failure> {
        let database = Database::with(self.in_database());
        let (start, answers, all) = (Barrier::new(callers as usize), AtomicU64::new(0), u64::from(callers));
        let have_done = || match self.missing {
            // All but the one that calls.
            Missing::Outdated => answers.load(Ordering::Relaxed) >= all - 1,
            Missing::Expired | Missing::Nonexistent(_) | Missing::Many => shelf.looks() >= all,
        };
        let clients = (0..callers).map(|_| ground.open_locks()).collect::<Result<Vec<_>, _>>()?;
        let ask = |locks: Client| {
            let caller = Caller { locks, method: self.method, shelf };
            start.wait();
            let value = caller.get(key, || database.call(have_done));
            answers.fetch_add(1, Ordering::Relaxed);
            value
        };
        let values: Vec<Result<Value, Failure>> = thread::scope(|scope| {
            let callers: Vec<_> = clients.into_iter().map(|locks| scope.spawn(|| ask(locks))).collect();
            callers.into_iter().map(|caller| caller.join().unwrap_or_else(|_| Err(broke_off()))).collect()
        });
        let values = values.into_iter().collect::<Result<Vec<_>, _>>()?;
        let old = values.iter().filter(|value| **value == Some(OLD)).count() as u64;
        Ok(Outcome { calls: database.calls(), at_once: database.at_once(), old })
    }

    /// All values are cached at the same moment, and asked for once in each second of the cache's time.
    fn play_over_time(&self, ground: &Ground, shelf: &Shelf, key: &str, callers: u32) -> Result<Outcome, Failure> {
        let caller = Caller { locks: ground.open_locks()?, method: self.method, shelf };
        let keys: Vec<_> = (0..callers).map(|number| format!("{key}-{number}")).collect();
        let ask_all = || {
            let database = Database::with(self.in_database());
            keys.iter().try_for_each(|key| caller.get(key, || database.call(|| true)).map(drop))?;
            Ok::<_, Failure>(database.calls())
        };
        ask_all()?;
        let mut outcome = Outcome::default();
        for _ in 0..VALUE_TTL.as_secs() {
            shelf.wait(Duration::from_secs(1));
            let calls = ask_all()?;
            outcome.calls += calls;
            outcome.at_once = outcome.at_once.max(calls);
        }
        Ok(outcome)
    }

    fn in_database(&self) -> Value {
        match self.missing {
            Missing::Expired | Missing::Outdated | Missing::Many => Some(NEW),
            Missing::Nonexistent(_) => None,
        }
    }
}

fn broke_off() -> Failure {
    Failure::system("a caller failed", "its thread panicked")
}
