//! Clients of both facades for the tests of waiting, in this process and in others.

use std::env;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{self, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use lock_core::{AcquireError, AsyncBackend, BlockingBackend, Capabilities, FencingToken, Lost, OnUnavailable};
use lock_host::HoldError;
use lock_redis::{RedisConfig, blocking, nonblocking};
use test_support::bounds::{wait_for, within};
use test_support::{RedisServer, signals};
use tokio::runtime::Runtime;

/// Tells the test program that it is a child, and which lock it waits for.
const VARIABLE: &str = "LEASEHOLD_REDIS_TEST_CHILD";

/// A client of either facade.
pub(crate) enum Facade {
    Async(Runtime, lock_async::Client),
    Blocking(lock_blocking::Client),
}

/// A guard of either facade, with the runtime that its client lives on.
pub(crate) enum Held<'a> {
    Async(&'a Runtime, lock_async::Guard),
    Blocking(lock_blocking::Guard),
}

pub(crate) type Connect = fn(&str) -> Facade;

/// How to connect a client of each facade: by a URL, and over a pool with a URL for notifications.
pub(crate) const FACADES: &[(&str, Connect)] = &[
    ("async", on_tokio),
    ("blocking", on_threads),
    #[cfg(feature = "deadpool")]
    ("async-pool", over_deadpool),
    #[cfg(feature = "r2d2")]
    ("blocking-pool", over_r2d2),
];

pub(crate) fn on_tokio(url: &str) -> Facade {
    let config = RedisConfig::from_url(url).unwrap();
    over(async || nonblocking::Redis::connect(&config).await.unwrap())
}

pub(crate) fn on_threads(url: &str) -> Facade {
    let config = RedisConfig::from_url(url).unwrap();
    over_blocking(blocking::Redis::connect(&config).unwrap())
}

#[cfg(feature = "deadpool")]
fn over_deadpool(url: &str) -> Facade {
    let config = RedisConfig::from_url(url).unwrap();
    over(async || nonblocking::Redis::pooled(deadpool(url), &config).await.unwrap())
}

#[cfg(feature = "r2d2")]
fn over_r2d2(url: &str) -> Facade {
    over_blocking(blocking::Redis::pooled(r2d2(url), &RedisConfig::from_url(url).unwrap()).unwrap())
}

#[cfg(feature = "deadpool")]
pub(crate) fn deadpool(url: &str) -> nonblocking::Pool {
    deadpool_redis::Config::from_url(url).create_pool(Some(deadpool_redis::Runtime::Tokio1)).unwrap()
}

#[cfg(feature = "r2d2")]
pub(crate) fn r2d2(url: &str) -> blocking::Pool {
    let timeouts = Box::new(blocking::SocketTimeouts::new(Duration::from_secs(1)));
    let pool = r2d2::Pool::builder().max_size(2).connection_customizer(timeouts);
    pool.build(redis::Client::open(url).unwrap()).unwrap()
}

/// A client of the facade for tokio, over a backend that is made on its runtime.
pub(crate) fn over<B: AsyncBackend>(backend: impl AsyncFnOnce() -> B) -> Facade {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let client = runtime.block_on(async { lock_async::Client::new(Arc::new(backend().await)).unwrap() });
    Facade::Async(runtime, client)
}

pub(crate) fn over_blocking(backend: impl BlockingBackend) -> Facade {
    Facade::Blocking(lock_blocking::Client::new(Arc::new(backend)).unwrap())
}

/// Clients over a user's connections and pools.
pub(crate) fn handed_in(server: &RedisServer) -> Vec<Facade> {
    let client = redis::Client::open(server.url()).unwrap();
    let mut facades = Vec::new();
    facades.extend([
        over(async || nonblocking::Redis::from(client.get_multiplexed_async_connection().await.unwrap())),
        over_blocking(blocking::Redis::from(client.clone())),
    ]);
    #[cfg(feature = "deadpool")]
    facades.push(over(async || nonblocking::Redis::from(deadpool(&server.url()))));
    #[cfg(feature = "r2d2")]
    facades.push(over_blocking(blocking::Redis::from(r2d2(&server.url()))));
    facades
}

impl Facade {
    /// Waits for a lock for as long as it takes, also while the server is away.
    pub(crate) fn acquire(&self, name: &str, ttl: Duration) -> Held<'_> {
        within(&format!("the lock {name}"), || match self {
            Self::Async(runtime, client) => {
                let mutex = client.mutex(name).ttl(ttl).on_unavailable(OnUnavailable::Wait);
                Held::Async(runtime, runtime.block_on(mutex.acquire()).unwrap())
            }
            Self::Blocking(client) => {
                let mutex = client.mutex(name).ttl(ttl).on_unavailable(OnUnavailable::Wait);
                Held::Blocking(mutex.acquire().unwrap())
            }
        })
    }

    /// Waits for a lock for at most this long.
    pub(crate) fn acquire_within(&self, name: &str, ttl: Duration, wait: Duration) -> Result<Held<'_>, AcquireError> {
        match self {
            Self::Async(runtime, client) => {
                let guard = runtime.block_on(client.mutex(name).ttl(ttl).wait(wait).acquire())?;
                Ok(Held::Async(runtime, guard))
            }
            Self::Blocking(client) => Ok(Held::Blocking(client.mutex(name).ttl(ttl).wait(wait).acquire()?)),
        }
    }

    /// Waits for a lock that is held, and gives up: by dropping the future, or when the wait ends.
    pub(crate) fn give_up_after(&self, name: &str, ttl: Duration, wait: Duration) {
        match self {
            Self::Async(runtime, client) => {
                let mutex = client.mutex(name).ttl(ttl);
                let waited = runtime.block_on(async { tokio::time::timeout(wait, mutex.acquire()).await });
                assert!(waited.is_err(), "it was not held");
            }
            Self::Blocking(client) => {
                let waited = client.mutex(name).ttl(ttl).wait(wait).acquire();
                assert!(matches!(waited, Err(AcquireError::TimedOut { .. } | AcquireError::Backend(_))), "{waited:?}");
            }
        }
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        match self {
            Self::Async(_, client) => client.capabilities(),
            Self::Blocking(client) => client.capabilities(),
        }
    }
}

