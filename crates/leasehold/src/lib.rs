//! Distributed locks with leases, loss signals and fencing tokens.
//!
//! A distributed lock is a *lease*: it expires by itself if its holder dies. The holder needs to know how long it may rely on the
//! lease, and must be notified when the lease is lost. It also passes a *fencing token* to the protected resource, before it reads
//! there and with each write, so that the resource can refuse late writes. Every lock here does all three by default.
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "sqlite"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # std::env::set_current_dir(&folder)?;
//! use std::time::Duration;
//!
//! let locks = leasehold::connect("sqlite:locks.db").await?; // feature `sqlite`; needs no server
//! let guard = locks.mutex("invoice:42").ttl(Duration::from_secs(30)).wait(Duration::from_secs(5)).acquire().await?;
//!
//! raise(guard.write_token()).await?; // before anything is read: the resource refuses lower tokens from now on
//! let token = guard.fencing_token(); // goes with each write
//! tokio::select! {
//!     done = write(token) => done?,
//!     lost = guard.lost() => return Err(lost.into()),
//! }
//! guard.release().await?;
//! # async fn raise(_: leasehold::WriteToken) -> Result<(), std::io::Error> { Ok(()) }
//! # async fn write(_: leasehold::FencingToken) -> Result<(), std::io::Error> { Ok(()) }
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "sqlite")))]
//! # fn main() {}
//! ```
//!
//! The same with plain threads (feature `blocking`):
//!
//! ```
//! # #[cfg(all(feature = "blocking", feature = "sqlite"))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # std::env::set_current_dir(&folder)?;
//! let locks = leasehold::blocking::connect("sqlite:locks.db")?;
//! let Some(guard) = locks.mutex("import").try_acquire()? else { return Ok(()) }; // another process is importing
//! raise(guard.write_token()); // before anything is read
//! for batch in 1..=3 {
//!     guard.check()?; // local and cheap
//!     load(batch, guard.fencing_token());
//! }
//! guard.release()?;
//! # fn raise(_: leasehold::WriteToken) {}
//! # fn load(_: u32, _: leasehold::FencingToken) {}
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "blocking", feature = "sqlite")))]
//! # fn main() {}
//! ```
//!
//! # Choosing a store
//!
//! Use the first row that fits:
//!
//! | if | use | feature |
//! |---|---|---|
//! | you write a test | `memory:NAME` | `memory` |
//! | all processes run on one machine | `sqlite:PATH` | `sqlite` |
//! | the data is in PostgreSQL, and your transactions should be fenced | `postgres://HOST/DATABASE` | `postgres` |
//! | the data is in MySQL or MariaDB, and your transactions should be fenced | `mysql://HOST/DATABASE` | `mysql` |
//! | you have a ZooKeeper, perhaps with Java services that use Curator | `zookeeper://HOST,HOST,HOST` | `zookeeper` |
//! | you have an etcd, perhaps with Go services that use its `concurrency.Mutex` | `etcd://HOST,HOST,HOST` | `etcd` |
//! | you have a Redis or a Valkey | `redis://HOST` | `redis` |
//! | locks must be available while a Redis server is unreachable | `redlock://HOST,HOST,HOST` | `redlock` |
//!
//! [`BackendConfig`] has a variant for each store, and [`BackendConfig::from_url`] lists all forms of URLs.
//!
//! `memory:` without a name is a new store for each client: two clients that connect to it do **not** exclude each other.
//!
//! No store is enabled by default. Enable the feature of each store that you use, such as
//! `leasehold = { version = "0.1", features = ["sqlite"] }`. For the URL of any other store, `connect` returns an error that names
//! the missing feature.
//!
//! # Checking the token in SQL
//!
//! Store the highest token beside the data, and change both in one statement. A token converts to `i64` without loss, so it
//! fits into a `BIGINT`. Declare the column `NOT NULL`: `NULL <= ?` is not true, so every write would be refused.
//! Equal tokens pass, because one holder may write several times.
//!
//! **Raise the fence before you read.** Until the row has your token, an earlier holder that was paused can still write. If it writes
//! between your read and your write, its update is lost without an error:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let db = rusqlite::Connection::open_in_memory()?;
//! # db.execute_batch("CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT); INSERT INTO account VALUES (1, 0)")?;
//! db.execute_batch("ALTER TABLE account ADD COLUMN fence BIGINT NOT NULL DEFAULT 0")?; // once
//! # let token = leasehold::FencingToken::try_from(7_i64)?;
//! # let id = 1;
//! let token = i64::from(token); // guard.fencing_token(), of a guard that may write
//! let raised = db.execute("UPDATE account SET fence = ?1 WHERE id = ?2 AND fence <= ?1", (token, id))?;
//! if raised == 0 {
//!     return Err("a later holder has been there, or there is no such row: stop".into());
//! }
//! let balance: i64 = db.query_row("SELECT balance FROM account WHERE id = ?1", [id], |row| row.get(0))?;
//! let changed = db.execute(
//!     "UPDATE account SET balance = ?1, fence = ?2 WHERE id = ?3 AND fence <= ?2",
//!     (balance + 50, token, id),
//! )?;
//! if changed == 0 {
//!     return Err("a later holder has raised the fence: stop".into());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The feature `fence` has this check for rusqlite, with an error that names the later token, and checks in memory, in Redis and for
//! HTTP services: see `leasehold::fence`.
//!
//! # Fencing a transaction in PostgreSQL
//!
//! If locks and data are in one database (feature `postgres`), you need no column. While a transaction of `postgres::Fences` is open, nobody
//! else gets the lock, even if the lease expires:
//!
//! ```no_run
//! # #[cfg(all(feature = "async", feature = "postgres"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use leasehold::postgres::{Fences, PostgresConfig};
//!
//! let url = "postgres://app@db1/shop";
//! let (locks, fences) = (leasehold::connect(url).await?, Fences::new(&PostgresConfig::from_url(url)?));
//! # let (mut db, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
//! # tokio::spawn(connection);
//! let guard = locks.mutex("account:7").acquire().await?;
//! let transaction = fences.begin(&mut db, &guard).await?; // refused if the lock is lost
//! let row = transaction.query_one("SELECT balance FROM account WHERE id = 7", &[]).await?;
//! let balance = row.get::<_, i64>(0) + 50;
//! transaction.execute("UPDATE account SET balance = $1 WHERE id = 7", &[&balance]).await?;
//! transaction.commit().await?;
//! guard.release().await?;
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "postgres")))]
//! # fn main() {}
//! ```
//!
//! With plain threads, `begin_blocking` does the same for the crate postgres.
//!
//! # Which errors to retry
//!
//! `acquire` already retries transient errors for an operation timeout, or, with [`OnUnavailable::Wait`], until the `wait` ends;
//! `try_acquire` does not. If a call fails nevertheless:
//!
//! | error | action |
//! |---|---|
//! | [`AcquireError::TimedOut`] | somebody else holds the lock: try again later, or give up |
//! | [`AcquireError::Backend`] | if [`ErrorKind::is_transient`], try again later; otherwise fix the store or the configuration as the error says |
//! | [`AcquireError::Forgotten`] | the store lost its data; the error says what to repair. On ZooKeeper or etcd, run `leasehold zookeeper base` or `leasehold etcd base` |
//! | [`AcquireError::TicketOver`], from `adopt` | acquire the lock again, and start from what the resource has stored |
//! | [`AcquireError::Invalid`] | fix the name or the option |
//! | [`AcquireError::Closed`] | nothing: this client is shutting down |
//! | [`AcquireError::Cancelled`] | nothing: its [`CancelToken`] was cancelled |
//! | [`TryAcquireError::Busy`] | somebody else holds the lock, as the error says: try again later, or give up |
//! | [`LimitError`](error::LimitError) | as the `AcquireError` of the same name; a repeated `set_limit` is harmless |
//! | [`ConnectError`] | `Backend` as above; otherwise fix the URL or the host as the error says |
//! | [`Lost`], at any time while the lock is held, also in [`HoldError::Lost`] from `release`, `verify` and `renew` | stop the work. Acquire again, and start from what the resource has stored |
//! | [`HoldError::Backend`], from `release` | nothing: no loss was detected, and the release is repeated in the background |
//! | [`HoldError::Backend`], from `verify` or `renew` | the store did not answer: continue until `check` fails, or ask again |
//! | [`HoldError::Backend`], from `release_keeping` | if the store cannot keep a lock, nothing was kept; otherwise as from `release` |
//! | [`ChangeError`] | unless the [`reason`](ChangeError::reason) is `Lost`, the hold continues as before, and its guard is in the error: use it, or drop it |
//! | [`LatchError`](latch::LatchError) | as the `AcquireError` of the same name; `OtherCount` and `Reset` say what to do. A repeated arrival counts once |
//! | [`Error`] | as the error in it. [`Error::backend`] is that of the store, and its [`kind`](BackendError::kind) says whether it is transient |
//!
//! Each of these converts to [`Error`], and so do the kit's, so a function that returns it can use `?` on all of them. If a
//! `ChangeError` is converted, its guard is dropped.
//!
//! ```
//! # #[cfg(all(feature = "blocking", feature = "memory"))]
//! # fn main() -> Result<(), leasehold::Error> {
//! fn close_month(locks: &leasehold::blocking::Client) -> Result<(), leasehold::Error> {
//!     let guard = locks.mutex("books").acquire()?;
//!     locks.latch("month-closed").arrive()?;
//!     Ok(guard.release()?)
//! }
//! # close_month(&leasehold::blocking::connect("memory:")?)
//! # }
//! # #[cfg(not(all(feature = "blocking", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! No clean-up is needed: the client releases in the background what a failed call may have left at the store, or it expires
//! with the ttl (on ZooKeeper, with the session of the client). [`Effect`](error::Effect) says whether a failed request may have taken effect.
//!
//! # Holders
//!
//! `Mutex::try_acquire_or_holder` names the holder of a lock that is not free. `Client::inspect` lists locks and ends leases (see
//! [`inspect`]). `Guard::share` makes a guard that several tasks or threads can clone; the last clone releases the lock.
//!
//! # Beyond single locks
//!
//! `locks.rw_lock(name)` admits many readers or one writer; see [`RwLock`]. `locks.semaphore(name, limit)` has several
//! permits, each with a numbered slot and fencing tokens of its own; see [`Semaphore`]. If a store lacks one of them, the call fails
//! with *unsupported*; [`Capabilities::modes`] lists what the store supports.
//!
//! `locks.all(names)` acquires several locks as one, without deadlocks between sets. `guard.share()` is for code that runs under
//! the lock of its caller; threads can also use `locks.reentrant(name)`. `locks.degrading(name)` falls back to a process-local lock while
//! the store is unreachable; its guard reports that.
//! `locks.job(name)` runs a scheduled task on one of several machines. `locks.election(name)` elects one
//! leader among several candidates, with fail-over. `locks.single_flight(key)` computes a value once, although
//! many callers miss the cache. These methods are in the trait [`Kit`], which has to be imported; see [`kit`].
//!
//! `#[leasehold::locked]` (feature `macros`) runs the body of a function under a lock whose name is made from its arguments.
//!
//! `locks.latch(name)` waits until a number of processes has arrived, such as all parts of a job; see [`latch`].
//! `guard.detach()` makes a [`Ticket`], which hands the held lock to another task or process.
//!
//! # Observability
//!
//! The feature `tracing` emits an event when a lock is acquired, waited for long, renewed late, lost or released, and when the
//! store is unavailable. The feature `metrics` counts and times the same for Prometheus and others. For anything else, add an
//! [`Observer`](observe::Observer). See [`observe`].
//!
//! # Shutting down
//!
//! `Client::close` ends all holds and waits of a client and its clones, and waits until the store has answered their
//! releases. Waiters get [`AcquireError::Closed`], guards are lost with [`LossReason::Closed`]. Without it, locks that
//! are still held when the process ends stay locked until their ttl has expired. In async code, the same is true for a guard that
//! was dropped right before: it is released in the background, and `std::process::exit` may come first. So await `release`
//! or `close` before the process exits. The locks of a killed process also expire with the ttl. Choose a ttl that
//! others can wait for; renewal keeps the lease for as long as the work takes.
//!
//! # Passing in your own clients and pools
//!
//! `Client::from_redis` takes the clients of redis-rs. A `redis::Client` works like a URL. Over a plain connection or pool
//! (features `connection-manager`, `deadpool`, `r2d2`), the server cannot notify waiters, so they poll.
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "redis"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use leasehold::FromRedis;
//!
//! let redis = redis::Client::open("redis://127.0.0.1")?; // connects with the first request
//! let locks = leasehold::Client::from_redis(redis)?;
//! # drop(locks);
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "redis")))]
//! # fn main() {}
//! ```
//!
//! `Client::from_pool(pool).push("redis://127.0.0.1").connect().await?` acquires locks through a pool, and opens connections of
//! its own to notify waiters, renew leases and release locks, however busy the pool is. (r2d2 in `leasehold::blocking`.)
//!
//! For PostgreSQL (features `deadpool-postgres`, `r2d2-postgres`), import `FromPostgres`:
//! `Client::from_pool(pool, "postgres://db1/shop").await?`. For MySQL and MariaDB, import `FromMysql`.
//!
//! # Testing your code
//!
//! A test needs no server and does not sleep: the in-memory store (feature `memory`) runs on a clock that the test moves.
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::{sync::Arc, time::Duration};
//!
//! let clock = leasehold::clock::ManualClock::new();
//! let store = leasehold::memory::MemoryStore::new(Arc::new(clock.clone()));
//! let client = || leasehold::Client::builder(Arc::new(store.nonblocking())).clock(Arc::new(clock.clone())).build();
//! let (paused, other) = (client()?, client()?);
//!
//! let guard = paused.mutex("invoice:42").max_hold(Duration::from_secs(10)).acquire().await?;
//! clock.advance(Duration::from_secs(10));
//! assert!(guard.check().is_err());
//! let later = other.mutex("invoice:42").acquire().await?;
//! assert!(later.fencing_token() > guard.fencing_token());
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! # Injecting faults
//!
//! `leasehold::memory::faults` wraps any store and makes it fail on command: it refuses requests, loses replies, or delays
//! them. A test can then check how your code handles an unreachable store or a lost lock:
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use leasehold::memory::faults::{Fault, Faults, Faulty};
//! use leasehold::{AcquireError, ErrorKind, LossReason};
//!
//! let (clock, faults) = (leasehold::clock::ManualClock::new(), Faults::new());
//! let store = leasehold::memory::MemoryStore::new(Arc::new(clock.clone()));
//! let store = Faulty::new(store.nonblocking(), &faults);
//! let locks = leasehold::Client::builder(Arc::new(store)).clock(Arc::new(clock.clone())).build()?;
//! let lock = locks.mutex("invoice:42");
//!
//! faults.fail_everything(Fault::Refused(ErrorKind::Unreachable));
//! let error = lock.try_acquire().await.unwrap_err();
//! assert!(matches!(error, AcquireError::Backend(error) if error.kind().is_transient()));
//!
//! faults.heal_everything();
//! let guard = lock.acquire().await?;
//! faults.fail_everything(Fault::Refused(ErrorKind::Unreachable)); // no renewal gets through
//! clock.advance(leasehold::Ttl::DEFAULT.get());
//! assert!(matches!(guard.lost().await.reason, LossReason::Expired(_)));
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! # Configuration
//!
//! [`BackendConfig`] selects the store, [`LockOptions`] how to hold a lock. Both implement serde's `Deserialize`, and refuse
//! invalid values and fields that they do not know. `docs/book/src/configuration.md` has all fields, and a JSON schema for editors:
//!
//! ```toml
//! store = "redis://db1?prefix=shop" # or { backend = "redis", url = "redis://db1", prefix = "shop" }
//! lock = { ttl = "30s", wait = "5s", max_hold = "10m", why = "nightly report" }
//! ```
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let text = "store = 'memory:'\nlock = { ttl = '30s' }";
//! #[derive(serde::Deserialize)]
//! struct Config {
//!     store: leasehold::BackendConfig,
//!     #[serde(default)]
//!     lock: leasehold::LockOptions,
//! }
//!
//! let config: Config = toml::from_str(text)?;
//! let locks = leasehold::connect_to(&config.store).await?;
//! let guard = locks.mutex("nightly-report").options(config.lock.clone()).acquire().await?;
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! # Features
//!
//! - The APIs: `async` (default) and `blocking`.
//! - The stores: `sqlite`, `postgres`, `mysql`, `zookeeper`, `etcd`, `redis`, `redlock` and `memory`.
//! - TLS: `tls` adds `rediss://`, `zookeeper-tls` adds `zookeeper+tls://`, and `etcd-tls` adds `etcds://`.
//! - Your own Redis clients: `deadpool`, `connection-manager` and `r2d2`.
//! - `fence` checks fencing tokens at the resource, `tower` in HTTP services.
//! - `macros` adds `#[leasehold::locked]`. `tracing` emits events, `metrics` records metrics, and `schema` makes JSON schemas of
//!   configurations. `full` enables everything.
//!
//! To keep locks in another store, write a [`backend`].