impl Held<'_> {
    pub(crate) fn token(&self) -> FencingToken {
        match self {
            Self::Async(_, guard) => guard.fencing_token(),
            Self::Blocking(guard) => guard.fencing_token(),
        }
    }

    /// How long the lease lasts without a renewal.
    pub(crate) fn remaining(&self) -> Duration {
        match self {
            Self::Async(_, guard) => guard.remaining(),
            Self::Blocking(guard) => guard.remaining(),
        }
    }

    /// Why it was lost, if it was.
    pub(crate) fn loss(&self) -> Option<Lost> {
        match self {
            Self::Async(_, guard) => guard.check().err(),
            Self::Blocking(guard) => guard.check().err(),
        }
    }

    /// Whether the store still has this grant. A store that does not answer is asked again.
    pub(crate) fn is_stored(&self) -> bool {
        let verify = || match self {
            Self::Async(runtime, guard) => runtime.block_on(guard.verify()),
            Self::Blocking(guard) => guard.verify(),
        };
        wait_for("the answer of the store", || match verify() {
            Err(HoldError::Backend(_)) => None,
            answer => Some(answer.is_ok()),
        })
    }

    /// Releases the lock. If that fails, it is repeated in the background.
    pub(crate) fn release(self) {
        _ = self.end();
    }

    /// Releases the lock so that it is kept for a while, and returns the outcome of the first try.
    pub(crate) fn keep(self, time: Duration) -> Result<(), HoldError> {
        match self {
            Self::Async(runtime, guard) => runtime.block_on(guard.release_keeping(time)),
            Self::Blocking(guard) => guard.release_keeping(time),
        }
    }

    /// Releases the lock, and returns the outcome of the first try.
    pub(crate) fn end(self) -> Result<(), HoldError> {
        match self {
            Self::Async(runtime, guard) => runtime.block_on(guard.release()),
            Self::Blocking(guard) => guard.release(),
        }
    }
}

/// A process that waits for a lock and holds it until it is ended. It is killed when this is dropped.
pub(crate) struct Child {
    process: process::Child,
    words: Box<dyn BufRead>,
}

impl Child {
    pub(crate) fn start(facade: &str, url: &str, name: &str, ttl: Duration) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "facades::child_process", "--nocapture"])
            .env(VARIABLE, format!("{facade} {url} {name} {}", ttl.as_millis()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let words = Box::new(BufReader::new(process.stdout.take().unwrap()));
        Self { process, words }
    }

    /// Waits until the child has the lock.
    pub(crate) fn holds(&mut self) {
        let mut lines = self.words.by_ref().lines();
        let held = within("the child's lock", || lines.any(|line| line.unwrap().ends_with("the child has it")));
        assert!(held, "the child ended");
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Freezes the process. Its connections stay open.
    pub(crate) fn freeze(&self) {
        signals::stop(self.process.id());
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Plays the child, if this process was started as one.
#[test]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn child_process() {
    let Ok(part) = env::var(VARIABLE) else { return };
    let words: Vec<&str> = part.split(' ').collect();
    let [facade, url, name, ttl] = words[..] else { panic!("no part: {part}") };
    let connect = FACADES.iter().find_map(|(word, connect)| (*word == facade).then_some(connect)).unwrap();
    let client = connect(url);
    let held = client.acquire(name, Duration::from_millis(ttl.parse().unwrap()));
    println!("the child has it");
    io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
    held.release();
}