pub mod backend;
#[cfg(feature = "blocking")]
pub mod blocking;
pub mod clock;
mod config;
mod connect;
pub mod error;
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod expanded;
#[cfg(all(feature = "async", feature = "mysql"))]
mod from_mysql;
#[cfg(feature = "deadpool-postgres")]
mod from_postgres;
#[cfg(all(feature = "async", feature = "redis"))]
mod from_redis;
pub mod guard;
pub mod inspect;
pub mod kit;
pub mod latch;
#[cfg(feature = "async")]
mod nonblocking;
pub mod observe;
#[cfg(feature = "redlock")]
pub mod redlock;
#[cfg(feature = "schema")]
mod schema;
mod stores;

pub use connect::ConnectError;
#[cfg(all(feature = "async", feature = "mysql"))]
pub use from_mysql::FromMysql;
#[cfg(feature = "deadpool-postgres")]
pub use from_postgres::FromPostgres;
#[cfg(all(feature = "async", feature = "redis"))]
pub use from_redis::FromRedis;
#[cfg(feature = "deadpool")]
pub use from_redis::PoolBuilder;
#[cfg(feature = "async")]
pub use kit::{Cache, Kit, all};
#[cfg(feature = "macros")]
pub use leasehold_macros::locked;
#[cfg(feature = "async")]
pub use lock_async::{
    AnyGuard, AnyLock, Builder, Client, Guard, Latch, LossWatch, Mutex, NamedLock, PermitGuard, ReadGuard, ReadLock,
    RwLock, Semaphore, SharedGuard,
};
pub use lock_core::{
    AcquireError, BackendError, Busy, Capabilities, ErrorKind, Fairness, FencingToken, Holder, Invalid, LockName,
    LossReason, Lost, OnUnavailable, Ticket, TryAcquireError, Ttl, WriteToken,
};
#[cfg(feature = "etcd")]
pub use lock_etcd as etcd;
#[cfg(feature = "fence")]
pub use lock_fence as fence;
pub use lock_host::{CancelToken, ChangeError, Error, HoldError, LockOptions};
#[cfg(feature = "memory")]
pub use lock_memory as memory;
#[cfg(feature = "mysql")]
pub use lock_mysql as mysql;
#[cfg(feature = "postgres")]
pub use lock_postgres as postgres;
#[cfg(feature = "redis")]
pub use lock_redis as redis;
#[cfg(feature = "sqlite")]
pub use lock_sqlite as sqlite;
#[cfg(feature = "zookeeper")]
pub use lock_zookeeper as zookeeper;
#[cfg(feature = "async")]
pub use nonblocking::{builder, connect, connect_to};
pub use stores::BackendConfig;
